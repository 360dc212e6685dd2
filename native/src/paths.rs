//! Paths of elements, for warnings: local names, with positions where there are equal siblings.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::names::{Names, Tag, NOWHERE};
use crate::tokens::{Bounds, Tokens, Watch};

/// An element on the way to one that was asked for.
struct Step {
    outer: Option<usize>,
    tag: Tag,
    /// Its position among equal siblings; 0 where it is the only one.
    number: u32,
}

/// An open element.
struct Level {
    tag: Tag,
    number: u32,
    step: Option<usize>,
    counts: HashMap<Tag, u32>,
    /// Steps among its children.
    marks: Vec<usize>,
}

struct Finder {
    wanted: Vec<usize>,
    steps: Vec<Step>,
    found: Vec<usize>,
    levels: Vec<Level>,
}

impl Finder {
    /// Notes the elements that are open as steps on the way to the innermost one.
    fn note(&mut self) {
        for at in 0..self.levels.len() {
            if self.levels[at].step.is_none() {
                let outer = at.checked_sub(1).and_then(|outer| self.levels[outer].step);
                let Level { tag, number, .. } = self.levels[at];
                self.levels[at].step = Some(self.steps.len());
                if at > 0 {
                    self.levels[at - 1].marks.push(self.steps.len());
                }
                self.steps.push(Step { outer, tag, number });
            }
        }
        self.found.extend(self.levels.last().and_then(|level| level.step));
    }

    fn path(&self, names: &Names, step: usize) -> String {
        let mut parts = Vec::new();
        let mut next = Some(step);
        while let Some(at) = next {
            let Step { outer, tag, number } = self.steps[at];
            let local = names.local(tag);
            parts.push(if number > 0 { format!("/{local}[{number}]") } else { format!("/{local}") });
            next = outer;
        }
        parts.into_iter().rev().collect()
    }
}

impl Watch for Finder {
    fn start(&mut self, at: usize, tag: Tag) {
        let number = self.levels.last_mut().map_or(0, |level| {
            let count = level.counts.entry(tag).or_insert(0);
            *count += 1;
            *count
        });
        self.levels.push(Level { tag, number, step: None, counts: HashMap::new(), marks: Vec::new() });
        if self.wanted.get(self.found.len()) == Some(&at) {
            self.note();
        }
    }

    fn end(&mut self) {
        let Some(level) = self.levels.pop() else { return };
        for mark in level.marks {
            let step = &mut self.steps[mark];
            if level.counts.get(&step.tag) == Some(&1) {
                step.number = 0;
            }
        }
    }
}

/// The paths of elements that begin at some places of a document, which was read before; in ascending order.
#[pyfunction]
pub fn paths(data: &[u8], places: Vec<usize>) -> PyResult<Vec<String>> {
    let bounds = Bounds { depth: usize::MAX, attributes: usize::MAX, namespaces: usize::MAX >> 1 };
    let mut finder = Finder { wanted: places, steps: Vec::new(), found: Vec::new(), levels: Vec::new() };
    let mut names = Names::new();
    let walk = |finder: &mut Finder, names: &mut Names| {
        let mut tokens = Tokens::new(data, bounds)?;
        tokens.prolog()?;
        let at = tokens.at;
        let root = tokens.start_tag(names, NOWHERE)?;
        finder.start(at, names.element(root.scope, &data[root.name.clone()])?);
        if root.is_empty {
            Ok(())
        } else {
            tokens.pass(names, &root.name, root.scope, 1, finder)
        }
    };
    let walked: Result<(), crate::Stop> = walk(&mut finder, &mut names);
    if walked.is_err() || finder.found.len() != finder.wanted.len() {
        return Err(PyValueError::new_err("no elements begin there"));
    }
    Ok(finder.found.iter().map(|step| finder.path(&names, *step)).collect())
}
