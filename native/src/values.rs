//! Texts to values: strings, and what simple types make of texts. Short ones are remembered, for they repeat.

use std::collections::HashMap;

use pyo3::exceptions::{PyArithmeticError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

/// Octets of a text that is remembered.
const SHORT: usize = 22;
const ENTRIES: usize = 4096;

/// A simple type, as a number.
pub type Kind = u32;
/// The type whose values are the texts themselves.
pub const STRING: Kind = 0;

struct Entry {
    kind: Kind,
    size: u8,
    octets: [u8; SHORT],
    value: Option<Py<PyAny>>,
}

pub struct Values {
    entries: Vec<Entry>,
    /// What converts the texts of each type, from 1.
    convert: Vec<Py<PyAny>>,
    kinds: HashMap<usize, Kind>,
}

impl Values {
    pub fn new() -> Values {
        let entry = || Entry { kind: STRING, size: 0, octets: [0; SHORT], value: None };
        let entries = std::iter::repeat_with(entry).take(ENTRIES).collect();
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
        self.convert.push(simple.getattr("exact")?.unbind()); // it keeps the type alive, and so its address
        let kind = Kind::try_from(self.convert.len())?;
        self.kinds.insert(simple.as_ptr() as usize, kind);
        Ok(kind)
    }

    /// The value of a text; None where it is not valid, or not written as we would write it.
    #[inline]
    pub fn value<'py>(&mut self, py: Python<'py>, kind: Kind, text: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        if text.len() > SHORT {
            return self.convert(py, kind, text);
        }
        let octets = text.as_bytes();
        let at = place(kind, octets);
        let entry = &self.entries[at];
        if let Some(value) = &entry.value {
            if entry.kind == kind && entry.size as usize == octets.len() && &entry.octets[..octets.len()] == octets {
                return Ok(Some(value.bind(py).clone()));
            }
        }
        let Some(value) = self.convert(py, kind, text)? else { return Ok(None) };
        if !value.is_instance_of::<PyList>() {
            let entry = &mut self.entries[at];
            entry.kind = kind;
            entry.size = octets.len() as u8;
            entry.octets[..octets.len()].copy_from_slice(octets);
            entry.value = Some(value.clone().unbind());
        }
        Ok(Some(value))
    }

    fn convert<'py>(&self, py: Python<'py>, kind: Kind, text: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        if kind == STRING {
            return Ok(Some(PyString::new(py, text).into_any()));
        }
        match self.convert[kind as usize - 1].bind(py).call1((text,)) {
            Ok(value) => Ok(Some(value)),
            Err(error) if is_refusal(py, &error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn is_refusal(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyArithmeticError>(py)
        || error.is_instance_of::<PyKeyError>(py)
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
    (hash >> 32) as usize % ENTRIES
}
