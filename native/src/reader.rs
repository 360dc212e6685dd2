//! Makes the objects of a document, in one walk over its octets.
//!
//! An object is odd where something in it departs from its class, or is no matter of this reader. It is then passed, and
//! once the whole document was judged well-formed, Python reads it again from its own octets.

use std::collections::HashMap;
use std::mem::take;
use std::ops::Range;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::names::{Names, ScopeId, Tag, NIL, NOWHERE, NO_SPACE, SOAP, TYPE, XSI_SPACE};
use crate::objects::Nursery;
use crate::plans::{ClassId, Code, Plans, Slot};
use crate::tokens::{Bounds, Start, Tokens};
use crate::values::Values;
use crate::{give_up_if, odd_if, unless_odd, Stop};

/// Fields of an object whose order is remembered.
const SHORT_ORDER: usize = 48;
const MOST_ORDERS: usize = 1024;

/// The field `extras`, which all classes have.
const EXTRAS: usize = 0;

/// What is known from one document to the next.
pub struct State {
    pub names: Names,
    plans: Plans,
    values: Values,
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

/// What Python has a say in, at some octets of the document.
pub struct Record<'py> {
    octets: Range<usize>,
    asked: Asked<'py>,
}

enum Asked<'py> {
    /// The value of an odd element: its slot, the scope around it, the names of the elements around it, and what takes the
    /// value: an object, or a list at an index.
    Value(Py<PyAny>, ScopeId, Vec<Range<usize>>, Bound<'py, PyAny>, Option<usize>),
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
    plans: &'s mut Plans,
    values: &'s mut Values,
    pub tokens: Tokens<'d, 's>,
    nursery: Nursery<'py>,
    /// The names of the objects' elements that are open.
    above: Vec<Range<usize>>,
    pub records: Vec<Record<'py>>,
    /// The fields of the elements of open objects whose order is checked by Python.
    order: Vec<u16>,
    /// The classes that an xsi:type stood for in this document; None for an odd one.
    derived: HashMap<Typed, Option<ClassId>>,
    none: Bound<'py, PyAny>,
}

impl State {
    pub fn new() -> State {
        State { names: Names::new(), plans: Plans::new(), values: Values::new() }
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
            plans: &mut self.plans,
            values: &mut self.values,
            tokens: Tokens::new(data, &mut self.names, bounds)?,
            nursery: Nursery::new(py),
            above: Vec::new(),
            records: Vec::new(),
            order: Vec::new(),
            derived: HashMap::new(),
            none: py.None().into_bound(py),
        })
    }
}

impl<'py> Walk<'_, '_, 'py> {
    /// The object of a document, whose class has a table or is found by its name.
    pub fn document(&mut self, table: Option<&Bound<'py, PyAny>>) -> Result<Bound<'py, PyAny>, Stop> {
        let start = self.tokens.start_tag(NOWHERE)?;
        self.root(table, None, &start)
    }

    /// The header and the body of an envelope that has nothing beside them.
    ///
    /// Args: the table of the header's class, and the package that the body's is looked for in.
    pub fn envelope(&mut self, table: &Bound<'py, PyAny>, package: Option<&str>) -> Result<Envelope<'py>, Stop> {
        let (whole, namespace) = self.shell(NOWHERE, &SOAP, "Envelope")?;
        let (outer, _) = self.shell(whole.scope, &[namespace], "Header")?;
        let start = self.start(outer.scope)?;
        let tag = self.tokens.tag(&start)?;
        give_up_if(!table.getattr("tag")?.eq(self.tokens.names.clark(self.py, tag))?)?;
        let header = self.root(Some(table), None, &start)?;
        let (begin, end) = (start.at(), self.tokens.at);
        let mut is_plain = self.tokens.names.find(start.scope, b"") == Some(NO_SPACE);
        self.end(&outer)?;
        let (outer, _) = self.shell(whole.scope, &[namespace], "Body")?;
        let start = self.start(outer.scope)?;
        let (tag, soap) = (self.tokens.tag(&start)?, self.tokens.names.space(namespace));
        give_up_if(self.tokens.names.is_in(tag, soap))?;
        let body = self.root(None, package, &start)?;
        let last = self.tokens.last_tag + 2;
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
        let start = self.start(scope)?;
        let tag = self.tokens.tag(&start)?;
        let names = &mut self.tokens.names;
        let found = namespaces.iter().find(|uri| tag == names.known(uri, local)).ok_or(Stop::GiveUp)?;
        give_up_if(start.is_empty || !self.tokens.attributes.is_empty())?;
        Ok((start, *found))
    }

    /// Reads the next start tag, with nothing before it.
    fn start(&mut self, scope: ScopeId) -> Result<Start, Stop> {
        give_up_if(!self.tokens.next_tag()?)?;
        self.tokens.start_tag(scope)
    }

    /// Reads the end tag of an element that only holds others.
    fn end(&mut self, start: &Start) -> Result<(), Stop> {
        give_up_if(self.tokens.next_tag()?)?;
        self.tokens.end_tag(self.tokens.raw(start))
    }
}

impl<'py> Walk<'_, '_, 'py> {
    /// Forgets what is open, and what Python has a say in.
    pub fn forget(&mut self) {
        self.above.clear();
        self.records.clear();
        self.order.clear();
    }

    /// The object of an element that stands for itself, whose start tag was read.
    ///
    /// Args: the table of its class, or None and the package that it is looked for in; and the tag.
    pub fn root(
        &mut self,
        table: Option<&Bound<'py, PyAny>>,
        package: Option<&str>,
        start: &Start,
    ) -> Result<Bound<'py, PyAny>, Stop> {
        let table = match table {
            Some(table) => table.clone(),
            None => {
                let tag = self.tokens.tag(start)?;
                self.bridge.call_method1("find", (self.tokens.names.clark(self.py, tag), package))?
            }
        };
        give_up_if(table.is_none() || self.tokens.attribute(NIL).is_some())?;
        let class = self.plans.id(&table)?;
        let is_element = !table.getattr("element")?.is_none();
        self.object(start, class, is_element, None)
    }

    /// The object of an element whose start tag was read, of the declared class or that of its xsi:type. Where it is odd,
    /// its element may not have been read to the end.
    ///
    /// Args: the tag, the declared class, whether the element's name says more than its class does, the class and slot that
    /// it stands in.
    fn object(
        &mut self,
        start: &Start,
        class: ClassId,
        is_named: bool,
        source: Option<(ClassId, usize)>,
    ) -> Result<Bound<'py, PyAny>, Stop> {
        let (class, mut object) = self.enter(start, class, is_named, source)?;
        if let Some((field, kind)) = self.plans.class(class).text {
            let text = self.tokens.content(start)?;
            let value = self.values.value(self.py, kind, &text)?;
            self.plans.shape(class).put(&object, field, value);
        } else {
            let order = self.order.len();
            let mut frame = Frame { class, object, scope: start.scope, list: None, last: -1, previous: None, order };
            self.above.push(start.name.clone());
            if !start.is_empty {
                self.children(&mut frame, start)?;
            }
            self.above.pop();
            odd_if(self.plans.class(class).checked && !self.is_in_order(&frame)?)?;
            self.order.truncate(order);
            object = frame.object;
        }
        odd_if(!self.plans.shape(class).complete(&object, &mut self.nursery)?)?;
        Ok(object)
    }

    /// Reads the children of an object's element and its end tag.
    fn children(&mut self, frame: &mut Frame<'py>, start: &Start) -> Result<(), Stop> {
        while self.tokens.next_tag()? {
            let class = self.plans.class(frame.class);
            let (child, index) = class.children.read(&mut self.tokens, frame.scope, frame.previous)?;
            let slot = index.map(|index| (index, class.slots[index]));
            let slot = slot.filter(|(_, slot)| !class.ordered || slot.order > frame.last);
            let is_checked = class.checked;
            let taken = match slot {
                Some((index, slot)) => self.child(frame, &child, index, slot, is_checked),
                None => Err(Stop::Odd),
            };
            if let Err(Stop::Odd) = taken {
                self.tokens.pass(&child)?;
            }
            taken?;
        }
        self.tokens.end_tag(self.tokens.raw(start))
    }

    /// Whether the content model allows the elements that were met, and there is nothing to keep about their order.
    fn is_in_order(&mut self, frame: &Frame<'py>) -> Result<bool, Stop> {
        let order = &self.order[frame.order..];
        if let Some(found) = self.plans.class(frame.class).verdicts.get(order) {
            return Ok(*found);
        }
        let table = self.plans.table(self.py, frame.class);
        let found: bool = self.bridge.call_method1("allows", (table, order.to_vec()))?.extract()?;
        let verdicts = &mut self.plans.class(frame.class).verdicts;
        if order.len() <= SHORT_ORDER && verdicts.len() < MOST_ORDERS {
            verdicts.insert(order.into(), found);
        }
        Ok(found)
    }

    /// Reads a child of an object's element, whose start tag was read; odd where that makes the object odd.
    #[inline]
    fn child(
        &mut self,
        frame: &mut Frame<'py>,
        start: &Start,
        index: usize,
        slot: Slot,
        is_checked: bool,
    ) -> Result<(), Stop> {
        frame.last = if slot.many { slot.order - 1 } else { slot.order };
        frame.previous = Some(index);
        if is_checked {
            let field = slot.field as u16;
            odd_if(!slot.many && self.order[frame.order..].contains(&field))?;
            self.order.push(field);
        }
        let value = match slot.code {
            Code::Keep => None,
            _ if self.tokens.attribute(NIL).is_some() => {
                odd_if(!slot.nillable)?;
                self.tokens.nil(start)?;
                Some(self.bridge.getattr(intern!(self.py, "nil"))?)
            }
            Code::Simple(kind) => {
                odd_if(!self.tokens.attributes.is_empty())?;
                let text = self.tokens.content(start)?;
                Some(self.values.value(self.py, kind, &text)?)
            }
            Code::Object(class) => {
                let before = (self.records.len(), self.order.len(), self.above.len());
                let made = unless_odd(self.object(start, class, slot.member, Some((frame.class, index))))?;
                if made.is_none() {
                    self.records.truncate(before.0);
                    self.order.truncate(before.1);
                    self.above.truncate(before.2);
                }
                made
            }
        };
        match value {
            Some(value) => self.store(frame, slot, value),
            None => {
                self.tokens.pass(start)?;
                self.record(frame, index, start.at());
            }
        }
        Ok(())
    }

    /// Makes an object of a start tag, and sets what its attributes say.
    fn enter(
        &mut self,
        start: &Start,
        mut class: ClassId,
        is_named: bool,
        source: Option<(ClassId, usize)>,
    ) -> Result<(ClassId, Bound<'py, PyAny>), Stop> {
        let mut typed = None;
        if let Some(index) = self.tokens.attribute(TYPE) {
            let name = self.qualified(index, start.scope)?;
            let derived = self.derived(class, source, name)?;
            if derived == class {
                typed = Some(self.tokens.names.clark(self.py, name));
            }
            odd_if(derived != class && is_named)?;
            class = derived;
        }
        self.plans.meet(self.bridge, class, self.tokens.names, self.values)?;
        let known = self.plans.class(class);
        odd_if(known.text.is_some() && typed.is_some())?;
        let shape = known.shape.as_ref().ok_or(Stop::Odd)?;
        let object = self.nursery.object(shape)?;
        let mut kept: Option<Bound<'py, PyDict>> = None;
        let mut unknown = Vec::new();
        for (index, attribute) in self.tokens.attributes.iter().enumerate() {
            let text = self.tokens.value(index)?;
            if let Some((field, kind)) = known.attributes.get(&attribute.tag) {
                let value = self.values.value(self.py, *kind, &text)?;
                shape.put(&object, *field, value);
                continue;
            }
            let text = match &typed {
                Some(kind) if attribute.tag == TYPE => kind.clone(),
                None if attribute.tag == TYPE => continue,
                _ => PyString::new(self.py, &text),
            };
            if !self.tokens.names.is_in(attribute.tag, XSI_SPACE) {
                unknown.push(attribute.tag);
            }
            let name = self.tokens.names.clark(self.py, attribute.tag);
            kept.get_or_insert_with(|| PyDict::new(self.py)).set_item(name, text)?;
        }
        if let Some(kept) = kept {
            shape.put(&object, EXTRAS, self.bridge.call_method1(intern!(self.py, "extras"), (kept,))?);
        }
        if !unknown.is_empty() {
            self.records.push(Record { octets: start.at()..start.end, asked: Asked::Attributes(class, unknown) });
        }
        Ok((class, object))
    }

    /// The class that an xsi:type stands for.
    fn derived(&mut self, class: ClassId, source: Option<(ClassId, usize)>, name: Tag) -> Result<ClassId, Stop> {
        if let Some(found) = self.derived.get(&(class, source, name)) {
            return found.ok_or(Stop::Odd);
        }
        let slot = source.map(|(class, slot)| self.plans.class(class).sources[slot].clone_ref(self.py));
        let name_text = self.tokens.names.clark(self.py, name);
        let found = self.bridge.call_method1("derived", (self.plans.table(self.py, class), slot, name_text))?;
        let derived = if found.is_none() { None } else { Some(self.plans.id(&found)?) };
        self.derived.insert((class, source, name), derived);
        derived.ok_or(Stop::Odd)
    }

    /// The name that an xsi:type means; odd where that is in doubt.
    fn qualified(&mut self, index: usize, scope: ScopeId) -> Result<Tag, Stop> {
        let text = self.tokens.value(index)?;
        let (prefix, local) = text.split_once(':').unwrap_or(("", &text));
        let plain = |part: &str| part.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"-._".contains(&octet));
        odd_if(local.is_empty() || !plain(prefix) || !plain(local) || text.starts_with(':'))?;
        let space = self.tokens.names.find(scope, prefix.as_bytes()).ok_or(Stop::Odd)?;
        Ok(self.tokens.names.tag(space, local))
    }

    /// Puts a value in its field of an object.
    #[inline]
    fn store(&mut self, frame: &mut Frame<'py>, slot: Slot, value: Bound<'py, PyAny>) {
        let shape = self.plans.shape(frame.class);
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

    /// Notes an odd child of an object, which ends here.
    fn record(&mut self, frame: &mut Frame<'py>, index: usize, start: usize) {
        let class = self.plans.class(frame.class);
        let (slot, source) = (class.slots[index], class.sources[index].clone_ref(self.py));
        let none = self.none.clone();
        self.store(frame, slot, none);
        let (holder, at) = match &frame.list {
            Some((_, list)) if slot.many => (list.clone().into_any(), Some(list.len() - 1)),
            _ => (frame.object.clone(), None),
        };
        let asked = Asked::Value(source, frame.scope, self.above.clone(), holder, at);
        self.records.push(Record { octets: start..self.tokens.at, asked });
    }

    /// Lets Python read the odd elements and put their values in their places, and look at attributes that are not known.
    ///
    /// Python gets both in document order. An element comes with where it begins and ends, what stands before and behind it
    /// in a document of its own, its depth there, its slot, and what takes its value. Attributes come with where their start
    /// tag begins and ends, the table of the class, and their names.
    fn settle(&mut self, again: &Bound<'py, PyAny>) -> Result<(), Stop> {
        if self.records.is_empty() {
            return Ok(());
        }
        let (elements, attributes) = (PyList::empty(self.py), PyList::empty(self.py));
        let (mut shared, mut surroundings) = (None, self.none.clone()); // neighbours have them in common
        for Record { octets: Range { start, end }, asked } in take(&mut self.records) {
            match asked {
                Asked::Attributes(class, tags) => {
                    let names: Vec<_> = tags.iter().map(|tag| self.tokens.names.clark(self.py, *tag)).collect();
                    attributes.append((start, end, self.plans.table(self.py, class), names))?;
                }
                Asked::Value(slot, scope, above, holder, at) => {
                    let names = above.iter().map(|name| &self.tokens.data[name.clone()]);
                    let (before, after) = self.tokens.around(names, scope);
                    let common = (scope, after);
                    if shared.as_ref() != Some(&common) {
                        let (head, tail) = (PyBytes::new(self.py, &before), PyBytes::new(self.py, &common.1));
                        surroundings = (head, tail, above.len()).into_pyobject(self.py)?.into_any();
                        shared = Some(common);
                    }
                    elements.append((start, end, &surroundings, slot, holder, at))?;
                }
            }
        }
        give_up_if(!again.call1((elements, attributes))?.is_truthy()?)
    }
}
