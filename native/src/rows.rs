//! Envelopes to rows: walks over a message, finds the objects that are wanted, and puts each into its columns.
//!
//! Python says once which path of elements and attributes goes to which column, and where objects stand. An object is odd
//! where something in it departs from its class: it is passed, its row stays without meaning, and Python reads it from its
//! own octets. Python is asked too what an unusual text stands for. Else the interpreter's lock is not held.

use std::collections::HashMap;
use std::mem::{replace, take};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString};

use crate::columns::{ColumnId, Columns, Stored, Taken};
use crate::names::{Name, Names, ScopeId, Tag, NIL, SOAP};
use crate::outline::{Event, Outline};
use crate::plans::Children;
use crate::tokens::{all_blank, Bounds, Start, Tokens};
use crate::values::{date, integer, moment};
use crate::{give_up_if, odd_if, settled, unless_odd, Stop};

/// Texts of a simple type that are remembered, and their octets.
const MOST_KNOWN: usize = 4096;
const LONGEST_KNOWN: usize = 64;

// These numbers are those of `_native_rows.py`. The columns that tell of objects; names of parents are items of their list:
const LABEL: ColumnId = 0;
const NAME: ColumnId = 1;
const PARENTS: ColumnId = 2;
const PARENT: ColumnId = 3;
const LINE: ColumnId = 4;
const POSITION: ColumnId = 5;
const IS_NODE: ColumnId = 6;
// How the texts of a simple type become what its column holds; Python is asked for each text of other ones:
const PLAIN: u8 = 0;
const DATE: u8 = 1;
const MOMENT: u8 = 2;
const INTEGER: u8 = 3;
// Where a child element goes; others are odd:
const TO_NOTHING: u8 = 0;
const TO_LEAF: u8 = 1;
const TO_OBJECT: u8 = 2;
const TO_MARK: u8 = 3;
const TO_OPEN: u8 = 4;
// What becomes of an element outside of objects; the last four are parts of nodes:
const PASS: u8 = 0;
const OBJECT: u8 = 1;
const ENTER: u8 = 2;
const SHORT_NAME: u8 = 3;
const ATTRIBUTES: u8 = 4;
const REFERENCES: u8 = 5;
const QUALITY: u8 = 6;

/// A simple type in a column.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Leaf {
    column: ColumnId,
    form: u8,
    least: i64,
    most: i64,
    nillable: bool,
}

/// Where the child elements of a name go.
#[derive(Clone, Copy, FromPyObject)]
#[pyo3(from_item_all)]
struct Step {
    order: i32,
    many: bool,
    list: Option<ColumnId>,
    required: bool,
    target: u8,
    at: usize,
}

/// A class whose objects have columns.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Class {
    column: ColumnId,
    is_odd: bool,
    nillable: bool,
    text: Option<usize>,
    required: usize,
    names: Vec<Name>,
    steps: Vec<Step>,
    /// With its leaf, and whether it has to be there.
    attributes: Vec<(Name, usize, bool)>,
}

/// A kind of objects: its label, its class if it has one, whether it becomes rows, the element of its name, and the
/// columns of a name's parts: their list, types, values.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Kind {
    label: String,
    class: Option<usize>,
    is_wanted: bool,
    name: Option<Name>,
    parts: Option<(ColumnId, ColumnId, ColumnId)>,
}

/// Where objects stand in an element; for a node the type in its name and the kind of its attributes.
type RouteData = (Option<(String, usize)>, Vec<(Name, u8, usize)>);

struct Route {
    node: Option<(String, usize)>,
    actions: HashMap<Tag, (u8, usize)>,
}

/// What Python sends at first. Of open content the columns are the map, its entries, their keys and values, the XML.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Plan {
    leaves: Vec<Leaf>,
    classes: Vec<Class>,
    opens: Vec<[ColumnId; 5]>,
}

/// The leaves of a class's attributes, with whether each has to be there; and how many have to be.
struct Attributes(HashMap<Tag, (usize, bool)>, usize);

/// The plan, and the rows so far.
struct State {
    bridge: Py<PyAny>,
    columns: Columns,
    rows: usize,
    plan: Plan,
    /// For each leaf what was asked.
    known: Vec<HashMap<Box<str>, Option<Stored>>>,
    /// For each class.
    children: Vec<Children>,
    attributes: Vec<Attributes>,
    kinds: Vec<Kind>,
    routes: Vec<Route>,
    /// Routes of elements of bodies, as far as one was met.
    bodies: HashMap<Tag, Option<usize>>,
    envelopes: [(Tag, Tag); 2],
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Envelope,
    Body,
    Route(usize),
    Nowhere,
}

/// What is to be known of an open element outside of objects.
struct Spot {
    place: Place,
    node: Option<Node>,
    /// Whether it is the first of the body.
    is_first: bool,
}

/// The row of an object, its number in the message, and its line.
#[derive(Clone, Copy)]
struct Begun {
    row: usize,
    position: usize,
    line: usize,
}

/// An inventory node: the kind of its attributes, the type in its name, its row if it has one, what is known of its name.
struct Node {
    kind: usize,
    rdn: String,
    begun: Option<Begun>,
    short: Option<String>,
    given: Option<String>,
    is_settled: bool,
}

/// An object that Python reads.
#[derive(IntoPyObject)]
struct Odd {
    row: usize,
    position: usize,
    line: usize,
    kind: usize,
    octets: (usize, usize),
    lines_before: usize,
    /// What stands before and behind it in a document of its own, and its depth there.
    around: (Vec<u8>, Vec<u8>),
    depth: usize,
    /// Of a node its name and those of its parents.
    node: Option<(String, Vec<String>)>,
}

/// What reading on in a message gave.
#[derive(Default, IntoPyObject)]
struct Found {
    /// Octets that need not come again.
    done: usize,
    /// Where the content of the body's first element stands.
    content: Option<(usize, usize)>,
    odd: Vec<Odd>,
    related: Vec<(usize, usize, Vec<String>)>,
    quality: Vec<(usize, Vec<Name>)>,
    /// Rows without meaning.
    dropped: Vec<(usize, usize)>,
}

/// A message that is being read, piece by piece or whole.
#[derive(Default)]
struct Message {
    outline: Outline<Spot>,
    /// Names of the nodes that are open, and the types in them.
    above: Vec<(String, String)>,
    position: usize,
    has_body: bool,
    soap: usize,
    /// Whether no rows are made, only well-formedness is judged.
    is_dry: bool,
    found: Found,
}

/// Makes rows of messages.
#[pyclass]
pub struct Rows {
    names: Names,
    state: State,
    message: Message,
    /// The columns without rows.
    blank: Columns,
}

#[pymethods]
impl Rows {
    /// Args: what is asked for values and routes, the columns, and what goes to them.
    #[new]
    fn new(bridge: Py<PyAny>, columns: Vec<(String, Vec<usize>)>, plan: Plan) -> Rows {
        let mut names = Names::new();
        let envelopes = SOAP.map(|soap| (names.known(soap, "Envelope"), names.known(soap, "Body")));
        let (mut children, mut attributes) = (Vec::new(), Vec::new());
        for class in &plan.classes {
            children.push(Children::new(class.names.iter().map(|name| names.known(&name.0, &name.1))));
            let known =
                class.attributes.iter().map(|(name, leaf, must)| (names.known(&name.0, &name.1), (*leaf, *must)));
            let required = class.attributes.iter().filter(|one| one.2).count();
            attributes.push(Attributes(known.collect(), required));
        }
        let blank = Columns::new(columns);
        let state = State {
            bridge,
            columns: blank.clone(),
            rows: 0,
            known: plan.leaves.iter().map(|_| HashMap::new()).collect(),
            plan,
            children,
            attributes,
            kinds: Vec::new(),
            routes: Vec::new(),
            bodies: HashMap::new(),
            envelopes,
        };
        Rows { names, state, message: Message::default(), blank }
    }

    /// Reads on in a message; None where it has to be read from its tree.
    ///
    /// Args: its octets from where it is done, whether they begin it, whether they are the last ones, whether no rows are
    /// to be made, and the bounds as for objects.
    fn read(
        &mut self,
        py: Python<'_>,
        data: &Bound<'_, PyBytes>,
        is_first: bool,
        is_last: bool,
        is_dry: bool,
        bounds: Bounds,
    ) -> PyResult<Option<Found>> {
        let octets = data.as_bytes();
        let Rows { names, state, message, .. } = self;
        let read = py.detach(|| {
            if is_first {
                names.begin();
                *message = Message { is_dry, ..Message::default() };
            }
            let mut tokens = Tokens::new(octets, names, bounds)?;
            message.outline.begin(&mut tokens);
            let done = Walk { state, message, tokens }.run(is_last)?;
            let content = message.found.content;
            let found = Found { done, ..take(&mut message.found) };
            message.found.content = content;
            Ok(found)
        });
        settled(read)
    }

    /// How many rows there are, about how many octets, and whether so many names are known that a new reader is better.
    fn size(&self) -> (usize, usize, bool) {
        (self.state.rows, self.state.columns.size(), self.names.is_worn())
    }

    /// Takes columns out, by number, and forgets all rows.
    fn take<'py>(&mut self, py: Python<'py>, ids: Vec<usize>) -> PyResult<Vec<Taken<'py>>> {
        let rows = take(&mut self.state.rows);
        let mut columns = replace(&mut self.state.columns, self.blank.clone());
        ids.into_iter().map(|id| columns.take(py, id, rows)).collect()
    }
}

impl State {
    /// The route of an element of the body; None where Python has to find the objects in it.
    fn body(&mut self, names: &mut Names, tag: Tag) -> Result<Option<usize>, Stop> {
        if let Some(known) = self.bodies.get(&tag) {
            return Ok(*known);
        }
        let (routes, kinds) = Python::attach(|py| {
            let found = self.bridge.call_method1(py, "body", (names.clark(py, tag),))?;
            found.extract::<(Option<Vec<RouteData>>, Vec<Kind>)>(py)
        })?;
        self.kinds.extend(kinds);
        let first = self.routes.len();
        self.bodies.insert(tag, routes.as_ref().map(|_| first));
        for (node, actions) in routes.into_iter().flatten() {
            let place = |action, at| (action, if action == ENTER { first + at } else { at });
            let actions = actions.iter().map(|(name, action, at)| (names.known(&name.0, &name.1), place(*action, *at)));
            self.routes.push(Route { node, actions: actions.collect() });
        }
        Ok(self.bodies[&tag])
    }

    /// Puts what is to be known of an object into its row.
    fn facts<'n>(
        &mut self,
        kind: usize,
        begun: Begun,
        name: &str,
        parents: impl Iterator<Item = &'n str>,
        is_node: bool,
    ) {
        let Begun { row, position, line } = begun;
        self.columns.text(LABEL, row, self.kinds[kind].label.as_bytes());
        if !name.is_empty() {
            self.columns.text(NAME, row, name.as_bytes());
        }
        for parent in parents {
            let item = self.columns.item(PARENTS, row);
            self.columns.text(PARENT, item, parent.as_bytes());
        }
        for (column, value) in [(LINE, line), (POSITION, position), (IS_NODE, usize::from(is_node))] {
            self.columns.number(column, row, value as i128);
        }
    }

    /// The name that an object's row has among its columns.
    fn name_at(&self, kind: usize, row: usize) -> String {
        let mut made = String::new();
        let Some((list, kind, value)) = self.kinds[kind].parts else { return made };
        for item in self.columns.items(list, row) {
            add_part(&mut made, self.columns.text_at(kind, item), self.columns.text_at(value, item));
        }
        made
    }

    /// Puts a text into the column of its type.
    #[inline]
    fn store(&mut self, id: usize, row: usize, text: &str) -> Result<(), Stop> {
        let Leaf { column, form, least, most, .. } = self.plan.leaves[id];
        let number = match form {
            PLAIN => {
                self.columns.text(column, row, text.as_bytes());
                return Ok(());
            }
            DATE => date(text).and_then(days),
            MOMENT => microseconds(text),
            INTEGER => integer(text, least, most).map(i128::from),
            _ => None,
        };
        if let Some(number) = number {
            self.columns.number(column, row, number);
            return Ok(());
        }
        if let Some(known) = self.known[id].get(text) {
            self.columns.store(column, row, known.as_ref().ok_or(Stop::Odd)?);
            return Ok(());
        }
        let stored = Python::attach(|py| stored(self.bridge.bind(py), id, text))?;
        if self.known[id].len() < MOST_KNOWN && text.len() <= LONGEST_KNOWN {
            self.known[id].insert(text.into(), stored.clone());
        }
        self.columns.store(column, row, &stored.ok_or(Stop::Odd)?);
        Ok(())
    }
}

/// One walk over a piece of a message.
struct Walk<'s, 'd> {
    state: &'s mut State,
    message: &'s mut Message,
    tokens: Tokens<'d, 's>,
}

impl Walk<'_, '_> {
    /// Reads up to the end, or to where the next piece has to begin.
    fn run(&mut self, is_last: bool) -> Result<usize, Stop> {
        loop {
            let (row, position, odd) = (self.state.rows, self.message.position, self.message.found.odd.len());
            match self.step() {
                Ok(is_done) => {
                    self.message.outline.settle(&self.tokens);
                    if is_done {
                        return Ok(self.tokens.at);
                    }
                }
                Err(Stop::Odd | Stop::GiveUp) if !is_last => {
                    if self.state.rows > row {
                        self.message.found.dropped.push((row, self.state.rows));
                    }
                    self.message.position = position;
                    self.message.found.odd.truncate(odd);
                    return Ok(self.message.outline.settled);
                }
                Err(stop) => return Err(stop),
            }
        }
    }

    /// Reads what comes next outside of objects; whether the message has ended.
    fn step(&mut self) -> Result<bool, Stop> {
        give_up_if(self.state.columns.is_full)?;
        match self.message.outline.next(&mut self.tokens)? {
            Event::Done => return Ok(true),
            Event::End => self.close(self.tokens.last_tag),
            Event::Start(start) => self.child(&start)?,
        }
        Ok(false)
    }

    /// What is known of the innermost element.
    fn spot(&self) -> Option<&Spot> {
        self.message.outline.levels.last().map(|level| &level.about)
    }

    fn open(&mut self, start: &Start, place: Place, node: Option<Node>) {
        let is_in_body = self.spot().is_some_and(|spot| spot.place == Place::Body);
        let is_first = is_in_body && self.message.found.content.is_none();
        if is_first {
            self.message.found.content = Some((self.tokens.at, self.tokens.at));
        }
        self.message.outline.open(&self.tokens, start, Spot { place, node, is_first });
        if start.is_empty {
            self.close(self.tokens.at);
        }
    }

    /// Closes the innermost element, whose content ends at a place.
    fn close(&mut self, end: usize) {
        self.settle();
        let Some(level) = self.message.outline.levels.pop() else { return };
        if level.about.node.is_some() {
            self.message.above.pop();
        }
        if let Some(content) = self.message.found.content.as_mut().filter(|_| level.about.is_first) {
            content.1 = end;
        }
    }

    fn child(&mut self, start: &Start) -> Result<(), Stop> {
        let tag = self.tokens.tag(start)?;
        let Some(place) = self.spot().map(|spot| spot.place) else {
            let soap = self.state.envelopes.iter().position(|(envelope, _)| *envelope == tag);
            self.message.soap = soap.ok_or(Stop::GiveUp)?;
            self.open(start, Place::Envelope, None);
            return Ok(());
        };
        let (action, to) = match place {
            Place::Envelope if tag == self.state.envelopes[self.message.soap].1 && !self.message.has_body => {
                self.message.has_body = true;
                self.open(start, Place::Body, None);
                return Ok(());
            }
            Place::Body if !self.message.is_dry => {
                (ENTER, self.state.body(self.tokens.names, tag)?.ok_or(Stop::GiveUp)?)
            }
            Place::Route(route) => *self.state.routes[route].actions.get(&tag).ok_or(Stop::GiveUp)?,
            _ => (PASS, 0),
        };
        match action {
            PASS => self.open(start, Place::Nowhere, None),
            OBJECT => {
                self.settle();
                let begun = self.begin(start);
                let name = if self.fill(start, to, begun)? { self.state.name_at(to, begun.row) } else { String::new() };
                let parents = name.match_indices('/').map(|(end, _)| &name[..end]);
                self.state.facts(to, begun, &name, parents, false);
            }
            ENTER => {
                self.settle();
                let node = self.state.routes[to].node.clone().map(|(rdn, kind)| {
                    let begun = self.state.kinds[kind].is_wanted.then(|| self.begin(start));
                    Node { kind, rdn, begun, short: None, given: None, is_settled: false }
                });
                self.open(start, Place::Route(to), node);
            }
            SHORT_NAME => {
                let text = self.tokens.content(start)?.into_owned();
                let node = self.node()?;
                give_up_if(node.short.is_none() && node.is_settled)?;
                node.short.get_or_insert(text);
            }
            ATTRIBUTES => self.attributes_of_node(start)?,
            REFERENCES => {
                let begun = self.node()?.begun;
                let mut found = Vec::new();
                while let Some((child, _)) = self.inside(start)? {
                    found.push(self.name(&child)?);
                }
                self.message.found.related.extend(begun.map(|begun| (begun.row, to, found)));
            }
            QUALITY => {
                let begun = self.node()?.begun;
                let parts = self.parts(start)?;
                self.message.found.quality.extend(begun.map(|begun| (begun.row, parts)));
            }
            _ => return Err(Stop::GiveUp),
        }
        Ok(())
    }

    /// Begins an object whose start tag was read, in a new row.
    fn begin(&mut self, start: &Start) -> Begun {
        let line = self.message.outline.line_of(&self.tokens, start.end);
        self.message.position += 1;
        self.state.rows += 1;
        Begun { row: self.state.rows - 1, position: self.message.position, line }
    }

    /// Puts an object into its columns; false where it is odd, and was passed and noted.
    fn fill(&mut self, start: &Start, kind: usize, begun: Begun) -> Result<bool, Stop> {
        let filled = match self.state.kinds[kind].class {
            Some(class) => self.element(class, begun.row, start),
            None => Err(Stop::Odd),
        };
        if unless_odd(filled)?.is_some() {
            return Ok(true);
        }
        self.tokens.go_back(start);
        self.tokens.pass(start)?;
        let Begun { row, position, line } = begun;
        let outline = &self.message.outline;
        let lines_before = outline.line_of(&self.tokens, start.at()) - 1;
        let (around, depth) = (self.tokens.around(outline.names(), outline.scope()), outline.levels.len());
        let octets = (start.at(), self.tokens.at);
        let odd = Odd { row, position, line, kind, octets, lines_before, around, depth, node: None };
        self.message.found.odd.push(odd);
        Ok(false)
    }
}

/// Nodes of the nested layout.
impl Walk<'_, '_> {
    /// The innermost element, which is a node.
    fn node(&mut self) -> Result<&mut Node, Stop> {
        self.message.outline.levels.last_mut().and_then(|level| level.about.node.as_mut()).ok_or(Stop::GiveUp)
    }

    /// Reads the attributes of the innermost node; those after the first ones do not count.
    fn attributes_of_node(&mut self, start: &Start) -> Result<(), Stop> {
        let Node { kind, begun, .. } = *self.node()?;
        if self.node()?.given.is_some() {
            return self.tokens.pass(start);
        }
        give_up_if(self.node()?.is_settled)?;
        let given = match begun {
            Some(begun) if self.fill(start, kind, begun)? => self.state.name_at(kind, begun.row),
            _ => self.named(start, kind)?,
        };
        self.node()?.given = Some(given);
        Ok(())
    }

    /// Settles the name of the innermost node before an object inside it, or its end.
    fn settle(&mut self) {
        let Message { outline, above, found, .. } = &mut *self.message;
        let node = outline.levels.last_mut().and_then(|level| level.about.node.as_mut());
        let Some(node) = node.filter(|node| !node.is_settled) else { return };
        node.is_settled = true;
        let mut name = node.given.clone().unwrap_or_default();
        if let Some(short) = node.short.as_ref().filter(|short| name.is_empty() && !short.is_empty()) {
            // Inside a node of the same type the short name is complete within the node above that one.
            let outer = above.iter().rev().find(|(_, rdn)| *rdn != node.rdn);
            name = outer.map_or(String::new(), |(name, _)| name.clone());
            add_part(&mut name, &node.rdn, short);
        }
        if let Some(begun) = node.begun {
            self.state.facts(node.kind, begun, &name, above.iter().map(|(name, _)| &**name), true);
            if let Some(odd) = found.odd.iter_mut().rev().find(|odd| odd.row == begun.row) {
                odd.node = Some((name.clone(), above.iter().map(|(name, _)| name.clone()).collect()));
            }
        }
        above.push((name, node.rdn.clone()));
    }

    /// The next child element of an element whose start tag was read; None at its end.
    fn inside(&mut self, open: &Start) -> Result<Option<(Start, Tag)>, Stop> {
        if open.is_empty {
            return Ok(None);
        }
        let found = self.tokens.inside(self.tokens.raw(open), open.scope)?;
        found.map(|start| self.tokens.tag(&start).map(|tag| (start, tag))).transpose()
    }

    /// The name in an object that is not in columns.
    fn named(&mut self, start: &Start, kind: usize) -> Result<String, Stop> {
        self.tokens.go_back(start); // an odd one was passed
        let name = self.state.kinds[kind].name.as_ref();
        let mut wanted = name.map(|name| self.tokens.names.known(&name.0, &name.1));
        let mut found = String::new();
        while let Some((child, tag)) = self.inside(start)? {
            if wanted == Some(tag) {
                found = self.name(&child)?;
                wanted = None;
            } else {
                self.tokens.pass(&child)?;
            }
        }
        Ok(found)
    }

    /// The text form of a name.
    fn name(&mut self, start: &Start) -> Result<String, Stop> {
        let mut made = String::new();
        while let Some((rdn, _)) = self.inside(start)? {
            let parts = self.parts(&rdn)?;
            let part = |local: &str| parts.iter().rev().find(|part| part.0 == local).map_or("", |part| &part.1);
            add_part(&mut made, part("type"), part("value"));
        }
        Ok(made)
    }

    /// Local names and texts of the elements in an element.
    fn parts(&mut self, start: &Start) -> Result<Vec<Name>, Stop> {
        let mut found = Vec::new();
        while let Some((part, tag)) = self.inside(start)? {
            let text = self.tokens.content(&part)?.into_owned();
            found.push((self.tokens.names.local(tag).to_owned(), text));
        }
        Ok(found)
    }
}

/// What is inside objects.
impl Walk<'_, '_> {
    /// Puts an element of a class into its columns.
    fn element(&mut self, id: usize, row: usize, start: &Start) -> Result<(), Stop> {
        let Class { column, is_odd, nillable, text, .. } = self.state.plan.classes[id];
        if nillable && self.tokens.attribute(NIL).is_some() {
            return self.tokens.nil(start);
        }
        let mut missing = self.state.attributes[id].1;
        for index in 0..self.tokens.attributes.len() {
            let known = &self.state.attributes[id].0;
            let (leaf, must) = *known.get(&self.tokens.attributes[index].tag).ok_or(Stop::Odd)?;
            let text = self.tokens.value(index)?;
            self.state.store(leaf, row, &text)?;
            missing -= usize::from(must);
        }
        odd_if(is_odd || missing > 0)?;
        self.state.columns.mark(column, row);
        match text {
            Some(leaf) => {
                let text = self.tokens.content(start)?;
                self.state.store(leaf, row, &text)
            }
            None => self.children(id, row, start),
        }
    }

    fn children(&mut self, id: usize, row: usize, start: &Start) -> Result<(), Stop> {
        let (mut last, mut found, mut previous) = (-1, 0, None);
        while !start.is_empty && self.tokens.next_tag()? {
            let State { children, plan, columns, .. } = &mut *self.state;
            let (child, index) = children[id].read(&mut self.tokens, start.scope, previous)?;
            let index = index.ok_or(Stop::Odd)?;
            let step = plan.classes[id].steps[index];
            previous = Some(index);
            if step.order > last {
                last = step.order;
                found += usize::from(step.required);
            } else {
                odd_if(!step.many || step.order != last)?;
            }
            let row = step.list.map_or(row, |list| columns.item(list, row));
            match step.target {
                TO_LEAF => self.leaf(step.at, row, &child)?,
                TO_OBJECT => self.element(step.at, row, &child)?,
                TO_NOTHING => self.tokens.pass(&child)?,
                TO_MARK => {
                    odd_if(!self.tokens.attributes.is_empty())?;
                    odd_if(!all_blank(self.tokens.content(&child)?.as_bytes()))?;
                    columns.number(step.at, row, 1);
                }
                TO_OPEN => self.open_content(step.at, row, &child, start.scope)?,
                _ => return Err(Stop::Odd),
            }
        }
        if !start.is_empty {
            self.tokens.end_tag(self.tokens.raw(start))?;
        }
        odd_if(found != self.state.plan.classes[id].required)
    }

    /// Puts an element of simple type into its column; nothing where it is nil.
    #[inline]
    fn leaf(&mut self, leaf: usize, row: usize, start: &Start) -> Result<(), Stop> {
        if !self.tokens.attributes.is_empty() {
            odd_if(!self.state.plan.leaves[leaf].nillable)?;
            return self.tokens.nil(start);
        }
        let text = self.tokens.content(start)?;
        self.state.store(leaf, row, &text)
    }

    /// Puts open content into its columns: Python is asked for the texts in it, and for the XML.
    fn open_content(&mut self, open: usize, row: usize, start: &Start, scope: ScopeId) -> Result<(), Stop> {
        odd_if(!self.tokens.attributes.is_empty())?;
        self.tokens.pass(start)?;
        let mut found = Some((Vec::<Name>::new(), String::new()));
        if !start.is_empty {
            let (before, after) = self.tokens.around(std::iter::once(&b"around"[..]), scope);
            let document = [&before, &self.tokens.data[start.at()..self.tokens.at], &after].concat();
            found = Python::attach(|py| {
                let document = PyBytes::new(py, &document);
                self.state.bridge.call_method1(py, "open", (document,))?.extract(py)
            })?;
        }
        let (pairs, xml) = found.ok_or(Stop::Odd)?;
        let [map, entry, key, value, raw] = self.state.plan.opens[open];
        let columns = &mut self.state.columns;
        columns.list(map, row);
        for (path, text) in pairs {
            let item = columns.item(map, row);
            columns.mark(entry, item);
            columns.text(key, item, path.as_bytes());
            columns.text(value, item, text.as_bytes());
        }
        columns.text(raw, row, xml.as_bytes());
        Ok(())
    }
}

/// What Python makes of a text; None where that is odd.
fn stored(bridge: &Bound<'_, PyAny>, leaf: usize, text: &str) -> PyResult<Option<Stored>> {
    let made = bridge.call_method1("store", (leaf, text))?;
    if let Ok(text) = made.cast::<PyString>() {
        return Ok(Some(Stored::Octets(text.to_str()?.as_bytes().into())));
    }
    if let Ok(octets) = made.cast::<PyBytes>() {
        return Ok(Some(Stored::Octets(octets.as_bytes().into())));
    }
    made.cast::<PyInt>().ok().map(|number| number.extract().map(Stored::Number)).transpose()
}

/// Adds a part to the text form of a name.
fn add_part(name: &mut String, kind: &str, value: &str) {
    if !name.is_empty() {
        name.push('/');
    }
    for (index, part) in [kind, value].into_iter().enumerate() {
        if index > 0 {
            name.push('=');
        }
        for one in part.chars() {
            match one {
                '%' => name.push_str("%25"),
                '/' => name.push_str("%2F"),
                '=' => name.push_str("%3D"),
                one => name.push(one),
            }
        }
    }
}

/// Days since 1970; None for a day that there is not.
fn days((year, month, day): (i32, u8, u8)) -> Option<i128> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let most = match month {
        2 => 28 + u8::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year < 1 || day < 1 || day > most {
        return None;
    }
    // Years begin in March, so that the day of a leap year is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before = 365 * year + year / 4 - year / 100 + year / 400;
    Some(i128::from(before + (153 * i32::from(month) + 2) / 5 + i32::from(day) - 719_469))
}

/// Microseconds since 1970 of a dateTime in UTC without a fraction.
fn microseconds(text: &str) -> Option<i128> {
    let (day, [hour, minute, second]) = moment(text)?;
    let is_one = hour < 24 && minute < 60 && second < 60;
    let seconds = days(day)? * 86_400 + i128::from(hour * 3600 + minute * 60 + second);
    is_one.then_some(seconds * 1_000_000)
}
