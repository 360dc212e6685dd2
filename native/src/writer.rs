//! The walk over objects: octets in schema order.
//!
//! What is not written as most things are is left to the Python writer, value by value. Whether an object as a whole is
//! for that one is known before anything of it is written, so nothing is written twice.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDate, PyDateTime, PyDict, PyInt, PyList, PySet, PyString, PyTzInfo};

use crate::objects::Shape;
use crate::values::refusal;
use crate::{lock, odd_if, settled, unless_odd, Stop};

/// Objects in objects; deeper ones are for Python, which knows where its stack ends.
const DEEPEST: usize = 100;
/// Texts of values that each simple type remembers, and their longest.
const MOST_KNOWN: usize = 512;
const LONGEST_KNOWN: usize = 64;
/// What leaves the document to the Python writer: something is wrong, and it says where; or it is too deep.
const WRONG: Stop = Stop::GiveUp;
/// Counts of fields whose order each class remembers.
const MOST_ORDERS: usize = 256;

/// What a class is called while the process lives.
type ClassRef = &'static Class;

/// How the objects of one class are written.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Class {
    #[pyo3(default)]
    number: usize,
    /// The plan as Python has it.
    plan: Py<PyAny>,
    table: Py<PyAny>,
    /// None: each object is for Python.
    #[pyo3(from_py_with = Shape::of)]
    shape: Option<Shape>,
    attributes: Vec<Out>,
    text: Option<Out>,
    outs: Vec<Out>,
    /// Whether Python has to be asked for the order of the fields.
    modelled: bool,
    #[pyo3(default, from_py_with = fresh)]
    orders: Mutex<HashMap<Box<[usize]>, Order>>,
}

/// The fields in the order of a content model; None where that does not allow so many of each.
type Order = Option<&'static [usize]>;

/// How one field is written.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Out {
    field: usize,
    start: String,
    end: String,
    many: bool,
    required: bool,
    least: usize,
    most: Option<usize>,
    /// Whether only Python knows its values, and else its simple type, or the table of its class; None for plain texts.
    is_odd: bool,
    simple: Option<Py<PyAny>>,
    object: Option<Py<PyAny>>,
    /// What is known of these, once it was needed.
    #[pyo3(default, from_py_with = fresh)]
    content: OnceLock<Content>,
    /// The field as Python has it.
    source: Py<PyAny>,
}

enum Content {
    Other,
    Text,
    Simple(&'static Kind),
    Object(ClassRef),
}

/// A simple type.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Kind {
    /// The texts of values of which there is one object each, by its address; the type keeps them.
    members: HashMap<usize, Py<PyString>>,
    /// Of integers that are written as they are.
    bounds: Option<(i64, i64)>,
    format: Py<PyAny>,
    /// Texts of values that were written.
    known: Py<PyDict>,
    /// The type itself: it stays, and so its address.
    #[pyo3(item("source"))]
    _source: Py<PyAny>,
}

/// What Python does not send.
fn fresh<T: Default>(_: &Bound<'_, PyAny>) -> PyResult<T> {
    Ok(T::default())
}

/// What is known of classes and types. Both live as long as the process, as their counterparts in Python do.
#[pyclass(frozen)]
pub struct Writer {
    bridge: Py<PyAny>,
    classes: Mutex<HashMap<usize, ClassRef>>,
    kinds: Mutex<HashMap<usize, &'static Kind>>,
}

#[pymethods]
impl Writer {
    #[new]
    fn new(bridge: Py<PyAny>) -> Writer {
        Writer { bridge, classes: Mutex::default(), kinds: Mutex::default() }
    }

    /// The element of an object, in octets; None where the Python writer has to write it.
    ///
    /// Args: the Python writer, the object and its table, tag and attributes of the element, the depth of the object, and a
    /// set that gets the plans whose namespaces are needed.
    #[allow(clippy::too_many_arguments)]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        writer: &Bound<'py, PyAny>,
        object: &Bound<'py, PyAny>,
        table: &Bound<'py, PyAny>,
        tag: &str,
        attributes: &str,
        depth: usize,
        plans: &Bound<'py, PySet>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let class = self.class(table)?;
        let mut writing = Writing { known: self, writer, text: Vec::new(), used: Vec::new() };
        let (start, end) = (format!("<{tag}{attributes}>"), format!("</{tag}>"));
        let written = writing.object(class, object, (&start, &end), depth);
        if let Err(Stop::GiveUp) = written {
            writer.call_method0("leave_to_python")?;
        }
        if settled(written)?.is_none() {
            return Ok(None);
        }
        for class in writing.used.iter().flatten() {
            plans.add(class.plan.bind(py))?;
        }
        Ok(Some(PyBytes::new(py, &writing.text)))
    }
}

impl Writer {
    fn class(&self, table: &Bound<'_, PyAny>) -> PyResult<ClassRef> {
        let address = table.as_ptr() as usize; // the table is kept, and so its address
        if let Some(found) = lock(&self.classes).get(&address) {
            return Ok(found);
        }
        let described: Class = self.bridge.bind(table.py()).call_method1("describe_writing", (table,))?.extract()?;
        let mut classes = lock(&self.classes);
        let number = classes.len();
        Ok(classes.entry(address).or_insert_with(|| Box::leak(Box::new(Class { number, ..described }))))
    }

    fn kind(&self, source: &Bound<'_, PyAny>) -> PyResult<&'static Kind> {
        let address = source.as_ptr() as usize;
        if let Some(found) = lock(&self.kinds).get(&address) {
            return Ok(found);
        }
        let described: Kind = self.bridge.bind(source.py()).call_method1("describe_kind", (source,))?.extract()?;
        Ok(lock(&self.kinds).entry(address).or_insert_with(|| Box::leak(Box::new(described))))
    }

    /// What the values of a field are.
    #[inline]
    fn content<'o>(&self, py: Python<'_>, out: &'o Out) -> PyResult<&'o Content> {
        if let Some(found) = out.content.get() {
            return Ok(found);
        }
        let found = match (&out.simple, &out.object) {
            _ if out.is_odd => Content::Other,
            (Some(kind), _) => Content::Simple(self.kind(kind.bind(py))?),
            (_, Some(table)) => Content::Object(self.class(table.bind(py))?),
            _ => Content::Text,
        };
        Ok(out.content.get_or_init(|| found))
    }
}

/// One document, or a part of one.
struct Writing<'a, 'py> {
    known: &'a Writer,
    writer: &'a Bound<'py, PyAny>,
    text: Vec<u8>,
    /// The classes that were met, by number.
    used: Vec<Option<ClassRef>>,
}

impl<'py> Writing<'_, 'py> {
    /// Args: the class, an object that has its table, the tags, how deep it is.
    fn object(
        &mut self,
        class: ClassRef,
        object: &Bound<'py, PyAny>,
        (start, end): (&str, &str),
        depth: usize,
    ) -> Result<(), Stop> {
        if depth > DEEPEST {
            return Err(WRONG);
        }
        let Some(shape) = &class.shape else { return Err(Stop::Odd) };
        odd_if(!shape.fits(object))?;
        let order = self.order(class, shape, object)?;
        if self.used.len() <= class.number {
            self.used.resize(class.number + 1, None);
        }
        self.used[class.number] = Some(class);
        self.text.extend_from_slice(&start.as_bytes()[..start.len() - 1]);
        for out in &class.attributes {
            let value = shape.get(object, out.field).ok_or(Stop::Odd)?;
            if !value.is_none() {
                self.text.push(b' ');
                self.text.extend_from_slice(&out.start.as_bytes()[1..out.start.len() - 1]);
                self.text.extend_from_slice(b"=\"");
                let content = self.known.content(object.py(), out)?;
                self.simple(content, &value, true)?;
                self.text.push(b'"');
            }
        }
        self.text.push(b'>');
        let before = self.text.len();
        if let Some(out) = &class.text {
            let content = self.known.content(object.py(), out)?;
            self.simple(content, &shape.get(object, out.field).ok_or(Stop::Odd)?, false)?;
        } else if let Some(order) = order {
            let mut used = vec![0; class.outs.len()];
            for at in order {
                let out = &class.outs[*at];
                let value = shape.get(object, out.field).ok_or(WRONG)?;
                if out.many {
                    let items = value.cast_exact::<PyList>().map_err(|_| WRONG)?;
                    self.value(out, &items.get_item(used[*at])?, depth)?;
                    used[*at] += 1;
                } else {
                    self.value(out, &value, depth)?;
                }
            }
        } else {
            for out in &class.outs {
                let value = shape.get(object, out.field).ok_or(WRONG)?;
                if value.is_none() {
                    continue;
                }
                if out.many {
                    for item in value.cast_exact::<PyList>().map_err(|_| WRONG)?.iter() {
                        self.value(out, &item, depth)?;
                    }
                } else {
                    self.value(out, &value, depth)?;
                }
            }
        }
        self.close(before, end);
        Ok(())
    }

    fn close(&mut self, before: usize, end: &str) {
        if self.text.len() == before {
            self.text.pop();
            self.text.extend_from_slice(b"/>");
        } else {
            self.text.extend_from_slice(end.as_bytes());
        }
    }

    /// The order of the fields, where a content model gives it. Whatever makes the object as a whole odd is found here,
    /// but for texts of attributes and of simple content, which have nothing in them.
    fn order(&self, class: ClassRef, shape: &Shape, object: &Bound<'py, PyAny>) -> Result<Order, Stop> {
        let held = |field| shape.get(object, field).ok_or(Stop::Odd);
        odd_if(!held(0)?.is_none())?;
        for out in class.attributes.iter().chain(&class.text) {
            odd_if(if held(out.field)?.is_none() { out.required } else { out.is_odd })?;
        }
        let mut counts = Vec::new();
        for out in &class.outs {
            let value = held(out.field)?;
            let mut count = usize::from(!value.is_none());
            if count > 0 && out.many {
                count = value.cast_exact::<PyList>().map_err(|_| Stop::Odd)?.len();
                odd_if(count < out.least || out.most.is_some_and(|most| count > most))?;
            }
            odd_if(value.is_none() && out.required)?;
            if class.modelled {
                counts.push(count);
            }
        }
        if !class.modelled {
            return Ok(None);
        }
        let known = lock(&class.orders).get(counts.as_slice()).copied();
        let order = match known {
            Some(order) => order,
            None => {
                let asked = self
                    .known
                    .bridge
                    .bind(object.py())
                    .call_method1("order", (class.table.bind(object.py()), counts.clone()))?;
                let order: Option<Vec<usize>> = asked.extract()?;
                let order = order.map(|order| &*order.leak());
                let mut orders = lock(&class.orders);
                if orders.len() < MOST_ORDERS {
                    orders.insert(counts.into(), order);
                }
                order
            }
        };
        order.map(Some).ok_or(Stop::Odd)
    }

    /// The element of one value.
    #[inline]
    fn value(&mut self, out: &Out, value: &Bound<'py, PyAny>, depth: usize) -> Result<(), Stop> {
        let start = self.text.len();
        let written = match self.known.content(value.py(), out)? {
            Content::Object(class) => self.object(class, value, (&out.start, &out.end), depth + 1),
            content => {
                self.text.extend_from_slice(out.start.as_bytes());
                let before = self.text.len();
                self.simple(content, value, false).map(|()| self.close(before, &out.end))
            }
        };
        if unless_odd(written)?.is_none() {
            self.text.truncate(start);
            self.piece(out, value, depth + 1)?;
        }
        Ok(())
    }

    /// What the Python writer makes of a value.
    fn piece(&mut self, out: &Out, value: &Bound<'py, PyAny>, depth: usize) -> Result<(), Stop> {
        let made = self.writer.call_method1("piece", (out.source.bind(value.py()), value, depth))?;
        let made = made.cast::<PyBytes>().map_err(|_| WRONG)?;
        self.text.extend_from_slice(made.as_bytes());
        Ok(())
    }

    /// The text of a value.
    #[inline]
    fn simple(&mut self, content: &Content, value: &Bound<'py, PyAny>, attribute: bool) -> Result<(), Stop> {
        let py = value.py();
        let kind = match content {
            Content::Text => return self.string(value.cast_exact().map_err(|_| Stop::Odd)?, attribute),
            Content::Simple(kind) => *kind,
            _ => return Err(Stop::Odd),
        };
        if let Some(text) = kind.members.get(&(value.as_ptr() as usize)) {
            return self.string(text.bind(py), attribute);
        }
        if let Some((least, most)) = kind.bounds {
            let number = value.cast_exact::<PyInt>().ok().and_then(|value| value.extract::<i64>().ok());
            if let Some(number) = number.filter(|number| (least..=most).contains(number)) {
                self.text.extend_from_slice(number.to_string().as_bytes());
                return Ok(());
            }
        }
        let repeated = is_repeated(value)?;
        if repeated {
            if let Some(text) = kind.known.bind(py).get_item(value)? {
                return self.string(text.cast().map_err(PyErr::from)?, attribute);
            }
        }
        let text = kind.format.bind(py).call1((value,)).map_err(|error| refusal(py, error))?;
        let text = text.cast_into::<PyString>().map_err(|_| Stop::Odd)?;
        let known = kind.known.bind(py);
        if repeated && known.len() < MOST_KNOWN && text.len()? <= LONGEST_KNOWN {
            known.set_item(value, &text)?;
        }
        self.string(&text, attribute)
    }

    /// Character data, escaped.
    #[inline]
    fn string(&mut self, text: &Bound<'py, PyString>, attribute: bool) -> Result<(), Stop> {
        let text = text.to_str().map_err(|_| Stop::Odd)?.as_bytes(); // surrogates
        let is_plain = |octet: u8| !matches!(octet, 0..=31 | b'"' | b'&' | b'<' | b'>' | 0xef);
        if text.iter().fold(true, |plain, octet| plain & is_plain(*octet)) {
            self.text.extend_from_slice(text);
            return Ok(());
        }
        let mut done = 0;
        for (at, octet) in text.iter().enumerate() {
            let escaped: &[u8] = match octet {
                b'&' => b"&amp;",
                b'<' => b"&lt;",
                b'>' => b"&gt;",
                b'\r' => b"&#13;",
                b'"' if attribute => b"&quot;",
                b'\t' if attribute => b"&#9;",
                b'\n' if attribute => b"&#10;",
                b'\t' | b'\n' => continue,
                0..=31 => return Err(Stop::Odd),
                0xef if matches!(text[at + 1..], [0xbf, 0xbe | 0xbf, ..]) => return Err(Stop::Odd), // none of XML's
                _ => continue,
            };
            self.text.extend_from_slice(&text[done..at]);
            self.text.extend_from_slice(escaped);
            done = at + 1;
        }
        self.text.extend_from_slice(&text[done..]);
        Ok(())
    }
}

/// Whether equal values of the class of a value have equal texts.
fn is_repeated(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if value.is_exact_instance_of::<PyDateTime>() {
        return Ok(value.getattr("tzinfo")?.is(&*PyTzInfo::utc(value.py())?));
    }
    let exact = value.is_exact_instance_of::<PyString>() || value.is_exact_instance_of::<PyInt>();
    Ok(exact || value.is_exact_instance_of::<PyDate>())
}
