//! The walk over objects: octets in schema order.
//!
//! What is not written as most things are is left to the Python writer, value by value. Whether an object as a whole is
//! for that one is known before anything of it is written, so nothing is written twice.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDate, PyDateTime, PyDict, PyInt, PyList, PySet, PyString, PyType, PyTzInfo};

use crate::objects::{Absent, Shape};
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
struct Class {
    number: usize,
    /// The plan as Python has it.
    plan: Py<PyAny>,
    table: Py<PyAny>,
    /// None: each object is for Python.
    shape: Option<Shape>,
    attributes: Vec<Out>,
    text: Option<Out>,
    outs: Vec<Out>,
    /// Whether Python has to be asked for the order of the fields.
    modelled: bool,
    orders: Mutex<HashMap<Box<[usize]>, Order>>,
}

/// The fields in the order of a content model; None where that does not allow so many of each.
type Order = Option<&'static [usize]>;

/// How one field is written.
struct Out {
    field: usize,
    start: Box<str>,
    end: Box<str>,
    many: bool,
    required: bool,
    least: usize,
    most: usize,
    content: Content,
    /// The field as Python has it.
    source: Py<PyAny>,
}

enum Content {
    /// Only Python knows.
    Other,
    Text,
    Simple(&'static Kind),
    Object(Py<PyAny>, OnceLock<ClassRef>),
}

/// A simple type.
struct Kind {
    form: Form,
    format: Py<PyAny>,
    known: Py<PyDict>,
    /// The type itself: it stays, and so its address.
    _source: Py<PyAny>,
}

enum Form {
    Any,
    Boolean,
    /// An integer and its bounds.
    Integer(i64, i64),
    /// The class, and the texts of its members by their addresses; the members stay.
    Enumeration(Py<PyAny>, HashMap<usize, (Py<PyString>, Py<PyAny>)>),
}

type OutData<'py> = (usize, String, bool, bool, usize, Option<usize>, u8, Bound<'py, PyAny>, Bound<'py, PyAny>);
type ClassData<'py> = (
    Bound<'py, PyType>,
    Bound<'py, PyAny>,
    Option<Vec<Bound<'py, PyAny>>>,
    Vec<OutData<'py>>,
    Option<OutData<'py>>,
    Vec<OutData<'py>>,
    bool,
);
type KindData<'py> = (Option<(String, i64, i64)>, Option<(Bound<'py, PyAny>, Bound<'py, PyDict>)>, Bound<'py, PyAny>);

/// What is known of classes and types. Both live as long as the process, as their counterparts in Python do.
#[derive(Default)]
pub struct Writers {
    classes: Mutex<HashMap<usize, ClassRef>>,
    kinds: Mutex<HashMap<usize, &'static Kind>>,
}

impl Writers {
    /// The element of an object; None where the Python writer has to write it.
    ///
    /// Args: what tells of classes, the Python writer, the object and its table, tag and attributes of the element, the
    /// depth of the object, the plans that the document needs the namespaces of.
    #[allow(clippy::too_many_arguments)]
    pub fn element<'py>(
        &self,
        bridge: &Bound<'py, PyAny>,
        writer: &Bound<'py, PyAny>,
        object: &Bound<'py, PyAny>,
        table: &Bound<'py, PyAny>,
        tag: (&str, &str),
        depth: usize,
        plans: &Bound<'py, PySet>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let class = self.class(bridge, table)?;
        let mut writing = Writing { writers: self, bridge, writer, text: Vec::new(), used: Vec::new() };
        let (start, end) = (format!("<{}{}>", tag.0, tag.1), format!("</{}>", tag.0));
        let written = writing.object(class, object, (&start, &end), depth);
        if let Err(Stop::GiveUp) = written {
            writer.call_method0("leave_to_python")?;
        }
        if settled(written)?.is_none() {
            return Ok(None);
        }
        for class in writing.used.iter().flatten() {
            plans.add(class.plan.bind(object.py()))?;
        }
        Ok(Some(PyBytes::new(object.py(), &writing.text)))
    }

    fn class(&self, bridge: &Bound<'_, PyAny>, table: &Bound<'_, PyAny>) -> PyResult<ClassRef> {
        let address = table.as_ptr() as usize; // the table is kept, and so its address
        if let Some(found) = lock(&self.classes).get(&address) {
            return Ok(found);
        }
        let (class, plan, descriptors, attributes, text, outs, modelled): ClassData<'_> =
            bridge.call_method1("describe_writing", (table,))?.extract()?;
        let shape = match descriptors {
            Some(found) => {
                let fields: Vec<_> = found.into_iter().map(|one| (one, Absent::None)).collect();
                Shape::of(&class, &fields)?
            }
            None => None,
        };
        let outs_of = |data: Vec<OutData<'_>>| data.into_iter().map(|one| self.out(bridge, one)).collect();
        let (attributes, outs): (PyResult<Vec<Out>>, PyResult<Vec<Out>>) = (outs_of(attributes), outs_of(outs));
        let text = text.map(|one| self.out(bridge, one)).transpose()?;
        let mut classes = lock(&self.classes);
        let number = classes.len();
        Ok(classes.entry(address).or_insert(Box::leak(Box::new(Class {
            number,
            plan: plan.unbind(),
            table: table.clone().unbind(),
            shape,
            attributes: attributes?,
            text,
            outs: outs?,
            modelled,
            orders: Mutex::default(),
        }))))
    }

    fn out(&self, bridge: &Bound<'_, PyAny>, data: OutData<'_>) -> PyResult<Out> {
        let (field, tag, many, required, least, most, code, target, source) = data;
        let content = match code {
            0 => Content::Other,
            1 => Content::Text,
            2 => Content::Simple(self.kind(bridge, &target)?),
            _ => Content::Object(target.unbind(), OnceLock::new()),
        };
        Ok(Out {
            field,
            start: format!("<{tag}>").into(),
            end: format!("</{tag}>").into(),
            many,
            required,
            least,
            most: most.unwrap_or(usize::MAX),
            content,
            source: source.unbind(),
        })
    }

    fn kind(&self, bridge: &Bound<'_, PyAny>, source: &Bound<'_, PyAny>) -> PyResult<&'static Kind> {
        let address = source.as_ptr() as usize;
        if let Some(found) = lock(&self.kinds).get(&address) {
            return Ok(found);
        }
        let (form, members, format): KindData<'_> = bridge.call_method1("describe_kind", (source,))?.extract()?;
        let form = match (form, members) {
            (_, Some((class, members))) => {
                let mut texts = HashMap::new();
                for (text, member) in members {
                    texts.insert(member.as_ptr() as usize, (text.cast_into()?.unbind(), member.unbind()));
                }
                Form::Enumeration(class.unbind(), texts)
            }
            (Some((name, ..)), _) if name == "boolean" => Form::Boolean,
            (Some((name, least, most)), _) if name == "integer" => Form::Integer(least, most),
            _ => Form::Any,
        };
        let known = PyDict::new(source.py()).unbind();
        let made = Kind { form, format: format.unbind(), known, _source: source.clone().unbind() };
        let mut kinds = lock(&self.kinds);
        Ok(kinds.entry(address).or_insert(Box::leak(Box::new(made))))
    }
}

/// One document, or a part of one.
struct Writing<'a, 'py> {
    writers: &'a Writers,
    bridge: &'a Bound<'py, PyAny>,
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
                self.simple(out, &value, true)?;
                self.text.push(b'"');
            }
        }
        self.text.push(b'>');
        let before = self.text.len();
        if let Some(out) = &class.text {
            self.simple(out, &shape.get(object, out.field).ok_or(Stop::Odd)?, false)?;
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
            let is_other = matches!(out.content, Content::Other);
            odd_if(if held(out.field)?.is_none() { out.required } else { is_other })?;
        }
        let mut counts = Vec::new();
        for out in &class.outs {
            let value = held(out.field)?;
            let mut count = usize::from(!value.is_none());
            if count > 0 && out.many {
                count = value.cast_exact::<PyList>().map_err(|_| Stop::Odd)?.len();
                odd_if(count < out.least || count > out.most)?;
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
                let asked = self.bridge.call_method1("order", (class.table.bind(object.py()), counts.clone()))?;
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
        let written = match &out.content {
            Content::Other => Err(Stop::Odd),
            Content::Object(table, target) => {
                let class = match target.get() {
                    Some(class) => class,
                    None => {
                        let found = self.writers.class(self.bridge, table.bind(value.py()))?;
                        target.get_or_init(|| found)
                    }
                };
                self.object(class, value, (&out.start, &out.end), depth + 1)
            }
            Content::Text | Content::Simple(_) => {
                self.text.extend_from_slice(out.start.as_bytes());
                let before = self.text.len();
                self.simple(out, value, false).map(|()| self.close(before, &out.end))
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
    fn simple(&mut self, out: &Out, value: &Bound<'py, PyAny>, attribute: bool) -> Result<(), Stop> {
        let py = value.py();
        let kind = match &out.content {
            Content::Text => return self.string(value.cast_exact().map_err(|_| Stop::Odd)?, attribute),
            Content::Simple(kind) => *kind,
            _ => return Err(Stop::Odd),
        };
        match &kind.form {
            Form::Boolean => {
                if let Ok(value) = value.cast_exact::<PyBool>() {
                    self.text.extend_from_slice(if value.is_true() { b"true" } else { b"false" });
                    return Ok(());
                }
            }
            Form::Integer(least, most) => {
                if let Ok(Ok(number)) = value.cast_exact::<PyInt>().map(|value| value.extract::<i64>()) {
                    if (*least..=*most).contains(&number) {
                        self.text.extend_from_slice(number.to_string().as_bytes());
                        return Ok(());
                    }
                }
            }
            Form::Enumeration(class, texts) => {
                if std::ptr::eq(value.get_type_ptr().cast(), class.as_ptr()) {
                    if let Some((text, _)) = texts.get(&(value.as_ptr() as usize)) {
                        return self.string(text.bind(py), attribute);
                    }
                }
            }
            Form::Any => {}
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
