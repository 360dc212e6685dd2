//! Objects of one class out of a document that comes piece by piece.
//!
//! What is outside of the objects is judged and let go. Where anything is in doubt nothing more is taken: Python reads on
//! from there, below the elements that are open.

use std::collections::HashMap;

use memchr::{memchr_iter, memrchr};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::names::{ScopeId, Tag, NOWHERE};
use crate::reader::{State, Walk};
use crate::tokens::{Bounds, Start, Token};
use crate::Stop;

/// An open element outside of objects.
struct Level {
    name: Box<[u8]>,
    /// Its start tag, and the line that it begins on.
    octets: Box<[u8]>,
    line: usize,
    path: String,
    scope: ScopeId,
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
    levels: Vec<Level>,
    known: HashMap<(usize, Tag), Known>,
    line: usize,
    has_begun: bool,
}

/// How many octets were taken, the objects in them, and whether the document ended with them.
type Fed = (usize, Vec<Py<PyAny>>, bool);

/// The octets of the start tag, the line, the path, and how many children of each name there were.
type Open<'py> = (Bound<'py, PyBytes>, usize, String, HashMap<String, u32>);

impl Stream {
    pub fn new(bridge: Py<PyAny>, lookup: Py<PyAny>, bounds: Bounds) -> Stream {
        let (state, levels, known) = (State::new(), Vec::new(), HashMap::new());
        Stream { bridge, lookup, bounds, state, levels, known, line: 1, has_begun: false }
    }
}

#[pymethods]
impl Stream {
    /// How many octets were taken, the objects in them, and whether the document ended with them; None where no more can be
    /// taken here. An odd object is a tuple: a document with its octets below those around it, how deep it is in that,
    /// its path, how many lines later it stands in the real document, and the table of its class.
    fn feed(&mut self, py: Python<'_>, data: &Bound<'_, PyBytes>, is_last: bool) -> PyResult<Option<Fed>> {
        let octets = data.as_bytes();
        let end = if is_last { octets.len() } else { memrchr(b'>', octets).map_or(0, |at| at + 1) };
        let octets = &octets[..end];
        let Stream { bridge, lookup, bounds, state, levels, known, line, has_begun } = self;
        if !state.rest() {
            return Ok(None);
        }
        let bridge = bridge.bind(py).clone();
        let bounds = Bounds { ..*bounds };
        let walk = match state.walk(&bridge, octets, bounds) {
            Ok(walk) => walk,
            Err(Stop::GiveUp) => return Ok(None),
            Err(Stop::Python(error)) => return Err(error),
        };
        let lookup = lookup.bind(py);
        let mut reading =
            Reading { walk, lookup, levels, known, line, counted: 0, settled: 0, has_begun, found: Vec::new() };
        let ended = match reading.read() {
            Ok(()) => true,
            Err(Stop::GiveUp) => false,
            Err(Stop::Python(error)) => return Err(error),
        };
        let (settled, found) = (reading.settled, std::mem::take(&mut reading.found));
        reading.count_to(settled);
        if is_last && !ended && found.is_empty() {
            return Ok(None);
        }
        Ok(Some((settled, found, ended)))
    }

    /// The elements that are open, and the line on which the octets go on that were not taken.
    fn open<'py>(&mut self, py: Python<'py>) -> (Vec<Open<'py>>, usize) {
        let names = &mut self.state.names;
        let open = self.levels.iter().map(|level| {
            let counts = level.counts.iter().map(|(tag, count)| (names.clark(py, *tag).to_string(), *count)).collect();
            (PyBytes::new(py, &level.octets), level.line, level.path.clone(), counts)
        });
        (open.collect(), self.line)
    }
}

/// Reads on in a document.
struct Reading<'r, 's, 'd, 'py> {
    walk: Walk<'s, 'd, 'py>,
    lookup: &'r Bound<'py, PyAny>,
    levels: &'r mut Vec<Level>,
    known: &'r mut HashMap<(usize, Tag), Known>,
    line: &'r mut usize,
    counted: usize,
    /// Where that ends which was taken.
    settled: usize,
    has_begun: &'r mut bool,
    found: Vec<Py<PyAny>>,
}

impl Reading<'_, '_, '_, '_> {
    /// Reads up to the end of the document; gives up where it does not go on.
    fn read(&mut self) -> Result<(), Stop> {
        if !*self.has_begun {
            self.walk.tokens.prolog()?;
            self.element()?;
            *self.has_begun = true;
            self.settled = self.walk.tokens.at;
        }
        while let Some(level) = self.levels.last() {
            let run = self.walk.tokens.run()?;
            self.walk.tokens.check(run)?;
            match self.walk.tokens.markup()? {
                Token::Aside | Token::Section(_) => {}
                Token::Start => self.element()?,
                Token::End => {
                    self.walk.tokens.end_tag_of(&level.name)?;
                    self.levels.pop();
                }
            }
            self.settled = self.walk.tokens.at;
        }
        self.walk.tokens.epilog()
    }

    fn count_to(&mut self, at: usize) {
        *self.line += memchr_iter(b'\n', &self.walk.tokens.data[self.counted..at]).count();
        self.counted = at;
    }

    fn element(&mut self) -> Result<(), Stop> {
        let at = self.walk.tokens.at;
        let depth = self.levels.len() + 1;
        let scope = self.levels.last().map_or(NOWHERE, |level| level.scope);
        let start = self.walk.tokens.start_tag(&mut self.walk.state.names, scope)?;
        let tag = self.walk.state.names.element(start.scope, &self.walk.tokens.data[start.name.clone()])?;
        if depth > self.walk.tokens.bounds.depth {
            return Err(Stop::GiveUp);
        }
        let (table, is_object) = self.known(tag)?;
        let has_type = self.walk.tokens.attributes.iter().any(|one| one.tag == self.walk.state.kind);
        if has_type && !is_object && !table.is_none(self.walk.py) {
            return Err(Stop::GiveUp);
        }
        let object = if is_object { self.object(at, &start, &table)? } else { None };
        self.count_to(at);
        let local = self.walk.state.names.local(tag);
        let path = match self.levels.last_mut() {
            Some(level) => {
                let count = level.counts.entry(tag).or_insert(0);
                *count += 1;
                let number = if *count > 1 { format!("[{count}]") } else { String::new() };
                if is_object && object.is_some() {
                    String::new()
                } else {
                    format!("{}/{local}{number}", level.path)
                }
            }
            None => format!("/{local}"),
        };
        if let Some(object) = object {
            self.found.push(object);
        } else if is_object {
            self.odd(at, path, table)?;
        } else if !start.is_empty {
            let data = self.walk.tokens.data;
            let (name, octets) = (data[start.name.clone()].into(), data[at..self.walk.tokens.at].into());
            let (line, counts) = (*self.line, HashMap::new());
            self.levels.push(Level { name, octets, line, path, scope: start.scope, table, counts });
        }
        Ok(())
    }

    fn known(&mut self, tag: Tag) -> Result<Known, Stop> {
        let py = self.walk.py;
        let above = self.levels.last().map_or_else(|| py.None(), |level| level.table.clone_ref(py));
        let key = (above.as_ptr() as usize, tag); // tables are never let go of
        if let Some((table, is_object)) = self.known.get(&key) {
            return Ok((table.clone_ref(py), *is_object));
        }
        let name = self.walk.state.names.clark(py, tag);
        let (table, is_object): Known = self.lookup.call1((above, name))?.extract()?;
        self.known.insert(key, (table.clone_ref(py), is_object));
        Ok((table, is_object))
    }

    /// The object of an element whose start tag was read; None where it is odd and was passed.
    fn object(&mut self, at: usize, start: &Start, table: &Py<PyAny>) -> Result<Option<Py<PyAny>>, Stop> {
        self.walk.around = self.levels.len();
        let after = self.walk.tokens.at;
        let table = table.bind(self.walk.py);
        match self.walk.root(Some(table), None, at, start) {
            Ok(object) if self.walk.records.is_empty() => return Ok(Some(object.unbind())),
            Ok(_) => {}
            Err(Stop::GiveUp) => {
                self.walk.tokens.at = after;
                self.walk.pass(start, self.levels.len() + 1)?;
            }
            Err(error) => return Err(error),
        }
        self.walk.frames.clear();
        self.walk.records.clear();
        self.walk.order.clear();
        Ok(None)
    }

    fn odd(&mut self, at: usize, path: String, table: Py<PyAny>) -> Result<(), Stop> {
        let mut document: Vec<u8> = self.levels.iter().flat_map(|level| level.octets.iter().copied()).collect();
        let before = 1 + memchr_iter(b'\n', &document).count();
        document.extend_from_slice(&self.walk.tokens.data[at..self.walk.tokens.at]);
        for level in self.levels.iter().rev() {
            document.extend_from_slice(&[b"</", &*level.name, b">"].concat());
        }
        let lines = *self.line as isize - before as isize;
        let made = (PyBytes::new(self.walk.py, &document), self.levels.len(), path, lines, table);
        self.found.push(made.into_pyobject(self.walk.py)?.into_any().unbind());
        Ok(())
    }
}
