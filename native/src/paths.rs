//! Paths of elements, for warnings: local names, with positions where there are equal siblings.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::names::{Names, Tag, NOWHERE};
use crate::tokens::{Bounds, Start, Tokens};
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
    let bounds = Bounds { depth: usize::MAX, attributes: usize::MAX, namespaces: usize::MAX, nodes: usize::MAX };
    let mut tokens = Tokens::new(data, names, bounds)?;
    let mut open: Vec<(Start, Step, Counts)> = Vec::new();
    let mut found: Vec<Vec<Step>> = Vec::new();
    tokens.prolog()?;
    let mut next = Some(tokens.start_tag(NOWHERE)?);
    loop {
        match next {
            None => drop(open.pop()),
            Some(start) => {
                let tag = tokens.tag(&start)?;
                let counts = open.last().map_or_else(Counts::default, |(_, _, counts)| counts.clone());
                let position = *counts.borrow_mut().entry(tag).and_modify(|count| *count += 1).or_insert(1);
                let step = (counts, tag, position);
                if places.get(found.len()) == Some(&start.at()) {
                    let above = open.iter().map(|(_, step, _)| step);
                    found.push(above.chain([&step]).cloned().collect());
                }
                if !start.is_empty {
                    open.push((start, step, Counts::default()));
                }
            }
        }
        let Some((innermost, ..)) = open.last() else { return Ok(found) };
        next = tokens.inside(tokens.raw(innermost), innermost.scope)?;
    }
}
