//! Texts to values: strings, and what simple types make of texts. Short ones are remembered, for they repeat.

use std::collections::HashMap;

use pyo3::exceptions::{PyArithmeticError, PyAttributeError, PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDate, PyDateTime, PyInt, PyList, PyString, PyTzInfo};

use crate::Stop;

/// Octets of a text that is remembered, and of one that is its own value.
const SHORT: usize = 46;
const SHORT_STRING: usize = 22;
/// Places for texts that are their own values, and as many for all others: these cost more to make anew.
const ENTRIES: usize = 1024;

/// A simple type, as a number.
pub type Kind = u32;
/// The type whose values are the texts themselves.
pub const STRING: Kind = 0;

/// What the texts of a simple type look like that need no Python to be converted.
enum Form {
    Any,
    Date,
    /// A dateTime in UTC without a fraction.
    Moment,
    /// An integer of at most 18 digits, and its bounds.
    Integer(i64, i64),
}

struct Entry {
    kind: Kind,
    size: u8,
    octets: [u8; SHORT],
    value: Option<Py<PyAny>>,
}

pub struct Values {
    entries: Vec<Entry>,
    /// What converts the texts of each type, from 1.
    convert: Vec<(Form, Py<PyAny>)>,
    kinds: HashMap<usize, Kind>,
}

impl Values {
    pub fn new() -> Values {
        let entry = || Entry { kind: STRING, size: 0, octets: [0; SHORT], value: None };
        let entries = std::iter::repeat_with(entry).take(2 * ENTRIES).collect();
        Values { entries, convert: Vec::new(), kinds: HashMap::new() }
    }

    /// The number of a simple type; None stands for strings.
    pub fn kind(&mut self, simple: &Bound<'_, PyAny>) -> PyResult<Kind> {
        if simple.is_none() {
            return Ok(STRING);
        }
        if let Some(found) = self.kinds.get(&(simple.as_ptr() as usize)) {
            return Ok(*found);
        }
        let form: Option<(String, i64, i64)> = simple.getattr("canonical")?.extract()?;
        let form = match form {
            Some((name, ..)) if name == "date" => Form::Date,
            Some((name, ..)) if name == "dateTime" => Form::Moment,
            Some((_, least, most)) => Form::Integer(least, most),
            None => Form::Any,
        };
        self.convert.push((form, simple.getattr("exact")?.unbind())); // it keeps the type alive, and so its address
        let kind = Kind::try_from(self.convert.len())?;
        self.kinds.insert(simple.as_ptr() as usize, kind);
        Ok(kind)
    }

    /// The value of a text; odd where it is not valid, or not written as we would write it.
    #[inline]
    pub fn value<'py>(&mut self, py: Python<'py>, kind: Kind, text: &str) -> Result<Bound<'py, PyAny>, Stop> {
        if kind != STRING {
            if let Some(made) = self.convert[kind as usize - 1].0.value(py, text) {
                return Ok(made);
            }
        }
        if text.len() > if kind == STRING { SHORT_STRING } else { SHORT } {
            return self.convert(py, kind, text);
        }
        let octets = text.as_bytes();
        let at = place(kind, octets);
        let entry = &self.entries[at];
        if let Some(value) = &entry.value {
            if entry.kind == kind && entry.size as usize == octets.len() && &entry.octets[..octets.len()] == octets {
                return Ok(value.bind(py).clone());
            }
        }
        let value = self.convert(py, kind, text)?;
        if !value.is_instance_of::<PyList>() {
            let entry = &mut self.entries[at];
            entry.kind = kind;
            entry.size = octets.len() as u8;
            entry.octets[..octets.len()].copy_from_slice(octets);
            entry.value = Some(value.clone().unbind());
        }
        Ok(value)
    }

    fn convert<'py>(&self, py: Python<'py>, kind: Kind, text: &str) -> Result<Bound<'py, PyAny>, Stop> {
        if kind == STRING {
            return Ok(PyString::new(py, text).into_any());
        }
        self.convert[kind as usize - 1].1.bind(py).call1((text,)).map_err(|error| refusal(py, error))
    }
}

impl Form {
    /// The value of a text of this form; None of any other, which Python may still convert.
    #[inline]
    fn value<'py>(&self, py: Python<'py>, text: &str) -> Option<Bound<'py, PyAny>> {
        match self {
            Form::Any => None,
            Form::Date => {
                let (year, month, day) = date(text)?;
                PyDate::new(py, year, month, day).ok().map(Bound::into_any)
            }
            Form::Moment => {
                let ((year, month, day), [hour, minute, second]) = moment(text)?;
                let utc = PyTzInfo::utc(py).ok()?;
                let made = PyDateTime::new(py, year, month, day, hour as u8, minute as u8, second as u8, 0, Some(&utc));
                made.ok().map(Bound::into_any)
            }
            Form::Integer(least, most) => integer(text, *least, *most).map(|value| PyInt::new(py, value).into_any()),
        }
    }
}

/// Year, month and day of `2026-11-20`.
pub fn date(text: &str) -> Option<(i32, u8, u8)> {
    let octets = text.as_bytes();
    if octets.len() != 10 || !text.is_ascii() || octets[4] != b'-' || octets[7] != b'-' {
        return None;
    }
    Some((number(&text[..4], 4)? as i32, number(&text[5..7], 2)? as u8, number(&text[8..], 2)? as u8))
}

/// The day of a dateTime in UTC without a fraction, and hour, minute and second.
pub fn moment(text: &str) -> Option<((i32, u8, u8), [u32; 3])> {
    let (day, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let parts: Vec<&str> = clock.split(':').collect();
    let [hour, minute, second] = parts[..] else { return None };
    Some((date(day)?, [number(hour, 2)?, number(minute, 2)?, number(second, 2)?]))
}

/// An integer of at most 18 digits, written as we would write it, and within its bounds.
pub fn integer(text: &str, least: i64, most: i64) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_canonical = !digits.starts_with('0') || text == "0";
    let is_plain = !digits.is_empty() && digits.len() <= 18 && digits.bytes().all(|one| one.is_ascii_digit());
    if !is_canonical || !is_plain {
        return None;
    }
    text.parse().ok().filter(|value| (least..=most).contains(value))
}

/// A number of so many digits.
fn number(text: &str, digits: usize) -> Option<u32> {
    let plain = text.len() == digits && text.bytes().all(|one| one.is_ascii_digit());
    if plain {
        text.parse().ok()
    } else {
        None
    }
}

/// An error of Python's; odd where it says that a value is none of its type.
pub fn refusal(py: Python<'_>, error: PyErr) -> Stop {
    let is_refusal = error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyArithmeticError>(py)
        || error.is_instance_of::<PyAttributeError>(py)
        || error.is_instance_of::<PyKeyError>(py);
    if is_refusal {
        Stop::Odd
    } else {
        Stop::Python(error)
    }
}

/// Where a text is remembered. Each place holds one, so texts that share it cost no more than those that are new.
#[inline]
fn place(kind: Kind, octets: &[u8]) -> usize {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = u64::from(kind) ^ ((octets.len() as u64) << 32);
    for part in octets.chunks(8) {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        hash = (hash.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR);
    }
    (hash >> 32) as usize % ENTRIES + if kind == STRING { 0 } else { ENTRIES }
}
