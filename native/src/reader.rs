//! Makes the objects of a document, in one walk over its octets.
//!
//! An object is odd where something in it departs from its class, or is no matter of this reader. It is then passed, and
//! once the whole document was judged well-formed, Python reads it again from its own octets.

use std::collections::HashMap;
use std::mem::take;
use std::ops::Range;

use memchr::memrchr;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::names::{Names, ScopeId, Space, Tag, NOWHERE, NO_SPACE, SOAP, XSI};
use crate::objects::Nursery;
use crate::plans::{ClassId, Code, Form, Plans, Slot};
use crate::tokens::{all_blank, newlines, Bounds, Start, Token, Tokens};
use crate::values::Values;
use crate::{give_up_if, Stop};

/// Octets of odd elements that are parsed together.
const BATCH: usize = 1 << 16;
/// Fields of an object whose order is remembered.
const SHORT_ORDER: usize = 48;
const MOST_ORDERS: usize = 1024;

/// The field `extras`, which all classes have.
const EXTRAS: usize = 0;

/// What is known from one document to the next.
pub struct State {
    pub names: Names,
    learnt: Learnt,
}

/// What is known of classes and values.
struct Learnt {
    plans: Plans,
    values: Values,
    xsi: Space,
    nil: Tag,
    kind: Tag,
}

/// An open element of an object.
struct Frame<'py> {
    class: ClassId,
    object: Bound<'py, PyAny>,
    scope: ScopeId,
    /// The list that the last elements went to, and its field.
    list: Option<(usize, Bound<'py, PyList>)>,
    last: i32,
    /// The slot of the last child.
    previous: Option<usize>,
    /// Where its part of the order begins.
    order: usize,
}

/// What an element becomes that is an object. All of it was read.
enum Made<'py> {
    Value(Bound<'py, PyAny>),
    Odd,
    /// Nothing that the parent can take.
    OddParent,
}

/// Where a value goes that is made at the end.
enum Place<'py> {
    Field(ClassId, Bound<'py, PyAny>, usize),
    Item(Bound<'py, PyList>, usize),
}

/// What Python has a say in, at some octets of the document.
struct Record<'py> {
    octets: Range<usize>,
    asked: Asked<'py>,
}

enum Asked<'py> {
    /// The value of an odd element: its slot, the scope around it, the names of the elements around it, where it goes.
    Value(Py<PyAny>, ScopeId, Vec<Range<usize>>, Place<'py>),
    /// What is to be said of attributes that a class does not know.
    Attributes(ClassId, Vec<Tag>),
}

/// The declared class of an element with an xsi:type, the class and slot that it stands in, and the name.
type Typed = (ClassId, Option<(ClassId, usize)>, Tag);

/// The header and the body of an envelope, its namespace, and where it can be taken apart.
pub type Envelope<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, &'static str, Option<Cuts>);

/// Where the header is, the name in the start tag of the body's element, and the name in its end tag.
pub type Cuts = (usize, usize, usize, usize, usize);

/// One walk over a document.
pub struct Walk<'s, 'd, 'py> {
    pub py: Python<'py>,
    bridge: &'s Bound<'py, PyAny>,
    learnt: &'s mut Learnt,
    pub tokens: Tokens<'d, 's>,
    nursery: Nursery<'py>,
    /// The names of the objects' elements that are open.
    above: Vec<Range<usize>>,
    records: Vec<Record<'py>>,
    /// The fields of the elements of open objects whose order is checked by Python.
    order: Vec<u16>,
    /// Elements around the root.
    pub around: usize,
    /// The classes that an xsi:type stood for in this document; None for an odd one.
    derived: HashMap<Typed, Option<ClassId>>,
    none: Bound<'py, PyAny>,
}

impl State {
    pub fn new() -> State {
        let mut names = Names::new();
        let xsi = names.space(XSI);
        let (nil, kind) = (names.tag(xsi, "nil"), names.tag(xsi, "type"));
        State { names, learnt: Learnt { plans: Plans::new(), values: Values::new(), xsi, nil, kind } }
    }

    /// What a document holds, which was read to its end.
    ///
    /// Args: what is asked about classes, the document, its bounds, what gives the values of odd elements, and what reads the
    /// root.
    pub fn read<'py, T>(
        &mut self,
        bridge: &Bound<'py, PyAny>,
        data: &[u8],
        bounds: Bounds,
        again: &Bound<'py, PyAny>,
        root: impl FnOnce(&mut Walk<'_, '_, 'py>) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let mut walk = self.walk(bridge, data, bounds)?;
        walk.tokens.prolog()?;
        let found = root(&mut walk)?;
        walk.tokens.epilog()?;
        walk.settle(again)?;
        Ok(found)
    }

    /// A walk over a document, or a part of one.
    pub fn walk<'s, 'd, 'py>(
        &'s mut self,
        bridge: &'s Bound<'py, PyAny>,
        data: &'d [u8],
        bounds: Bounds,
    ) -> Result<Walk<'s, 'd, 'py>, Stop> {
        let py = bridge.py();
        self.names.begin();
        Ok(Walk {
            py,
            bridge,
            learnt: &mut self.learnt,
            tokens: Tokens::new(data, &mut self.names, bounds)?,
            nursery: Nursery::new(py),
            above: Vec::new(),
            records: Vec::new(),
            order: Vec::new(),
            around: 0,
            derived: HashMap::new(),
            none: py.None().into_bound(py),
        })
    }
}

impl<'py> Walk<'_, '_, 'py> {
    /// The object of a document, whose class has a table or is found by its name.
    pub fn document(&mut self, table: Option<&Bound<'py, PyAny>>) -> Result<Bound<'py, PyAny>, Stop> {
        let at = self.tokens.at;
        let start = self.tokens.start_tag(NOWHERE)?;
        self.root(table, None, at, &start)
    }

    /// The header and the body of an envelope that has nothing beside them.
    ///
    /// Args: the table of the header's class, and the package that the body's is looked for in.
    pub fn envelope(&mut self, table: &Bound<'py, PyAny>, package: Option<&str>) -> Result<Envelope<'py>, Stop> {
        let (whole, namespace) = self.shell(NOWHERE, &SOAP, "Envelope")?;
        let (outer, _) = self.shell(whole.scope, &[namespace], "Header")?;
        self.around = 2;
        let begin = self.gap(Token::Start)?;
        let start = self.tokens.start_tag(outer.scope)?;
        let tag = self.tokens.tag(&start)?;
        give_up_if(!table.getattr("tag")?.eq(self.tokens.names.clark(self.py, tag))?)?;
        let header = self.root(Some(table), None, begin, &start)?;
        let mut is_plain = self.tokens.names.find(start.scope, b"") == Some(NO_SPACE);
        let end = self.tokens.at;
        self.end(&outer)?;
        let (outer, _) = self.shell(whole.scope, &[namespace], "Body")?;
        let at = self.gap(Token::Start)?;
        let start = self.tokens.start_tag(outer.scope)?;
        let (tag, soap) = (self.tokens.tag(&start)?, self.tokens.names.space(namespace));
        give_up_if(self.tokens.names.is_in(tag, soap))?;
        let body = self.root(None, package, at, &start)?;
        let last = memrchr(b'<', &self.tokens.data[..self.tokens.at]).unwrap_or(0) + 2;
        self.end(&outer)?;
        self.end(&whole)?;
        is_plain &= !start.is_empty && self.records.is_empty();
        let cuts = is_plain.then_some((begin, end, start.name.start, start.name.end, last));
        Ok((header, body, namespace, cuts))
    }

    /// Reads the start tag of an element that only holds others, which is in one of some namespaces.
    fn shell(
        &mut self,
        scope: ScopeId,
        namespaces: &[&'static str],
        local: &str,
    ) -> Result<(Start, &'static str), Stop> {
        self.gap(Token::Start)?;
        let start = self.tokens.start_tag(scope)?;
        let tag = self.tokens.tag(&start)?;
        let names = &mut self.tokens.names;
        let found = namespaces.iter().find(|uri| tag == names.known(uri, local)).ok_or(Stop::GiveUp)?;
        give_up_if(start.is_empty || !self.tokens.attributes.is_empty())?;
        Ok((start, *found))
    }

    /// Reads the end tag of an element that only holds others.
    fn end(&mut self, start: &Start) -> Result<(), Stop> {
        self.gap(Token::End)?;
        self.tokens.end_tag(&start.name)
    }

    /// Passes blanks and comments up to a tag, whose place it gives.
    fn gap(&mut self, wanted: Token) -> Result<usize, Stop> {
        loop {
            let run = self.tokens.run()?;
            give_up_if(!all_blank(&self.tokens.data[run]))?;
            let found = self.tokens.markup()?;
            if found == wanted {
                return Ok(self.tokens.at);
            }
            give_up_if(found != Token::Aside)?;
        }
    }
}

impl<'py> Walk<'_, '_, 'py> {
    /// Whether the last start tag has an xsi:type.
    pub fn has_type(&self) -> bool {
        self.tokens.attributes.iter().any(|one| one.tag == self.learnt.kind)
    }

    /// Whether Python has no say in anything that was read.
    pub fn is_clean(&self) -> bool {
        self.records.is_empty()
    }

    /// Forgets what is open, and what Python has a say in.
    pub fn forget(&mut self) {
        self.above.clear();
        self.records.clear();
        self.order.clear();
    }

    /// The object of an element that stands for itself, whose start tag was read.
    ///
    /// Args: the table of its class, or None and the package that it is looked for in; where the tag begins, and the tag.
    pub fn root(
        &mut self,
        table: Option<&Bound<'py, PyAny>>,
        package: Option<&str>,
        at: usize,
        start: &Start,
    ) -> Result<Bound<'py, PyAny>, Stop> {
        let table = match table {
            Some(table) => table.clone(),
            None => {
                let tag = self.tokens.tag(start)?;
                self.bridge.call_method1("find", (self.tokens.names.clark(self.py, tag), package))?
            }
        };
        give_up_if(table.is_none())?;
        let class = self.learnt.plans.id(&table)?;
        let is_element = !table.getattr("element")?.is_none();
        match self.object(start, at, class, (false, is_element), None)? {
            Made::Value(object) => Ok(object),
            _ => Err(Stop::GiveUp),
        }
    }

    /// The depth of a child of the innermost element.
    fn depth(&self) -> usize {
        self.around + self.above.len() + 1
    }

    /// The object of an element whose start tag was read, of the declared class or that of its xsi:type.
    ///
    /// Args: the tag, where it begins, the declared class, whether the element may be nil and whether its name says more
    /// than its class does, the class and slot that it stands in.
    fn object(
        &mut self,
        start: &Start,
        at: usize,
        class: ClassId,
        (nillable, is_named): (bool, bool),
        source: Option<(ClassId, usize)>,
    ) -> Result<Made<'py>, Stop> {
        if self.tokens.attributes.iter().any(|one| one.tag == self.learnt.nil) {
            return Ok(self.nil(start, nillable)?.map_or(Made::OddParent, Made::Value));
        }
        let records = self.records.len();
        let Some((class, object)) = self.enter(start, at, class, is_named, source)? else {
            self.tokens.pass(start, self.depth())?;
            return Ok(Made::Odd);
        };
        let is_whole = if self.learnt.plans.class(class).form == Form::Text {
            let text = self.tokens.content(start, self.depth())?;
            text.map_or(Ok(false), |text| self.fill(class, &object, &text))?
        } else {
            self.content(class, &object, start)?
        };
        if is_whole {
            return Ok(Made::Value(object));
        }
        self.records.truncate(records);
        Ok(Made::Odd)
    }

    /// Reads what is in the element of an object, up to its end; whether the object is complete.
    fn content(&mut self, class: ClassId, object: &Bound<'py, PyAny>, start: &Start) -> Result<bool, Stop> {
        let (depth, order) = (self.depth(), self.order.len());
        let (object, scope) = (object.clone(), start.scope);
        let mut frame = Frame { class, object, scope, list: None, last: -1, previous: None, order };
        self.above.push(start.name.clone());
        let has_ended = start.is_empty || self.children(&mut frame, &start.name)?;
        self.above.pop();
        let mut is_complete = has_ended;
        if has_ended {
            let class = self.learnt.plans.class(class);
            let shape = class.shape.as_ref().expect("it made the object");
            is_complete = shape.complete(&frame.object, &mut self.nursery)?;
            is_complete = is_complete && (!class.checked || self.is_in_order(&frame)?);
        } else {
            give_up_if(self.above.is_empty())?;
            self.tokens.pass(start, depth)?;
        }
        self.order.truncate(order);
        Ok(is_complete)
    }

    /// Reads the children of an object's element and its end tag; false behind something that makes the object odd.
    fn children(&mut self, frame: &mut Frame<'py>, name: &Range<usize>) -> Result<bool, Stop> {
        loop {
            let run = self.tokens.run()?;
            if !all_blank(&self.tokens.data[run.clone()]) {
                self.tokens.check(run)?;
                return Ok(false);
            }
            let is_taken = match self.tokens.markup()? {
                Token::Start => self.child(frame)?,
                Token::Aside => true,
                Token::Section(span) => all_blank(&self.tokens.data[span]),
                Token::End => return self.tokens.end_tag(name).map(|()| true),
            };
            if !is_taken {
                return Ok(false);
            }
        }
    }

    /// Whether the content model allows the elements that were met, and there is nothing to keep about their order.
    fn is_in_order(&mut self, frame: &Frame<'py>) -> Result<bool, Stop> {
        let order = &self.order[frame.order..];
        if let Some(found) = self.learnt.plans.class(frame.class).verdicts.get(order) {
            return Ok(*found);
        }
        let table = self.learnt.plans.table(self.py, frame.class);
        let found: bool = self.bridge.call_method1("allows", (table, order.to_vec()))?.extract()?;
        let verdicts = &mut self.learnt.plans.class(frame.class).verdicts;
        if order.len() <= SHORT_ORDER && verdicts.len() < MOST_ORDERS {
            verdicts.insert(order.into(), found);
        }
        Ok(found)
    }

    /// Reads a child of an object's element; false where that makes the object odd.
    fn child(&mut self, frame: &mut Frame<'py>) -> Result<bool, Stop> {
        let (at, depth) = (self.tokens.at, self.depth());
        give_up_if(depth > self.tokens.bounds.depth)?;
        let class = self.learnt.plans.class(frame.class);
        let (start, found) = class.children.read(&mut self.tokens, frame.scope, frame.previous)?;
        let slot = found.map(|index| (index, class.slots[index])).filter(|(_, slot)| {
            let is_late = class.ordered && slot.order <= frame.last;
            !is_late && (slot.many || !class.checked || !self.order[frame.order..].contains(&(slot.field as u16)))
        });
        let Some((index, slot)) = slot else {
            self.tokens.pass(&start, depth)?;
            return Ok(false);
        };
        frame.last = if slot.many { slot.order - 1 } else { slot.order };
        frame.previous = Some(index);
        if class.checked {
            self.order.push(slot.field as u16);
        }
        let value = match slot.code {
            Code::Simple(kind) if self.tokens.attributes.is_empty() => {
                let text = self.tokens.content(&start, depth)?;
                text.map_or(Ok(None), |text| self.learnt.values.value(self.py, kind, &text))?
            }
            Code::Simple(_) => self.nil(&start, slot.nillable)?,
            Code::Object(class) => {
                let source = Some((frame.class, index));
                match self.object(&start, at, class, (slot.nillable, slot.member), source)? {
                    Made::Value(value) => Some(value),
                    Made::Odd => return Ok(self.record(frame, index, at)),
                    Made::OddParent => None,
                }
            }
            Code::Keep => {
                self.tokens.pass(&start, depth)?;
                return Ok(self.record(frame, index, at));
            }
        };
        Ok(value.map(|value| self.store(frame, slot, value)).is_some())
    }

    /// Makes an object of a start tag, and sets what its attributes say; None where that is odd.
    fn enter(
        &mut self,
        start: &Start,
        at: usize,
        mut class: ClassId,
        is_named: bool,
        source: Option<(ClassId, usize)>,
    ) -> Result<Option<(ClassId, Bound<'py, PyAny>)>, Stop> {
        let mut typed = None;
        if let Some(index) = self.tokens.attributes.iter().position(|one| one.tag == self.learnt.kind) {
            let Some(name) = self.qualified(index, start.scope)? else { return Ok(None) };
            let Some(derived) = self.derived(class, source, name)? else { return Ok(None) };
            if derived == class {
                typed = Some(self.tokens.names.clark(self.py, name));
            } else if is_named {
                return Ok(None);
            }
            class = derived;
        }
        let Learnt { plans, values, xsi, kind: type_tag, .. } = &mut *self.learnt;
        plans.meet(self.bridge, class, self.tokens.names, values)?;
        let known = plans.class(class);
        if known.is_abstract || known.form == Form::Other || (known.form == Form::Text && typed.is_some()) {
            return Ok(None);
        }
        let shape = known.shape.as_ref().expect("such forms have one");
        let object = self.nursery.object(shape)?;
        let mut kept: Option<Bound<'py, PyDict>> = None;
        let mut unknown = Vec::new();
        for (index, attribute) in self.tokens.attributes.iter().enumerate() {
            let text = self.tokens.value(index)?;
            if let Some((field, kind)) = known.attributes.get(&attribute.tag) {
                let Some(value) = values.value(self.py, *kind, &text)? else { return Ok(None) };
                shape.put(&object, *field, value);
                continue;
            }
            let is_type = attribute.tag == *type_tag;
            if is_type && typed.is_none() {
                continue;
            }
            if !self.tokens.names.is_in(attribute.tag, *xsi) {
                unknown.push(attribute.tag);
            }
            let kept = kept.get_or_insert_with(|| PyDict::new(self.py));
            let name = self.tokens.names.clark(self.py, attribute.tag);
            match &typed {
                Some(kind) if is_type => kept.set_item(name, kind)?,
                _ => kept.set_item(name, text)?,
            }
        }
        if let Some(kept) = kept {
            shape.put(&object, EXTRAS, self.bridge.call_method1(intern!(self.py, "extras"), (kept,))?);
        }
        if !unknown.is_empty() {
            self.records.push(Record { octets: at..self.tokens.at, asked: Asked::Attributes(class, unknown) });
        }
        Ok(Some((class, object)))
    }

    /// The class that an xsi:type stands for; None where it is odd.
    fn derived(&mut self, class: ClassId, source: Option<(ClassId, usize)>, name: Tag) -> PyResult<Option<ClassId>> {
        if let Some(found) = self.derived.get(&(class, source, name)) {
            return Ok(*found);
        }
        let slot = source.map(|(class, slot)| self.learnt.plans.class(class).sources[slot].clone_ref(self.py));
        let name_text = self.tokens.names.clark(self.py, name);
        let table = self.learnt.plans.table(self.py, class);
        let found = self.bridge.call_method1("derived", (table, slot, name_text))?;
        let derived = if found.is_none() { None } else { Some(self.learnt.plans.id(&found)?) };
        self.derived.insert((class, source, name), derived);
        Ok(derived)
    }

    /// The name that an xsi:type means; None where that is in doubt.
    fn qualified(&mut self, index: usize, scope: ScopeId) -> Result<Option<Tag>, Stop> {
        let text = self.tokens.value(index)?;
        let (prefix, local) = text.split_once(':').unwrap_or(("", &text));
        let plain = |part: &str| part.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"-._".contains(&octet));
        if local.is_empty() || !plain(prefix) || !plain(local) || text.starts_with(':') {
            return Ok(None);
        }
        let space = self.tokens.names.find(scope, prefix.as_bytes());
        Ok(space.map(|space| self.tokens.names.tag(space, local)))
    }

    /// The value of an element that is nil as it may be, and has no other attributes and no content; None of any other.
    fn nil(&mut self, start: &Start, nillable: bool) -> Result<Option<Bound<'py, PyAny>>, Stop> {
        let is_alone = matches!(&self.tokens.attributes[..], [one] if one.tag == self.learnt.nil);
        let is_nil = nillable && is_alone && self.tokens.value(0)? == "true";
        let text = self.tokens.content(start, self.depth())?;
        let is_nil = is_nil && text.is_some_and(|text| all_blank(text.as_bytes()));
        Ok(if is_nil { Some(self.bridge.getattr(intern!(self.py, "nil"))?) } else { None })
    }

    /// Sets the text of an object of simple content; false where it is odd.
    fn fill(&mut self, class: ClassId, object: &Bound<'py, PyAny>, text: &str) -> Result<bool, Stop> {
        let Learnt { plans, values, .. } = &mut *self.learnt;
        let class = plans.class(class);
        let (Some((field, kind)), Some(shape)) = (class.text, &class.shape) else { return Ok(false) };
        let Some(value) = values.value(self.py, kind, text)? else { return Ok(false) };
        shape.put(object, field, value);
        Ok(shape.complete(object, &mut self.nursery)?)
    }

    /// Puts a value in its field of an object.
    #[inline]
    fn store(&mut self, frame: &mut Frame<'py>, slot: Slot, value: Bound<'py, PyAny>) {
        let class = self.learnt.plans.class(frame.class);
        let shape = class.shape.as_ref().expect("it made the object");
        if !slot.many {
            shape.put(&frame.object, slot.field, value);
            return;
        }
        let list = match &frame.list {
            Some((last, list)) if *last == slot.field => list,
            _ => {
                let known = shape.get(&frame.object, slot.field).and_then(|list| list.cast_into::<PyList>().ok());
                let list = known.unwrap_or_else(|| self.nursery.list());
                shape.put(&frame.object, slot.field, list.clone().into_any());
                &frame.list.insert((slot.field, list)).1
            }
        };
        list.append(value).expect("a list of our own takes everything");
    }

    /// Notes an odd child of an object, which ends here; true, for the object can take it.
    fn record(&mut self, frame: &mut Frame<'py>, index: usize, start: usize) -> bool {
        let class = self.learnt.plans.class(frame.class);
        let (slot, source) = (class.slots[index], class.sources[index].clone_ref(self.py));
        let none = self.none.clone();
        self.store(frame, slot, none);
        let place = match &frame.list {
            Some((_, list)) if slot.many => Place::Item(list.clone(), list.len() - 1),
            _ => Place::Field(frame.class, frame.object.clone(), slot.field),
        };
        let asked = Asked::Value(source, frame.scope, self.above.clone(), place);
        self.records.push(Record { octets: start..self.tokens.at, asked });
        true
    }

    /// Lets Python read the odd elements, and puts what it makes of them in their places.
    fn settle(&mut self, again: &Bound<'py, PyAny>) -> Result<(), Stop> {
        if self.records.is_empty() {
            return Ok(());
        }
        let values = again.call1(self.questions()?)?;
        give_up_if(values.is_none())?;
        let mut values = values.try_iter()?;
        for record in take(&mut self.records) {
            let Asked::Value(.., place) = record.asked else { continue };
            let value = values.next().ok_or(Stop::GiveUp)??;
            match place {
                Place::Item(list, index) => list.set_item(index, value)?,
                Place::Field(class, object, field) => {
                    let class = self.learnt.plans.class(class);
                    class.shape.as_ref().expect("it made the object").put(&object, field, value);
                }
            }
        }
        Ok(())
    }

    /// What Python is asked: the odd elements as documents, each as it stands, inside elements with the names of those
    /// around it; and the attributes that are not known.
    ///
    /// Neighbours that have scope and names in common share a document. A document comes with the depth of its elements
    /// and, for each, how many lines later it stands in the real document, where it begins there, and its slot. Attributes
    /// come with their line, the place of their element, the table of its class, and their names.
    #[allow(clippy::type_complexity)]
    fn questions(&mut self) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
        let (batches, attributes) = (PyList::empty(self.py), PyList::empty(self.py));
        let data = self.tokens.data;
        let (mut line, mut counted) = (1, 0);
        let mut batch: Option<Batch> = None;
        for Record { octets, asked } in &self.records {
            line += newlines(&data[counted..octets.start]);
            counted = octets.start;
            match asked {
                Asked::Attributes(class, tags) => {
                    let line = line + newlines(&data[octets.clone()]);
                    let names: Vec<_> = tags.iter().map(|tag| self.tokens.names.clark(self.py, *tag)).collect();
                    let table = self.learnt.plans.table(self.py, *class);
                    attributes.append((line, octets.start, table, names))?;
                }
                Asked::Value(source, scope, above, _) => {
                    let (before, after) = self.tokens.around(above.iter().map(|name| &data[name.clone()]), *scope);
                    let fits = |batch: &Batch| {
                        batch.scope == *scope && batch.after == after && batch.document.len() + octets.len() <= BATCH
                    };
                    if !batch.as_ref().is_some_and(fits) {
                        if let Some(batch) = batch.take() {
                            batches.append(batch.whole(self.py))?;
                        }
                        let (depth, scope) = (above.len(), *scope);
                        batch = Some(Batch { document: before, after, depth, scope, line: 1, elements: Vec::new() });
                    }
                    let batch = batch.as_mut().expect("it was made");
                    let lines_before = line as isize - batch.line as isize;
                    batch.elements.push((lines_before, octets.start, source.clone_ref(self.py)));
                    batch.document.extend_from_slice(&data[octets.clone()]);
                    batch.line += newlines(&data[octets.clone()]);
                }
            }
        }
        if let Some(batch) = batch {
            batches.append(batch.whole(self.py))?;
        }
        Ok((batches, attributes))
    }
}

/// Odd elements that share a document.
struct Batch {
    document: Vec<u8>,
    after: Vec<u8>,
    depth: usize,
    scope: ScopeId,
    /// The line of the document's end.
    line: usize,
    elements: Vec<(isize, usize, Py<PyAny>)>,
}

impl Batch {
    #[allow(clippy::type_complexity)]
    fn whole(mut self, py: Python<'_>) -> (Bound<'_, PyBytes>, usize, Vec<(isize, usize, Py<PyAny>)>) {
        self.document.append(&mut self.after);
        (PyBytes::new(py, &self.document), self.depth, self.elements)
    }
}
