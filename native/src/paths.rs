//! Paths of elements, for warnings: local names, with positions where there are equal siblings.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::names::{Names, Tag};
use crate::outline::{Event, Outline};
use crate::tokens::{Bounds, Tokens};
use crate::Stop;

/// How many children of each name an element has; it grows up to the end of the element.
type Counts = Rc<RefCell<HashMap<Tag, u32>>>;

/// An element: the children of the one that it is in, its name, and its position among equal siblings.
type Step = (Counts, Tag, u32);

/// The paths of elements that begin at some places of a document, which was read before; in ascending order.
#[pyfunction]
pub fn paths(data: &[u8], places: Vec<usize>) -> PyResult<Vec<String>> {
    let mut names = Names::new();
    let found = ways(data, &places, &mut names).ok().filter(|found| found.len() == places.len());
    let found = found.ok_or_else(|| PyValueError::new_err("no elements begin there"))?;
    let part = |(counts, tag, position): &Step| {
        let local = names.local(*tag);
        if counts.borrow()[tag] > 1 {
            format!("/{local}[{position}]")
        } else {
            format!("/{local}")
        }
    };
    Ok(found.iter().map(|way| way.iter().map(part).collect()).collect())
}

/// The elements on the ways from the root to those places.
fn ways(data: &[u8], places: &[usize], names: &mut Names) -> Result<Vec<Vec<Step>>, Stop> {
    let bounds = Bounds { depth: usize::MAX, attributes: usize::MAX, namespaces: usize::MAX };
    let mut tokens = Tokens::new(data, names, bounds)?;
    let mut outline: Outline<(Step, Counts)> = Outline::default();
    let mut found: Vec<Vec<Step>> = Vec::new();
    loop {
        match outline.next(&mut tokens)? {
            Event::Done => return Ok(found),
            Event::End => drop(outline.levels.pop()),
            Event::Start(start) => {
                let tag = tokens.tag(&start)?;
                let counts = outline.levels.last().map_or_else(Counts::default, |level| level.about.1.clone());
                let position = *counts.borrow_mut().entry(tag).and_modify(|count| *count += 1).or_insert(1);
                let step = (counts, tag, position);
                if places.get(found.len()) == Some(&start.at()) {
                    let above = outline.levels.iter().map(|level| &level.about.0);
                    found.push(above.chain([&step]).cloned().collect());
                }
                if !start.is_empty {
                    outline.open(&tokens, &start, (step, Counts::default()));
                }
            }
        }
        outline.settle(&tokens);
    }
}
