//! The only module with `unsafe`: it allocates objects of slotted classes and stores values in their slots.
//!
//! A slotted class keeps each field as one pointer at a fixed place of its objects. The stable ABI does not tell these
//! places, so they are found by a trial: a fresh object is given a fresh value by each descriptor, and the pointer to
//! it is looked for in the object's memory.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyType};

/// What becomes of a field that the document does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// The object is not complete.
    Odd,
    /// The field is None.
    None,
    /// The field is an empty list.
    List,
}

/// How objects of one class are laid out.
pub struct Shape {
    class: Py<PyType>,
    fields: Vec<(isize, Absent)>,
}

/// A class, and for each field its member descriptor and what it is where it is absent.
type Described<'py> = (Bound<'py, PyType>, Vec<(Bound<'py, PyAny>, u8)>);

const WORD: usize = size_of::<*mut ffi::PyObject>();
/// The reference count and the class.
const HEAD: usize = size_of::<ffi::PyObject>();

impl Shape {
    /// Finds the places of the fields of a class; None where one of them is not a slot, or Python describes none.
    ///
    /// Args: the class and its fields as Python describes them, or None.
    pub fn of(described: &Bound<'_, PyAny>) -> PyResult<Option<Shape>> {
        let described: Option<Described<'_>> = described.extract()?;
        let Some((class, fields)) = &described else { return Ok(None) };
        let py = class.py();
        let size: usize = class.getattr("__basicsize__")?.extract()?;
        if class.getattr("__itemsize__")?.extract::<usize>()? != 0 {
            return Ok(None);
        }
        let mut found = Vec::with_capacity(fields.len());
        for (descriptor, absent) in fields {
            let made = allocate(class)?;
            let mark = PyDict::new(py).into_any();
            descriptor.call_method1("__set__", (&made, &mark))?;
            let start = made.as_ptr().cast::<u8>();
            // SAFETY: an object of a class without items has `__basicsize__` octets, and each step stays inside them.
            let places: Vec<usize> = (HEAD..size.saturating_sub(WORD - 1))
                .step_by(WORD)
                .filter(|at| unsafe { start.add(*at).cast::<*mut ffi::PyObject>().read() } == mark.as_ptr())
                .collect();
            let absent = match absent {
                0 => Absent::None,
                1 => Absent::List,
                _ => Absent::Odd,
            };
            match places[..] {
                [place] => found.push((isize::try_from(place)?, absent)),
                _ => return Ok(None),
            }
        }
        Ok(Some(Shape { class: class.clone().unbind(), fields: found }))
    }

    /// Whether an object is of the class itself.
    #[inline]
    pub fn fits(&self, object: &Bound<'_, PyAny>) -> bool {
        object.get_type_ptr() == self.class.as_ptr().cast()
    }

    fn place(&self, object: &Bound<'_, PyAny>, field: usize) -> *mut *mut ffi::PyObject {
        assert!(object.get_type_ptr() == self.class.as_ptr().cast());
        // SAFETY: the object is of the class whose layout was found by trial, so the field is inside it.
        unsafe { object.as_ptr().cast::<u8>().offset(self.fields[field].0).cast() }
    }

    /// Sets a field.
    #[inline]
    pub fn put(&self, object: &Bound<'_, PyAny>, field: usize, value: Bound<'_, PyAny>) {
        let place = self.place(object, field);
        // SAFETY: the place holds null or a reference that the object owns; the new reference is given to the object.
        unsafe {
            let old = place.replace(value.into_ptr());
            ffi::Py_XDECREF(old);
        }
    }

    /// The value of a field, None while it is unset.
    pub fn get<'py>(&self, object: &Bound<'py, PyAny>, field: usize) -> Option<Bound<'py, PyAny>> {
        // SAFETY: the place holds null or a reference that the object owns.
        unsafe { Bound::from_borrowed_ptr_or_opt(object.py(), self.place(object, field).read()) }
    }

    /// Sets all fields that are unset; false where one of them has to be there.
    pub fn complete<'py>(&self, object: &Bound<'py, PyAny>, nursery: &mut Nursery<'py>) -> PyResult<bool> {
        let py = object.py();
        assert!(object.get_type_ptr() == self.class.as_ptr().cast());
        let start = object.as_ptr().cast::<u8>();
        for (offset, absent) in &self.fields {
            // SAFETY: as in `place`.
            let place: *mut *mut ffi::PyObject = unsafe { start.offset(*offset).cast() };
            // SAFETY: the place holds null or a reference that the object owns.
            if unsafe { place.read() }.is_null() {
                let value = match absent {
                    Absent::Odd => return Ok(false),
                    Absent::None => py.None().into_ptr(),
                    Absent::List => nursery.list().into_ptr(),
                };
                // SAFETY: the object owns what it is given.
                unsafe { place.write(value) };
            }
        }
        Ok(true)
    }
}

/// The objects of a document that is being read. The collector does not see them before they are all made: it would walk
/// over the young ones time and again, and all are alive.
pub struct Nursery<'py> {
    py: Python<'py>,
    made: Vec<Bound<'py, PyAny>>,
}

impl<'py> Nursery<'py> {
    pub fn new(py: Python<'py>) -> Nursery<'py> {
        Nursery { py, made: Vec::new() }
    }

    /// A fresh object of a class, all of whose fields are unset.
    pub fn object(&mut self, shape: &Shape) -> PyResult<Bound<'py, PyAny>> {
        let made = allocate(shape.class.bind(self.py))?;
        self.take(&made);
        Ok(made)
    }

    /// A fresh list.
    pub fn list(&mut self) -> Bound<'py, PyList> {
        let made = PyList::empty(self.py);
        self.take(made.as_any());
        made
    }

    fn take(&mut self, object: &Bound<'py, PyAny>) {
        // SAFETY: the object is alive, of a type that the collector knows; what it does not track it leaves alone.
        unsafe { ffi::PyObject_GC_UnTrack(object.as_ptr().cast()) };
        self.made.push(object.clone());
    }
}

impl Drop for Nursery<'_> {
    fn drop(&mut self) {
        for object in self.made.drain(..) {
            // SAFETY: the object is alive, of a type that the collector knows, and not tracked: it was taken from the
            // collector when it was made, is here once, and nothing else gives objects to the collector.
            unsafe { ffi::PyObject_GC_Track(object.as_ptr().cast()) };
        }
    }
}

fn allocate<'py>(class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the class is alive, and its objects have no items; a null is turned into the error that is set.
    unsafe { Bound::from_owned_ptr_or_err(class.py(), ffi::PyType_GenericAlloc(class.as_type_ptr(), 0)) }
}
