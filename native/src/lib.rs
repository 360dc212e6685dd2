//! The native XML core of mtosi-jms: makes typed objects of the octets of a document.

#![deny(unsafe_code)]

mod columns;
mod names;
#[allow(unsafe_code)]
mod objects;
mod outline;
mod paths;
mod plans;
mod reader;
mod rows;
mod stream;
mod tokens;
mod values;
mod writer;

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::reader::{Envelope, State, Walk};
use crate::tokens::Bounds;

/// Why something is not taken.
pub enum Stop {
    /// The innermost object or value is for Python, and the document goes on.
    Odd,
    /// Only libxml2 and the lenient reader can say what the document is.
    GiveUp,
    /// Python raised something.
    Python(PyErr),
}

impl From<PyErr> for Stop {
    fn from(error: PyErr) -> Stop {
        Stop::Python(error)
    }
}

/// Gives up where something is in doubt.
#[inline]
fn give_up_if(is_doubtful: bool) -> Result<(), Stop> {
    if is_doubtful {
        Err(Stop::GiveUp)
    } else {
        Ok(())
    }
}

/// Leaves something to Python.
#[inline]
fn odd_if(is_odd: bool) -> Result<(), Stop> {
    if is_odd {
        Err(Stop::Odd)
    } else {
        Ok(())
    }
}

/// What was found, None where that is odd.
#[inline]
fn unless_odd<T>(found: Result<T, Stop>) -> Result<Option<T>, Stop> {
    match found {
        Ok(value) => Ok(Some(value)),
        Err(Stop::Odd) => Ok(None),
        Err(stop) => Err(stop),
    }
}

/// What a mutex guards; what is inside is whole even where another thread panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was found, None where that was given up.
fn settled<T>(found: Result<T, Stop>) -> PyResult<Option<T>> {
    match found {
        Ok(value) => Ok(Some(value)),
        Err(Stop::Odd | Stop::GiveUp) => Ok(None),
        Err(Stop::Python(error)) => Err(error),
    }
}

/// Reads documents. What it learns of classes and names serves the next document.
///
/// Each document is read with a state of its own, of those that no other one uses: another thread may come while Python
/// is asked something, or Python itself for another document.
#[pyclass(frozen)]
struct Core {
    bridge: Py<PyAny>,
    states: Mutex<Vec<State>>,
}

/// States that are kept for later.
const MOST_STATES: usize = 4;

#[pymethods]
impl Core {
    #[new]
    fn new(bridge: Py<PyAny>) -> Core {
        Core { bridge, states: Mutex::default() }
    }

    /// The object of a document; None where it has to be read from the tree.
    ///
    /// Args: the document, the table of its class or None, what gives the values of odd elements, and the bounds: depth,
    /// attributes of an element, namespaces in scope, elements and attributes of the document.
    fn decode(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyBytes>,
        table: Option<&Bound<'_, PyAny>>,
        again: &Bound<'_, PyAny>,
        bounds: Bounds,
    ) -> PyResult<Option<Py<PyAny>>> {
        let read = self.read(py, data, again, bounds, |walk| walk.document(table))?;
        Ok(read.map(Bound::unbind))
    }

    /// The header and the body of an envelope that has nothing else, its namespace, and where it can be taken apart: where
    /// the header begins and ends, the name in the start tag of the body's element begins and ends, and the name in
    /// its end tag begins. None where it has to be read from the tree.
    ///
    /// Args: as for a document, but the table of the header's class, and the package that the body's is looked for in.
    fn envelope<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyBytes>,
        table: &Bound<'py, PyAny>,
        package: Option<&str>,
        again: &Bound<'py, PyAny>,
        bounds: Bounds,
    ) -> PyResult<Option<Envelope<'py>>> {
        self.read(py, data, again, bounds, |walk| walk.envelope(table, package))
    }
}

impl Core {
    /// Reads with a state that nobody else uses; None where the tree has to say what is there.
    fn read<'py, T>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyBytes>,
        again: &Bound<'py, PyAny>,
        bounds: Bounds,
        root: impl FnOnce(&mut Walk<'_, '_, 'py>) -> Result<T, Stop>,
    ) -> PyResult<Option<T>> {
        let mut state = lock(&self.states).pop().unwrap_or_else(State::new);
        let found = state.read(self.bridge.bind(py), data.as_bytes(), bounds, again, root);
        let mut states = lock(&self.states);
        if !state.names.is_worn() && states.len() < MOST_STATES {
            states.push(state);
        }
        settled(found)
    }
}

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::paths::paths;
    #[pymodule_export]
    use super::rows::Rows;
    #[pymodule_export]
    use super::stream::Stream;
    #[pymodule_export]
    use super::writer::Writer;
    #[pymodule_export]
    use super::Core;
}
