//! Columns under construction, in the layout of Arrow: rows that a document leaves out cost nothing.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

pub type ColumnId = usize;

#[derive(Clone)]
enum Layout {
    /// Strings and octets: where the first begins and where each ends, and all of them.
    Text(Vec<i32>, Vec<u8>),
    /// Numbers of so many octets; booleans have one here and a bit once they are done.
    Fixed(usize, Vec<u8>),
    /// Lists: where the first begins and where each ends, and the column of the items. Those that are absent are null, or else empty.
    List(Vec<i32>, ColumnId, bool),
    Struct(Vec<ColumnId>),
}

#[derive(Clone)]
struct Column {
    layout: Layout,
    /// One octet a row: whether there is a value. Rows behind it have none.
    valid: Vec<u8>,
}

/// What a simple type makes of a text.
#[derive(Clone)]
pub enum Stored {
    Octets(Box<[u8]>),
    Number(i128),
}

/// Octets of one column; a message that has more is read by Python.
const MOST_OCTETS: usize = 1 << 28;

/// All columns of a reader, by number.
#[derive(Clone)]
pub struct Columns {
    columns: Vec<Column>,
    /// Whether a text found no room.
    pub is_full: bool,
}

impl Columns {
    /// Columns as Python describes them: `text`, `fixed` with a width, `list` or `map` with a column, `struct` with columns.
    pub fn new(described: Vec<(String, Vec<usize>)>) -> Columns {
        let made = described.into_iter().map(|(kind, of)| {
            let layout = match &*kind {
                "text" => Layout::Text(vec![0], Vec::new()),
                "fixed" => Layout::Fixed(of[0], Vec::new()),
                "struct" => Layout::Struct(of),
                kind => Layout::List(vec![0], of[0], kind == "map"),
            };
            Column { layout, valid: Vec::new() }
        });
        Columns { columns: made.collect(), is_full: false }
    }

    /// Puts octets at a row.
    #[inline]
    pub fn text(&mut self, id: ColumnId, row: usize, value: &[u8]) {
        let column = &mut self.columns[id];
        column.pad(row);
        let Layout::Text(ends, octets) = &mut column.layout else { unreachable!("a column of text") };
        if octets.len() + value.len() <= MOST_OCTETS {
            octets.extend_from_slice(value);
        } else {
            self.is_full = true;
        }
        ends.push(octets.len() as i32);
        column.valid.push(1);
    }

    /// Puts a number at a row: its lowest octets.
    #[inline]
    pub fn number(&mut self, id: ColumnId, row: usize, value: i128) {
        let column = &mut self.columns[id];
        column.pad(row);
        let Layout::Fixed(width, octets) = &mut column.layout else { unreachable!("a column of numbers") };
        octets.extend_from_slice(&value.to_le_bytes()[..*width]);
        column.valid.push(1);
    }

    pub fn store(&mut self, id: ColumnId, row: usize, value: &Stored) {
        match value {
            Stored::Octets(octets) => self.text(id, row, octets),
            Stored::Number(number) => self.number(id, row, *number),
        }
    }

    /// Notes that there is an object at a row.
    #[inline]
    pub fn mark(&mut self, id: ColumnId, row: usize) {
        let column = &mut self.columns[id];
        column.pad(row);
        column.valid.push(1);
    }

    /// Begins the list of a row, unless it has begun.
    pub fn list(&mut self, id: ColumnId, row: usize) {
        let column = &mut self.columns[id];
        column.pad(row);
        let Layout::List(ends, ..) = &mut column.layout else { unreachable!("a column of lists") };
        if ends.len() == row + 1 {
            ends.push(ends[row]);
            column.valid.push(1);
        }
    }

    /// The number of a new item of the list of a row.
    #[inline]
    pub fn item(&mut self, id: ColumnId, row: usize) -> usize {
        self.list(id, row);
        let Layout::List(ends, ..) = &mut self.columns[id].layout else { unreachable!("a column of lists") };
        let end = ends.last_mut().expect("it has begun");
        *end += 1;
        *end as usize - 1
    }

    /// The items of a row's list, which is the last one.
    pub fn items(&self, id: ColumnId, row: usize) -> std::ops::Range<usize> {
        let Layout::List(ends, ..) = &self.columns[id].layout else { return 0..0 };
        extent(ends, row)
    }

    /// The text at a row; nothing where there is none.
    pub fn text_at(&self, id: ColumnId, row: usize) -> &str {
        let Layout::Text(ends, octets) = &self.columns[id].layout else { return "" };
        std::str::from_utf8(&octets[extent(ends, row)]).unwrap_or("")
    }

    /// About how much memory they take, in octets.
    pub fn size(&self) -> usize {
        let size = |column: &Column| {
            let (Layout::Text(_, octets) | Layout::Fixed(_, octets)) = &column.layout else {
                return column.valid.len();
            };
            octets.len() + 5 * column.valid.len()
        };
        self.columns.iter().map(size).sum()
    }

    /// Takes a column of so many rows out: its length, nulls, buffers, and the columns inside it in the same form.
    pub fn take<'py>(&mut self, py: Python<'py>, id: ColumnId, rows: usize) -> PyResult<Taken<'py>> {
        let column = &mut self.columns[id];
        column.pad(rows);
        let present = column.valid.iter().map(|one| usize::from(*one)).sum::<usize>();
        let octets = |octets: &[u8]| Some(PyBytes::new(py, octets));
        let offsets =
            |ends: &[i32]| octets(ends.iter().map(|end| end.to_le_bytes()).collect::<Vec<_>>().as_flattened());
        let mut buffers = vec![if present == rows { None } else { octets(&bits(&column.valid)) }];
        let mut inside = Vec::new();
        match &column.layout {
            Layout::Text(ends, held) => buffers.extend([offsets(ends), octets(held)]),
            Layout::Fixed(1, held) => buffers.push(octets(&bits(held))),
            Layout::Fixed(_, held) => buffers.push(octets(held)),
            Layout::List(ends, item, _) => {
                buffers.push(offsets(ends));
                inside.push((*item, ends[rows] as usize));
            }
            Layout::Struct(fields) => inside.extend(fields.iter().map(|field| (*field, rows))),
        }
        let children = PyList::empty(py);
        for (id, rows) in inside {
            children.append(self.take(py, id, rows)?)?;
        }
        Ok((rows, rows - present, buffers, children))
    }
}

/// A column that is done.
pub type Taken<'py> = (usize, usize, Vec<Option<Bound<'py, PyBytes>>>, Bound<'py, PyList>);

impl Column {
    /// Sees that a row is the next one.
    #[inline]
    fn pad(&mut self, row: usize) {
        if self.valid.len() >= row {
            return;
        }
        let mut absent = 0;
        match &mut self.layout {
            Layout::Text(ends, _) => ends.resize(row + 1, ends[ends.len() - 1]),
            Layout::Fixed(width, octets) => octets.resize(row * *width, 0),
            Layout::List(ends, _, is_nullable) => {
                ends.resize(row + 1, ends[ends.len() - 1]);
                absent = u8::from(!*is_nullable);
            }
            Layout::Struct(_) => {}
        }
        self.valid.resize(row, absent);
    }
}

/// What belongs to a row, which is the last one; nothing where there is no value yet.
fn extent(ends: &[i32], row: usize) -> std::ops::Range<usize> {
    match ends.get(row..row + 2) {
        Some(ends) => ends[0] as usize..ends[1] as usize,
        None => 0..0,
    }
}

/// One bit for each octet.
fn bits(octets: &[u8]) -> Vec<u8> {
    octets.chunks(8).map(|chunk| chunk.iter().rev().fold(0, |byte, one| byte << 1 | one)).collect()
}
