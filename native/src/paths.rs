//! Paths of elements, for warnings: local names, with positions where there are equal siblings.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::names::{Names, Tag, NOWHERE};
use crate::tokens::{Bounds, Tokens};
use crate::Stop;

/// An element: the number of the one that it is in, its name, and its position among equal siblings.
type Step = (usize, Tag, u32);

/// How many children of each name an element has.
type Counts = HashMap<Tag, u32>;

/// An open element.
struct Level {
    number: usize,
    step: Step,
    counts: Counts,
    /// Whether something in it was asked for.
    is_on_way: bool,
}

#[derive(Default)]
struct Finder {
    wanted: Vec<usize>,
    /// The ways to the elements that were asked for.
    found: Vec<Vec<Step>>,
    levels: Vec<Level>,
    elements: usize,
    /// Of the elements on these ways.
    counts: HashMap<usize, Counts>,
}

impl Finder {
    /// Whether anything in the element may have been asked for.
    fn start(&mut self, at: usize, tag: Tag) -> bool {
        let (outer, position) = self.levels.last_mut().map_or((0, 0), |level| {
            let count = level.counts.entry(tag).or_insert(0);
            *count += 1;
            (level.number, *count)
        });
        if self.found.len() == self.wanted.len() {
            return false;
        }
        self.elements += 1;
        let step = (outer, tag, position);
        self.levels.push(Level { number: self.elements, step, counts: Counts::new(), is_on_way: false });
        if self.wanted.get(self.found.len()) == Some(&at) {
            self.levels.iter_mut().for_each(|level| level.is_on_way = true);
            self.found.push(self.levels.iter().map(|level| level.step).collect());
        }
        true
    }

    fn end(&mut self) {
        if let Some(level) = self.levels.pop().filter(|level| level.is_on_way) {
            self.counts.insert(level.number, level.counts);
        }
    }

    fn path(&self, names: &Names, way: &[Step]) -> String {
        let part = |(outer, tag, position): &Step| {
            let local = names.local(*tag);
            let has_equals = self.counts.get(outer).is_some_and(|counts| counts[tag] > 1);
            if has_equals {
                format!("/{local}[{position}]")
            } else {
                format!("/{local}")
            }
        };
        way.iter().map(part).collect()
    }
}

/// The paths of elements that begin at some places of a document, which was read before; in ascending order.
#[pyfunction]
pub fn paths(data: &[u8], places: Vec<usize>) -> PyResult<Vec<String>> {
    let bounds = Bounds { depth: usize::MAX, attributes: usize::MAX, namespaces: usize::MAX >> 1 };
    let mut finder = Finder { wanted: places, ..Finder::default() };
    let mut names = Names::new();
    let mut walk = || {
        let mut tokens = Tokens::new(data, &mut names, bounds)?;
        tokens.prolog()?;
        let at = tokens.at;
        let root = tokens.start_tag(NOWHERE)?;
        finder.start(at, tokens.tag(&root)?);
        tokens.watch(&root, 1, |told| match told {
            Some((at, tag)) => finder.start(at, tag),
            None => {
                finder.end();
                true
            }
        })?;
        while !finder.levels.is_empty() {
            finder.end();
        }
        Ok::<(), Stop>(())
    };
    let walked = walk();
    if walked.is_err() || finder.found.len() != finder.wanted.len() {
        return Err(PyValueError::new_err("no elements begin there"));
    }
    Ok(finder.found.iter().map(|way| finder.path(&names, way)).collect())
}
