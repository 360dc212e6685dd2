//! Objects of one class out of a document that comes piece by piece.
//!
//! What is outside of the objects is judged and let go. Where anything is in doubt nothing more is taken: Python reads on
//! from there, below the elements that are open.

use std::collections::HashMap;
use std::mem::take;

use memchr::memrchr;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::names::{Tag, TYPE};
use crate::outline::{Event, Outline};
use crate::reader::{State, Walk};
use crate::tokens::{newlines, Bounds, Start};
use crate::{give_up_if, settled, Stop};

/// What is to be known of an open element.
struct About {
    /// Its start tag, and the line that it begins on.
    octets: Box<[u8]>,
    line: usize,
    path: String,
    /// The table of its class, or None.
    table: Py<PyAny>,
    counts: HashMap<Tag, u32>,
}

/// What an element is by its place and name: the table of its class or None, and whether it is an object asked for.
type Known = (Py<PyAny>, bool);

#[pyclass]
pub struct Stream {
    bridge: Py<PyAny>,
    lookup: Py<PyAny>,
    bounds: Bounds,
    state: State,
    outline: Outline<About>,
    known: HashMap<(usize, Tag), Known>,
}

/// How many octets were taken, the objects in them, and whether the document ended with them.
type Fed = (usize, Vec<Py<PyAny>>, bool);

/// The octets of the start tag, the line, the path, and how many children of each name there were.
type Open<'py> = (Bound<'py, PyBytes>, usize, String, HashMap<String, u32>);

#[pymethods]
impl Stream {
    /// Args: what is asked about classes; what tells of an element, by the table of the class above it or None and its name, the
    /// table of its class or None and whether it is an object asked for; and the bounds.
    #[new]
    fn new(bridge: Py<PyAny>, lookup: Py<PyAny>, bounds: Bounds) -> Stream {
        let (outline, known) = (Outline::default(), HashMap::new());
        Stream { bridge, lookup, bounds, state: State::new(), outline, known }
    }

    /// How many octets were taken, the objects in them, and whether the document ended with them; None where no more can be
    /// taken here. An odd object is a tuple: a document with its octets below those around it, how deep it is in that,
    /// its path, how many lines later it stands in the real document, and the table of its class.
    fn feed(&mut self, py: Python<'_>, data: &Bound<'_, PyBytes>, is_last: bool) -> PyResult<Option<Fed>> {
        let octets = data.as_bytes();
        let end = if is_last { octets.len() } else { memrchr(b'>', octets).map_or(0, |at| at + 1) };
        let Stream { bridge, lookup, bounds, state, outline, known } = self;
        if state.names.is_worn() {
            return Ok(None);
        }
        let Some(mut walk) = settled(state.walk(bridge.bind(py), &octets[..end], *bounds))? else { return Ok(None) };
        outline.begin(&mut walk.tokens);
        let mut reading = Reading { walk, lookup: lookup.bind(py), outline, known, found: Vec::new() };
        let ended = settled(reading.read())?.is_some();
        let found = take(&mut reading.found);
        let is_stuck = is_last && !ended && found.is_empty();
        Ok(if is_stuck { None } else { Some((outline.settled, found, ended)) })
    }

    /// The elements that are open, and the line on which the octets go on that were not taken.
    fn open<'py>(&mut self, py: Python<'py>) -> (Vec<Open<'py>>, usize) {
        let names = &mut self.state.names;
        let open = self.outline.levels.iter().map(|level| {
            let About { octets, line, path, counts, .. } = &level.about;
            let counts = counts.iter().map(|(tag, count)| (names.clark(py, *tag).to_string(), *count)).collect();
            (PyBytes::new(py, octets), *line, path.clone(), counts)
        });
        (open.collect(), self.outline.line)
    }
}

/// Reads on in a document.
struct Reading<'r, 's, 'd, 'py> {
    walk: Walk<'s, 'd, 'py>,
    lookup: &'r Bound<'py, PyAny>,
    outline: &'r mut Outline<About>,
    known: &'r mut HashMap<(usize, Tag), Known>,
    found: Vec<Py<PyAny>>,
}

impl Reading<'_, '_, '_, '_> {
    /// Reads up to the end of the document; gives up where it does not go on.
    fn read(&mut self) -> Result<(), Stop> {
        loop {
            match self.outline.next(&mut self.walk.tokens)? {
                Event::Done => return Ok(()),
                Event::Start(start) => self.element(&start)?,
                Event::End => drop(self.outline.levels.pop()),
            }
            self.outline.settle(&self.walk.tokens);
        }
    }

    fn element(&mut self, start: &Start) -> Result<(), Stop> {
        let at = start.at();
        let tag = self.walk.tokens.tag(start)?;
        let (table, is_object) = self.known(tag)?;
        give_up_if(self.walk.tokens.attribute(TYPE).is_some() && !is_object && !table.is_none(self.walk.py))?;
        let object = if is_object { self.object(start, &table)? } else { None };
        let local = self.walk.tokens.names.local(tag);
        let path = match self.outline.levels.last_mut() {
            Some(level) => {
                let count = level.about.counts.entry(tag).or_insert(0);
                *count += 1;
                match (&object, *count) {
                    (Some(_), _) => String::new(),
                    (None, 1) => format!("{}/{local}", level.about.path),
                    (None, count) => format!("{}/{local}[{count}]", level.about.path),
                }
            }
            None => format!("/{local}"),
        };
        let (data, line) = (self.walk.tokens.data, self.outline.line_of(&self.walk.tokens, at));
        if let Some(object) = object {
            self.found.push(object);
        } else if is_object {
            let mut document: Vec<u8> =
                self.outline.levels.iter().flat_map(|level| &*level.about.octets).copied().collect();
            let lines = line as isize - 1 - newlines(&document) as isize;
            document.extend_from_slice(&data[at..self.walk.tokens.at]);
            for level in self.outline.levels.iter().rev() {
                document.extend_from_slice(&[b"</", &*level.name, b">"].concat());
            }
            let document = PyBytes::new(self.walk.py, &document);
            let made = (document, self.outline.levels.len(), path, lines, table);
            self.found.push(made.into_pyobject(self.walk.py)?.into_any().unbind());
        } else if !start.is_empty {
            let octets = data[at..self.walk.tokens.at].into();
            let about = About { octets, line, path, table, counts: HashMap::new() };
            self.outline.open(&self.walk.tokens, start, about);
        }
        Ok(())
    }

    fn known(&mut self, tag: Tag) -> Result<Known, Stop> {
        let py = self.walk.py;
        let above = self.outline.levels.last().map_or_else(|| py.None(), |level| level.about.table.clone_ref(py));
        let key = (above.as_ptr() as usize, tag); // tables are never let go of
        if let Some((table, is_object)) = self.known.get(&key) {
            return Ok((table.clone_ref(py), *is_object));
        }
        let name = self.walk.tokens.names.clark(py, tag);
        let (table, is_object): Known = self.lookup.call1((above, name))?.extract()?;
        self.known.insert(key, (table.clone_ref(py), is_object));
        Ok((table, is_object))
    }

    /// The object of an element whose start tag was read; None where it is odd and was passed.
    fn object(&mut self, start: &Start, table: &Py<PyAny>) -> Result<Option<Py<PyAny>>, Stop> {
        let table = table.bind(self.walk.py);
        match self.walk.root(Some(table), None, start) {
            Ok(object) if self.walk.records.is_empty() => return Ok(Some(object.unbind())),
            Err(Stop::Python(error)) => return Err(error.into()),
            _ => {}
        }
        self.walk.forget();
        self.walk.tokens.go_back(start);
        self.walk.tokens.pass(start)?;
        Ok(None)
    }
}
