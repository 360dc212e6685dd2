//! Columns under construction, in the layout of Arrow: rows that a document leaves out cost nothing.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

pub type ColumnId = usize;

enum Layout {
    /// Strings and octets: where each ends, and all of them.
    Text(Vec<i32>, Vec<u8>),
    /// Numbers of so many octets; booleans have one here and a bit once they are done.
    Fixed(usize, Vec<u8>),
    /// Lists: where each ends, and the column of the items. Those that are absent are null, or else empty.
    List(Vec<i32>, ColumnId, bool),
    Struct(Vec<ColumnId>),
}

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

/// All columns of a reader, by number.
pub struct Columns(Vec<Column>);

fn end_of(octets: usize) -> i32 {
    i32::try_from(octets).expect("a batch is taken long before")
}

impl Columns {
    /// Columns as Python describes them: `text`, `fixed` with a width, `list` or `map` with a column, `struct` with columns.
    pub fn new(described: Vec<(String, Vec<usize>)>) -> Columns {
        let made = described.into_iter().map(|(kind, of)| {
            let layout = match &*kind {
                "text" => Layout::Text(Vec::new(), Vec::new()),
                "fixed" => Layout::Fixed(of[0], Vec::new()),
                "struct" => Layout::Struct(of),
                kind => Layout::List(Vec::new(), of[0], kind == "map"),
            };
            Column { layout, valid: Vec::new() }
        });
        Columns(made.collect())
    }

    /// Puts octets at a row.
    #[inline]
    pub fn text(&mut self, id: ColumnId, row: usize, value: &[u8]) {
        let column = &mut self.0[id];
        column.pad(row);
        let Layout::Text(ends, octets) = &mut column.layout else { unreachable!("a column of text") };
        octets.extend_from_slice(value);
        ends.push(end_of(octets.len()));
        column.valid.push(1);
    }

    /// Puts a number at a row: its lowest octets.
    #[inline]
    pub fn number(&mut self, id: ColumnId, row: usize, value: i128) {
        let column = &mut self.0[id];
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
        let column = &mut self.0[id];
        column.pad(row);
        column.valid.push(1);
    }

    /// Begins the list of a row, unless it has begun.
    pub fn list(&mut self, id: ColumnId, row: usize) {
        let column = &mut self.0[id];
        column.pad(row);
        let Layout::List(ends, ..) = &mut column.layout else { unreachable!("a column of lists") };
        if ends.len() == row {
            ends.push(ends.last().copied().unwrap_or(0));
            column.valid.push(1);
        }
    }

    /// The number of a new item of the list of a row.
    #[inline]
    pub fn item(&mut self, id: ColumnId, row: usize) -> usize {
        self.list(id, row);
        let Layout::List(ends, ..) = &mut self.0[id].layout else { unreachable!("a column of lists") };
        let end = ends.last_mut().expect("it has begun");
        *end += 1;
        *end as usize - 1
    }

    /// The items of a row's list, which is the last one.
    pub fn items(&self, id: ColumnId, row: usize) -> std::ops::Range<usize> {
        let Layout::List(ends, ..) = &self.0[id].layout else { return 0..0 };
        let start = if row == 0 { 0 } else { ends.get(row - 1).copied().unwrap_or(0) };
        start as usize..ends.get(row).copied().unwrap_or(start) as usize
    }

    /// The text at a row; nothing where there is none.
    pub fn text_at(&self, id: ColumnId, row: usize) -> &str {
        let Layout::Text(ends, octets) = &self.0[id].layout else { return "" };
        let start = if row == 0 { 0 } else { ends.get(row - 1).copied().unwrap_or(0) };
        let end = ends.get(row).copied().unwrap_or(start);
        std::str::from_utf8(&octets[start as usize..end as usize]).unwrap_or("")
    }

    /// About how much memory they take, in octets.
    pub fn size(&self) -> usize {
        let size = |column: &Column| {
            let (Layout::Text(_, octets) | Layout::Fixed(_, octets)) = &column.layout else {
                return column.valid.len();
            };
            octets.len() + 5 * column.valid.len()
        };
        self.0.iter().map(size).sum()
    }

    /// Takes a column of so many rows out: its length, nulls, buffers, and the columns inside it in the same form.
    pub fn take<'py>(&mut self, py: Python<'py>, id: ColumnId, rows: usize) -> PyResult<Taken<'py>> {
        let column = &mut self.0[id];
        column.pad(rows);
        let valid = std::mem::take(&mut column.valid);
        let present = valid.iter().map(|one| usize::from(*one)).sum::<usize>();
        let octets = |octets: &[u8]| Some(PyBytes::new(py, octets));
        let mut buffers = vec![if present == rows { None } else { octets(&bits(&valid)) }];
        let mut inside = Vec::new();
        match &mut column.layout {
            Layout::Text(ends, held) => {
                buffers.extend([octets(&offsets(ends)), octets(held)]);
                (*ends, *held) = (Vec::new(), Vec::new());
            }
            Layout::Fixed(1, held) => buffers.push(octets(&bits(&std::mem::take(held)))),
            Layout::Fixed(_, held) => buffers.push(octets(&std::mem::take(held))),
            Layout::List(ends, item, _) => {
                buffers.push(octets(&offsets(ends)));
                inside.push((*item, ends.last().copied().unwrap_or(0) as usize));
                *ends = Vec::new();
            }
            Layout::Struct(fields) => inside.extend(fields.iter().map(|field| (*field, rows))),
        }
        let children = PyList::empty(py);
        for (id, rows) in inside {
            children.append(self.take(py, id, rows)?)?;
        }
        Ok((rows, rows - present, buffers, children))
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        for column in &mut self.0 {
            column.valid.clear();
            match &mut column.layout {
                Layout::Text(ends, octets) => (*ends, *octets) = (Vec::new(), Vec::new()),
                Layout::Fixed(_, octets) => octets.clear(),
                Layout::List(ends, ..) => ends.clear(),
                Layout::Struct(_) => {}
            }
        }
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
            Layout::Text(ends, _) => ends.resize(row, ends.last().copied().unwrap_or(0)),
            Layout::Fixed(width, octets) => octets.resize(row * *width, 0),
            Layout::List(ends, _, is_nullable) => {
                ends.resize(row, ends.last().copied().unwrap_or(0));
                absent = u8::from(!*is_nullable);
            }
            Layout::Struct(_) => {}
        }
        self.valid.resize(row, absent);
    }
}

/// Offsets as Arrow has them: where the first begins, and where each ends.
fn offsets(ends: &[i32]) -> Vec<u8> {
    let mut made = Vec::with_capacity(4 * ends.len() + 4);
    made.extend_from_slice(&[0; 4]);
    for end in ends {
        made.extend_from_slice(&end.to_le_bytes());
    }
    made
}

/// One bit for each octet.
fn bits(octets: &[u8]) -> Vec<u8> {
    octets.chunks(8).map(|chunk| chunk.iter().rev().fold(0, |byte, one| byte << 1 | one)).collect()
}
