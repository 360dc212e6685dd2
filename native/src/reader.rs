//! Makes the objects of a document, in one walk over its octets.
//!
//! An object is odd where something in it departs from its class, or is no matter of this reader. It is then passed, and
//! once the whole document was judged well-formed, Python reads it again from its own octets.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use memchr::{memchr_iter, memrchr};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::names::{Names, ScopeId, Space, Tag, NOWHERE, NO_SPACE, XSI};
use crate::objects::Nursery;
use crate::plans::{ClassId, Code, Form, Plans, Slot};
use crate::tokens::{all_blank, Bounds, Start, Token, Tokens, Unwatched};
use crate::values::Values;
use crate::Stop;

/// Octets of odd elements that are parsed together.
const BATCH: usize = 1 << 16;
/// Fields of an object whose order is remembered.
const SHORT_ORDER: usize = 48;
const MOST_ORDERS: usize = 1024;

/// The field `extras`, which all classes have.
const EXTRAS: usize = 0;

/// What is known from one document to the next.
pub struct State {
    names: Names,
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
    /// The list that the last elements went to, and its field.
    list: Option<(usize, Bound<'py, PyList>)>,
    last: i32,
    /// The slot of the last child.
    previous: Option<usize>,
    start: usize,
    name: Range<usize>,
    scope: ScopeId,
    /// The slot of the parent that it goes to.
    slot: usize,
    /// Where its part of the order begins.
    order: usize,
}

/// Where a value goes that is made at the end.
enum Place<'py> {
    Field(ClassId, Bound<'py, PyAny>, usize),
    Item(Bound<'py, PyList>, usize),
}

/// An odd element.
struct Record<'py> {
    octets: Range<usize>,
    source: Py<PyAny>,
    scope: ScopeId,
    above: Vec<Range<usize>>,
    place: Place<'py>,
}

/// The declared class of an element with an xsi:type, the class and slot that it stands in, and the name.
type Asked = (ClassId, Option<(ClassId, usize)>, Tag);

/// The header and the body of an envelope, its namespace, and where it can be taken apart.
pub struct Envelope<'py> {
    pub header: Bound<'py, PyAny>,
    pub body: Bound<'py, PyAny>,
    pub namespace: &'static str,
    pub cuts: Option<Cuts>,
}

/// Where the header is, the name in the start tag of the body's element, and the name in its end tag.
pub type Cuts = (usize, usize, usize, usize, usize);

/// What the start tag of an object says.
enum Entered<'py> {
    Object(ClassId, Bound<'py, PyAny>),
    Nil,
    Odd,
    /// Nothing that the parent can take.
    OddParent,
}

/// One walk over a document.
struct Walk<'s, 'd, 'py> {
    py: Python<'py>,
    bridge: &'s Bound<'py, PyAny>,
    state: &'s mut State,
    tokens: Tokens<'d>,
    nursery: Nursery<'py>,
    frames: Vec<Frame<'py>>,
    records: Vec<Record<'py>>,
    /// The fields of the elements of open objects whose order is checked by Python.
    order: Vec<u16>,
    /// Elements around the root.
    around: usize,
    /// The classes that an xsi:type stood for in this document, by the class, the slot and the name; None for an odd one.
    derived: HashMap<Asked, Option<ClassId>>,
    none: Bound<'py, PyAny>,
}

impl State {
    pub fn new() -> State {
        let mut names = Names::new();
        let xsi = names.space(XSI);
        let (nil, kind) = (names.tag(xsi, "nil"), names.tag(xsi, "type"));
        State { names, plans: Plans::new(), values: Values::new(), xsi, nil, kind }
    }

    /// Prepares for the next document; false where a new state is better.
    pub fn rest(&mut self) -> bool {
        self.names.begin()
    }

    /// The object of a document.
    pub fn document<'py>(
        &mut self,
        bridge: &Bound<'py, PyAny>,
        data: &[u8],
        table: Option<&Bound<'py, PyAny>>,
        again: &Bound<'py, PyAny>,
        bounds: Bounds,
    ) -> Result<Bound<'py, PyAny>, Stop> {
        let mut walk = self.walk(bridge, data, bounds)?;
        walk.tokens.prolog()?;
        let at = walk.tokens.at;
        let start = walk.tokens.start_tag(&mut walk.state.names, NOWHERE)?;
        let root = walk.root(table, None, at, &start)?;
        walk.tokens.epilog()?;
        walk.settle(again)?;
        Ok(root)
    }

    /// The header and the body of an envelope that has nothing beside them.
    ///
    /// Args: as for a document, but the table of the header's class, and the package that the body's is looked for in.
    pub fn envelope<'py>(
        &mut self,
        bridge: &Bound<'py, PyAny>,
        data: &[u8],
        table: &Bound<'py, PyAny>,
        package: Option<&str>,
        again: &Bound<'py, PyAny>,
        bounds: Bounds,
    ) -> Result<Envelope<'py>, Stop> {
        let mut walk = self.walk(bridge, data, bounds)?;
        walk.tokens.prolog()?;
        let envelope = walk.envelope(table, package)?;
        walk.tokens.epilog()?;
        walk.settle(again)?;
        Ok(envelope)
    }

    fn walk<'s, 'd, 'py>(
        &'s mut self,
        bridge: &'s Bound<'py, PyAny>,
        data: &'d [u8],
        bounds: Bounds,
    ) -> Result<Walk<'s, 'd, 'py>, Stop> {
        let py = bridge.py();
        let tokens = Tokens::new(data, bounds)?;
        let none = py.None().into_bound(py);
        let (frames, records, order) = (Vec::new(), Vec::new(), Vec::new());
        let (nursery, derived) = (Nursery::new(py), HashMap::new());
        Ok(Walk { py, bridge, state: self, tokens, nursery, frames, records, order, around: 0, derived, none })
    }
}

const SOAP: [&str; 2] = ["http://schemas.xmlsoap.org/soap/envelope/", "http://www.w3.org/2003/05/soap-envelope"];

impl<'py> Walk<'_, '_, 'py> {
    fn envelope(&mut self, table: &Bound<'py, PyAny>, package: Option<&str>) -> Result<Envelope<'py>, Stop> {
        let whole = self.tokens.start_tag(&mut self.state.names, NOWHERE)?;
        let namespace = SOAP.into_iter().find(|space| self.is_shell(&whole, space, "Envelope"));
        let namespace = namespace.ok_or(Stop::GiveUp)?;
        let outer = self.shell(whole.scope, namespace, "Header")?;
        self.around = 2;
        let begin = self.gap(Token::Start)?;
        let start = self.tokens.start_tag(&mut self.state.names, outer.scope)?;
        let tag = self.state.names.element(start.scope, &self.tokens.data[start.name.clone()])?;
        if !table.getattr("tag")?.eq(self.state.names.clark(self.py, tag))? {
            return Err(Stop::GiveUp);
        }
        let header = self.root(Some(table), None, begin, &start)?;
        let mut is_plain = self.state.names.find(start.scope, b"") == Some(NO_SPACE);
        let end = self.tokens.at;
        self.gap(Token::End)?;
        self.tokens.end_tag(&outer.name)?;
        let outer = self.shell(whole.scope, namespace, "Body")?;
        let at = self.gap(Token::Start)?;
        let start = self.tokens.start_tag(&mut self.state.names, outer.scope)?;
        let tag = self.state.names.element(start.scope, &self.tokens.data[start.name.clone()])?;
        let soap = self.state.names.space(namespace);
        if self.state.names.is_in(tag, soap) {
            return Err(Stop::GiveUp);
        }
        let body = self.root(None, package, at, &start)?;
        let last = memrchr(b'<', &self.tokens.data[..self.tokens.at]).unwrap_or(0) + 2;
        self.gap(Token::End)?;
        self.tokens.end_tag(&outer.name)?;
        self.gap(Token::End)?;
        self.tokens.end_tag(&whole.name)?;
        is_plain &= !start.is_empty && self.records.is_empty();
        let cuts = is_plain.then_some((begin, end, start.name.start, start.name.end, last));
        Ok(Envelope { header, body, namespace, cuts })
    }

    /// Reads the start tag of an element that only holds others.
    fn shell(&mut self, scope: ScopeId, namespace: &str, local: &str) -> Result<Start, Stop> {
        self.gap(Token::Start)?;
        let start = self.tokens.start_tag(&mut self.state.names, scope)?;
        if self.is_shell(&start, namespace, local) {
            Ok(start)
        } else {
            Err(Stop::GiveUp)
        }
    }

    fn is_shell(&mut self, start: &Start, namespace: &str, local: &str) -> bool {
        let names = &mut self.state.names;
        let space = names.space(namespace);
        let named = names.element(start.scope, &self.tokens.data[start.name.clone()]);
        named.is_ok_and(|tag| names.is_in(tag, space) && names.local(tag) == local)
            && self.tokens.attributes.is_empty()
            && !start.is_empty
    }

    /// Passes blanks and comments up to a tag, whose place it gives.
    fn gap(&mut self, wanted: Token) -> Result<usize, Stop> {
        loop {
            let run = self.tokens.run()?;
            if !all_blank(&self.tokens.data[run]) {
                return Err(Stop::GiveUp);
            }
            match self.tokens.markup()? {
                Token::Aside => {}
                found if std::mem::discriminant(&found) == std::mem::discriminant(&wanted) => return Ok(self.tokens.at),
                _ => return Err(Stop::GiveUp),
            }
        }
    }
}

impl<'d, 'py> Walk<'_, 'd, 'py> {
    /// The object of an element that stands for itself, whose start tag was read.
    ///
    /// Args: the table of its class, or None and the package that it is looked for in; where the tag begins, and the tag.
    fn root(
        &mut self,
        table: Option<&Bound<'py, PyAny>>,
        package: Option<&str>,
        at: usize,
        start: &Start,
    ) -> Result<Bound<'py, PyAny>, Stop> {
        let tag = self.state.names.element(start.scope, &self.tokens.data[start.name.clone()])?;
        let found;
        let table = match table {
            Some(table) => table,
            None => {
                found = self.bridge.call_method1("find", (self.state.names.clark(self.py, tag), package))?;
                &found
            }
        };
        if table.is_none() {
            return Err(Stop::GiveUp);
        }
        let class = self.state.plans.id(table)?;
        let is_element = !table.getattr("element")?.is_none();
        let Entered::Object(class, object) = self.enter(start, class, false, is_element, None)? else {
            return Err(Stop::GiveUp);
        };
        if self.state.plans.class(class).form == Form::Text {
            let text = self.text(start, self.around + 1)?;
            return match text {
                Some(text) if self.fill(class, &object, &text)? => Ok(object),
                _ => Err(Stop::GiveUp),
            };
        }
        self.open(class, object, at, start, 0);
        if start.is_empty {
            return self.complete()?.ok_or(Stop::GiveUp);
        }
        loop {
            if let Some(object) = self.step()? {
                return Ok(object);
            }
        }
    }

    fn open(&mut self, class: ClassId, object: Bound<'py, PyAny>, at: usize, start: &Start, slot: usize) {
        self.frames.push(Frame {
            class,
            object,
            list: None,
            last: -1,
            previous: None,
            start: at,
            name: start.name.clone(),
            scope: start.scope,
            slot,
            order: self.order.len(),
        });
    }

    fn top(&mut self) -> &mut Frame<'py> {
        self.frames.last_mut().expect("an element is open")
    }

    /// Reads what comes next in the innermost open element; the object of the root once it is complete.
    fn step(&mut self) -> Result<Option<Bound<'py, PyAny>>, Stop> {
        let run = self.tokens.run()?;
        if !all_blank(&self.tokens.data[run.clone()]) {
            self.tokens.check(run)?;
            return self.odd();
        }
        match self.tokens.markup()? {
            Token::Start => self.child(),
            Token::Aside => Ok(None),
            Token::Section(span) if all_blank(&self.tokens.data[span.clone()]) => Ok(None),
            Token::Section(_) => self.odd(),
            Token::End => {
                let name = self.top().name.clone();
                self.tokens.end_tag(&name)?;
                self.close()
            }
        }
    }

    /// Takes the innermost element, whose end was read.
    fn close(&mut self) -> Result<Option<Bound<'py, PyAny>>, Stop> {
        let (slot, start) = (self.top().slot, self.top().start);
        let made = self.complete()?;
        if self.frames.is_empty() {
            return made.map(Some).ok_or(Stop::GiveUp);
        }
        match made {
            Some(object) => self.store(slot, object),
            None => self.record(slot, start),
        }
        Ok(None)
    }

    /// Takes the innermost object off; None where it is odd.
    fn complete(&mut self) -> Result<Option<Bound<'py, PyAny>>, Stop> {
        let frame = self.frames.pop().expect("an element is open");
        let class = self.state.plans.class(frame.class);
        let is_complete =
            class.shape.as_ref().expect("it made the object").complete(&frame.object, &mut self.nursery)?;
        if !is_complete || (class.checked && !self.is_in_order(&frame)?) {
            self.forget(&frame);
            return Ok(None);
        }
        self.order.truncate(frame.order);
        Ok(Some(frame.object))
    }

    fn forget(&mut self, frame: &Frame<'py>) {
        self.order.truncate(frame.order);
        while self.records.last().is_some_and(|record| record.octets.start >= frame.start) {
            self.records.pop();
        }
    }

    /// Whether the content model allows the elements that were met, and there is nothing to keep about their order.
    fn is_in_order(&mut self, frame: &Frame<'py>) -> Result<bool, Stop> {
        let order = &self.order[frame.order..];
        if let Some(found) = self.state.plans.class(frame.class).verdicts.get(order) {
            return Ok(*found);
        }
        let table = self.state.plans.table(self.py, frame.class);
        let found: bool = self.bridge.call_method1("allows", (table, order.to_vec()))?.extract()?;
        let verdicts = &mut self.state.plans.class(frame.class).verdicts;
        if order.len() <= SHORT_ORDER && verdicts.len() < MOST_ORDERS {
            verdicts.insert(order.into(), found);
        }
        Ok(found)
    }

    /// Passes the rest of the innermost object, which is odd.
    fn odd(&mut self) -> Result<Option<Bound<'py, PyAny>>, Stop> {
        let depth = self.around + self.frames.len();
        let frame = self.frames.pop().expect("an element is open");
        if self.frames.is_empty() {
            return Err(Stop::GiveUp);
        }
        self.forget(&frame);
        self.tokens.pass(&mut self.state.names, &frame.name, frame.scope, depth, &mut Unwatched)?;
        self.record(frame.slot, frame.start);
        Ok(None)
    }

    /// Reads a child of the innermost element.
    fn child(&mut self) -> Result<Option<Bound<'py, PyAny>>, Stop> {
        let at = self.tokens.at;
        let depth = self.around + self.frames.len() + 1;
        if depth > self.tokens.bounds.depth {
            return Err(Stop::GiveUp);
        }
        let frame = self.frames.last_mut().expect("an element is open");
        let class = self.state.plans.class(frame.class);
        let (start, index) =
            class.children.read(&mut self.tokens, &mut self.state.names, frame.scope, frame.previous)?;
        let Some(index) = index else {
            self.pass(&start, depth)?;
            return self.odd();
        };
        let slot = class.slots[index];
        if class.ordered {
            if slot.order <= frame.last {
                self.pass(&start, depth)?;
                return self.odd();
            }
            frame.last = if slot.many { slot.order - 1 } else { slot.order };
        }
        let is_checked = class.checked;
        frame.previous = Some(index);
        if is_checked {
            let order = &self.order[frame.order..];
            if !slot.many && order.contains(&(slot.field as u16)) {
                self.pass(&start, depth)?;
                return self.odd();
            }
            self.order.push(slot.field as u16);
        }
        match slot.code {
            Code::Simple(kind) => {
                let value = if self.tokens.attributes.is_empty() {
                    let text = self.text(&start, depth)?;
                    let values = &mut self.state.values;
                    text.map_or(Ok(None), |text| values.value(self.py, kind, &text))?
                } else if self.is_nil(slot.nillable)? {
                    self.nil(&start, depth)?
                } else {
                    self.pass(&start, depth)?;
                    None
                };
                match value {
                    Some(value) => self.store(index, value),
                    None => return self.odd(),
                }
            }
            Code::Object(class) => return self.object(&start, at, index, slot, class),
            Code::Keep => {
                self.pass(&start, depth)?;
                self.record(index, at);
            }
        }
        Ok(None)
    }

    /// Begins the object of a child.
    fn object(
        &mut self,
        start: &Start,
        at: usize,
        index: usize,
        slot: Slot,
        class: ClassId,
    ) -> Result<Option<Bound<'py, PyAny>>, Stop> {
        let depth = self.around + self.frames.len() + 1;
        let source = (self.top().class, index);
        match self.enter(start, class, slot.nillable, slot.member, Some(source))? {
            Entered::Object(class, object) => {
                if self.state.plans.class(class).form == Form::Text {
                    match self.text(start, depth)? {
                        Some(text) if self.fill(class, &object, &text)? => self.store(index, object),
                        _ => self.record(index, at),
                    }
                    return Ok(None);
                }
                self.open(class, object, at, start, index);
                if start.is_empty {
                    self.close()
                } else {
                    Ok(None)
                }
            }
            Entered::Nil => match self.nil(start, depth)? {
                Some(nil) => {
                    self.store(index, nil);
                    Ok(None)
                }
                None => self.odd(),
            },
            Entered::Odd => {
                self.pass(start, depth)?;
                self.record(index, at);
                Ok(None)
            }
            Entered::OddParent => {
                self.pass(start, depth)?;
                self.odd()
            }
        }
    }

    /// Makes an object of a start tag: its class is the declared one or that of its xsi:type, its attributes are set.
    ///
    /// Args: the tag, the declared class, whether the element may be nil, whether its name says more than its class
    /// does, and the class and slot that it stands in.
    fn enter(
        &mut self,
        start: &Start,
        mut class: ClassId,
        nillable: bool,
        is_named: bool,
        source: Option<(ClassId, usize)>,
    ) -> Result<Entered<'py>, Stop> {
        let mut kept: Option<Bound<'py, PyDict>> = None;
        let mut typed = None;
        if !self.tokens.attributes.is_empty() {
            if self.tokens.attributes.iter().any(|one| one.tag == self.state.nil) {
                return Ok(if self.is_nil(nillable)? { Entered::Nil } else { Entered::OddParent });
            }
            if let Some(index) = self.tokens.attributes.iter().position(|one| one.tag == self.state.kind) {
                let Some(name) = self.qualified(index, start.scope)? else { return Ok(Entered::Odd) };
                let Some(derived) = self.derived(class, source, name)? else { return Ok(Entered::Odd) };
                if derived == class {
                    typed = Some(self.state.names.clark(self.py, name));
                } else if is_named {
                    return Ok(Entered::Odd);
                }
                class = derived;
            }
        }
        let State { plans, names, values, xsi, kind: type_tag, .. } = &mut *self.state;
        plans.meet(self.bridge, class, names, values)?;
        let known = plans.class(class);
        if known.is_abstract || known.form == Form::Other || (known.form == Form::Text && typed.is_some()) {
            return Ok(Entered::Odd);
        }
        let shape = known.shape.as_ref().expect("such forms have one");
        let object = self.nursery.object(shape)?;
        for (index, attribute) in self.tokens.attributes.iter().enumerate() {
            let is_type = attribute.tag == *type_tag;
            if is_type && typed.is_none() {
                continue;
            }
            let text = self.tokens.value(index)?;
            if let Some((field, kind)) = known.attributes.get(&attribute.tag) {
                let Some(value) = values.value(self.py, *kind, &text)? else { return Ok(Entered::Odd) };
                shape.put(&object, *field, value);
            } else if names.is_in(attribute.tag, *xsi) {
                let kept = kept.get_or_insert_with(|| PyDict::new(self.py));
                let name = names.clark(self.py, attribute.tag);
                match &typed {
                    Some(kind) if is_type => kept.set_item(name, kind)?,
                    _ => kept.set_item(name, text)?,
                }
            } else {
                return Ok(Entered::Odd);
            }
        }
        if let Some(kept) = kept {
            shape.put(&object, EXTRAS, self.bridge.call_method1(intern!(self.py, "extras"), (kept,))?);
        }
        Ok(Entered::Object(class, object))
    }

    /// The class that an xsi:type stands for; None where it is odd.
    fn derived(&mut self, class: ClassId, source: Option<(ClassId, usize)>, name: Tag) -> PyResult<Option<ClassId>> {
        if let Some(found) = self.derived.get(&(class, source, name)) {
            return Ok(*found);
        }
        let slot = source.map(|(class, slot)| self.state.plans.class(class).sources[slot].clone_ref(self.py));
        let name_text = self.state.names.clark(self.py, name);
        let table = self.state.plans.table(self.py, class);
        let found = self.bridge.call_method1("derived", (table, slot, name_text))?;
        let derived = if found.is_none() { None } else { Some(self.state.plans.id(&found)?) };
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
        let space = self.state.names.find(scope, prefix.as_bytes());
        Ok(space.map(|space| self.state.names.tag(space, local)))
    }

    /// Whether the last start tag says that its element is nil, as it may be, and nothing else.
    fn is_nil(&self, nillable: bool) -> Result<bool, Stop> {
        let [attribute] = &self.tokens.attributes[..] else { return Ok(false) };
        Ok(nillable && attribute.tag == self.state.nil && self.tokens.value(0)? == "true")
    }

    /// The value of an element that is nil; None where it has content all the same.
    fn nil(&mut self, start: &Start, depth: usize) -> Result<Option<Bound<'py, PyAny>>, Stop> {
        let text = self.text(start, depth)?;
        let is_blank = text.is_some_and(|text| all_blank(text.as_bytes()));
        Ok(if is_blank { Some(self.bridge.getattr(intern!(self.py, "nil"))?) } else { None })
    }

    fn pass(&mut self, start: &Start, depth: usize) -> Result<(), Stop> {
        self.tokens.pass_all(&mut self.state.names, start, depth)
    }

    fn text(&mut self, start: &Start, depth: usize) -> Result<Option<Cow<'d, str>>, Stop> {
        self.tokens.content(&mut self.state.names, start, depth)
    }
}

impl<'py> Walk<'_, '_, 'py> {
    /// Sets the text of an object of simple content; false where it is odd.
    fn fill(&mut self, class: ClassId, object: &Bound<'py, PyAny>, text: &str) -> Result<bool, Stop> {
        let State { plans, values, .. } = &mut *self.state;
        let class = plans.class(class);
        let (Some((field, kind)), Some(shape)) = (class.text, &class.shape) else { return Ok(false) };
        let Some(value) = values.value(self.py, kind, text)? else { return Ok(false) };
        shape.put(object, field, value);
        Ok(shape.complete(object, &mut self.nursery)?)
    }

    /// Puts a value in its field of the innermost object.
    fn store(&mut self, index: usize, value: Bound<'py, PyAny>) {
        let frame = self.frames.last_mut().expect("an element is open");
        let class = self.state.plans.class(frame.class);
        let shape = class.shape.as_ref().expect("it made the object");
        let Slot { field, many, .. } = class.slots[index];
        if !many {
            shape.put(&frame.object, field, value);
            return;
        }
        if frame.list.as_ref().is_none_or(|(last, _)| *last != field) {
            let known = shape.get(&frame.object, field).and_then(|list| list.cast_into::<PyList>().ok());
            let list = known.unwrap_or_else(|| self.nursery.list());
            shape.put(&frame.object, field, list.clone().into_any());
            frame.list = Some((field, list));
        }
        let (_, list) = frame.list.as_ref().expect("it was set");
        list.append(value).expect("a list of our own takes everything");
    }

    /// Notes an odd child of the innermost object, which ends here.
    fn record(&mut self, index: usize, start: usize) {
        let none = self.none.clone();
        self.store(index, none);
        let frame = self.frames.last().expect("an element is open");
        let class = self.state.plans.class(frame.class);
        let Slot { field, many, .. } = class.slots[index];
        let place = match &frame.list {
            Some((_, list)) if many => Place::Item(list.clone(), list.len() - 1),
            _ => Place::Field(frame.class, frame.object.clone(), field),
        };
        self.records.push(Record {
            octets: start..self.tokens.at,
            source: class.sources[index].clone_ref(self.py),
            scope: frame.scope,
            above: self.frames.iter().map(|frame| frame.name.clone()).collect(),
            place,
        });
    }

    /// Lets Python read the odd elements, and puts what it makes of them in their places.
    fn settle(&mut self, again: &Bound<'py, PyAny>) -> Result<(), Stop> {
        if self.records.is_empty() {
            return Ok(());
        }
        let values = again.call1((self.batches()?,))?;
        if values.is_none() {
            return Err(Stop::GiveUp);
        }
        for (record, value) in std::mem::take(&mut self.records).into_iter().zip(values.try_iter()?) {
            match record.place {
                Place::Item(list, index) => list.set_item(index, value?)?,
                Place::Field(class, object, field) => {
                    let class = self.state.plans.class(class);
                    class.shape.as_ref().expect("it made the object").put(&object, field, value?);
                }
            }
        }
        Ok(())
    }

    /// The odd elements as documents: each as it stands, inside elements with the names of those around it. Neighbours
    /// that have these in common share a document.
    ///
    /// A document comes with the depth of its elements and, for each, how many lines later it stands in the real
    /// document, where it begins there, and its slot.
    fn batches(&mut self) -> PyResult<Bound<'py, PyList>> {
        let batches = PyList::empty(self.py);
        let data = self.tokens.data;
        let (mut line, mut counted, mut at) = (1_isize, 0, 0);
        while at < self.records.len() {
            let first = &self.records[at];
            let locals = self.locals(&first.above);
            let head = self.head(&locals, first.scope);
            let mut document = head.into_bytes();
            let mut document_line = 1;
            let mut elements = Vec::new();
            while let Some(record) = self.records.get(at) {
                let is_full = !elements.is_empty() && document.len() + record.octets.len() > BATCH;
                if is_full || record.scope != first.scope || self.locals(&record.above) != locals {
                    break;
                }
                line += newlines(&data[counted..record.octets.start]);
                counted = record.octets.start;
                elements.push((line - document_line, counted, record.source.clone_ref(self.py)));
                document.extend_from_slice(&data[record.octets.clone()]);
                document_line += newlines(&data[record.octets.clone()]);
                at += 1;
            }
            for local in locals.iter().rev() {
                document.extend_from_slice(format!("</{local}>").as_bytes());
            }
            batches.append((PyBytes::new(self.py, &document), locals.len(), elements))?;
        }
        Ok(batches)
    }

    fn locals(&self, above: &[Range<usize>]) -> Vec<&str> {
        above.iter().map(|name| self.tokens.text[name.clone()].rsplit(':').next().unwrap_or("")).collect()
    }

    fn head(&self, locals: &[&str], scope: ScopeId) -> String {
        let mut made: String = locals.iter().map(|local| format!("<{local}>")).collect();
        made.pop();
        for (prefix, space) in self.state.names.in_scope(scope) {
            let colon = if prefix.is_empty() { "" } else { ":" };
            made += &format!(" xmlns{colon}{prefix}=\"{space}\"");
        }
        made + ">"
    }
}

fn newlines(octets: &[u8]) -> isize {
    memchr_iter(b'\n', octets).count() as isize
}
