//! Envelopes to rows: walks over a message, finds the objects that are wanted, and puts each into its columns.
//!
//! Python says once which path of elements and attributes goes to which column, and where objects stand. An object is odd
//! where something in it departs from its class: it is passed, its row stays without meaning, and Python reads it from its
//! own octets. Python is asked too what an unusual text stands for. Else no lock of the interpreter is held.

use std::collections::{HashMap, HashSet};
use std::mem::take;
use std::sync::{Mutex, MutexGuard, PoisonError};

use memchr::memchr_iter;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString};

use crate::columns::{ColumnId, Columns, Stored, Taken};
use crate::names::{Names, ScopeId, Tag, NOWHERE, XSI};
use crate::plans::Habit;
use crate::tokens::{all_blank, Bounds, Start, Token, Tokens};
use crate::values::{date, integer, moment};
use crate::Stop;

const SOAP: [&str; 2] = ["http://schemas.xmlsoap.org/soap/envelope/", "http://www.w3.org/2003/05/soap-envelope"];

/// Texts of a simple type that are remembered, and their octets.
const MOST_KNOWN: usize = 4096;
const LONGEST_KNOWN: usize = 64;

/// The columns that tell of objects; Python knows the same numbers. Names of parents are items of their list.
const LABEL: ColumnId = 0;
const NAME: ColumnId = 1;
const PARENTS: ColumnId = 2;
const PARENT: ColumnId = 3;
const LINE: ColumnId = 4;
const POSITION: ColumnId = 5;
const IS_NODE: ColumnId = 6;

/// Why an element does not go into its columns.
enum Fail {
    Odd,
    Stop(Stop),
}

impl<E: Into<Stop>> From<E> for Fail {
    fn from(error: E) -> Fail {
        Fail::Stop(error.into())
    }
}

/// How the texts of a simple type become what its column holds.
enum Form {
    Plain,
    Date,
    /// A dateTime in UTC without a fraction.
    Moment,
    Integer(i64, i64),
    /// Python is asked once for each text.
    Asked,
}

struct Leaf {
    column: ColumnId,
    form: Form,
    nillable: bool,
    known: HashMap<Box<str>, Option<Stored>>,
}

#[derive(Clone, Copy)]
enum Target {
    /// Nobody asked for it.
    Skip,
    Leaf(usize),
    Object(usize),
    /// An element whose type has no content.
    Mark(ColumnId),
    Open(usize),
    Odd,
}

/// Where a child element goes.
#[derive(Clone, Copy)]
struct Step {
    order: i32,
    many: bool,
    list: Option<ColumnId>,
    required: usize,
    target: Target,
}

/// A class.
struct Class {
    column: ColumnId,
    is_odd: bool,
    nillable: bool,
    text: Option<usize>,
    steps: Vec<Step>,
    by_tag: HashMap<Tag, usize>,
    habits: Vec<Habit>,
    first: usize,
    required: usize,
    attributes: HashMap<Tag, usize>,
    must: Vec<Tag>,
}

/// A kind of objects: its label, its class, whether it becomes rows, the element of its name, and the columns of a name's
/// parts.
struct Kind {
    label: String,
    class: Option<usize>,
    is_wanted: bool,
    name: Option<Tag>,
    parts: Option<(ColumnId, ColumnId, ColumnId)>,
}

/// What becomes of an element outside of objects.
#[derive(Clone, Copy)]
enum Action {
    Pass,
    Object(usize),
    Enter(usize),
    /// Of a node: its short name, its attributes, a list of references, its quality.
    Short,
    Attributes,
    References(usize),
    Quality,
}

/// Where objects stand in an element; for a node the type in its name and the kind of its attributes.
struct Route {
    node: Option<(String, usize)>,
    actions: HashMap<Tag, Action>,
}

type LeafData = (ColumnId, u8, i64, i64, bool);
type StepData = (String, String, i32, bool, Option<ColumnId>, bool, u8, usize);
type ClassData = (ColumnId, bool, bool, Option<usize>, Vec<StepData>, Vec<(String, String, usize, bool)>);
type Name = (String, String);
type KindData = (String, Option<usize>, bool, Option<Name>, Option<(ColumnId, ColumnId, ColumnId)>);
type RouteData = (Option<(String, usize)>, Vec<(String, String, u8, usize)>);
/// Columns of open content: the map, its entries, their keys and values, the XML.
type OpenData = [ColumnId; 5];
type PlanData = (Vec<(String, Vec<usize>)>, Vec<LeafData>, Vec<ClassData>, Vec<OpenData>);

/// The plan, and the rows so far.
struct State {
    columns: Columns,
    rows: usize,
    names: Names,
    leaves: Vec<Leaf>,
    classes: Vec<Class>,
    opens: Vec<OpenData>,
    kinds: Vec<Kind>,
    routes: Vec<Route>,
    /// Routes of elements of bodies, as far as one was met.
    bodies: HashMap<Tag, Option<usize>>,
    envelopes: [(Tag, Tag); 2],
    nil: Tag,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Envelope,
    Body,
    Route(usize),
    Nowhere,
}

/// An open element outside of objects.
struct Frame {
    name: Box<[u8]>,
    scope: ScopeId,
    place: Place,
    node: Option<Node>,
    is_first: bool,
}

/// An inventory node: its row if it has one, and what is known of its name.
#[derive(Default)]
struct Node {
    row: Option<usize>,
    lines_before: usize,
    line: usize,
    position: usize,
    short: Option<String>,
    given: Option<String>,
    is_settled: bool,
}

/// An object that Python reads: its row, position and line, its kind, its octets, the lines before them, the namespaces in
/// scope, the names of the elements around it, and for a node its name and those of its parents.
type Odd = (usize, usize, usize, usize, (usize, usize), usize, Vec<Name>, Vec<String>, Option<(String, Vec<String>)>);

/// A message that is being read, piece by piece or whole.
#[derive(Default)]
struct Message {
    frames: Vec<Frame>,
    /// Names of the nodes that are open, and their types.
    above: Vec<(String, usize)>,
    position: usize,
    line: usize,
    counted: usize,
    has_begun: bool,
    has_body: bool,
    soap: usize,
    /// Whether no rows are made, only well-formedness is judged.
    is_dry: bool,
    /// Where the content of the body's first element stands.
    content: Option<(usize, usize)>,
    odd: Vec<Odd>,
    related: Vec<(usize, usize, Vec<String>)>,
    quality: Vec<(usize, Vec<Name>)>,
    /// Rows without meaning.
    dropped: Vec<(usize, usize)>,
}

impl State {
    fn new(plan: PlanData) -> State {
        let (columns, leaves, classes, opens) = plan;
        let mut names = Names::new();
        let mut tag = |name: &Name| {
            let space = names.space(&name.0);
            names.tag(space, &name.1)
        };
        let nil = tag(&(XSI.into(), "nil".into()));
        let envelopes = SOAP.map(|soap| (tag(&(soap.into(), "Envelope".into())), tag(&(soap.into(), "Body".into()))));
        let leaves = leaves.into_iter().map(|(column, form, least, most, nillable)| {
            let form = match form {
                0 => Form::Plain,
                1 => Form::Date,
                2 => Form::Moment,
                3 => Form::Integer(least, most),
                _ => Form::Asked,
            };
            Leaf { column, form, nillable, known: HashMap::new() }
        });
        let leaves = leaves.collect();
        let mut made = Vec::new();
        for (column, is_odd, nillable, text, steps, attributes) in classes {
            let mut class = Class {
                column,
                is_odd,
                nillable,
                text,
                steps: Vec::new(),
                by_tag: HashMap::new(),
                habits: Vec::new(),
                first: 0,
                required: 0,
                attributes: HashMap::new(),
                must: Vec::new(),
            };
            let mut orders = HashSet::new();
            for (space, local, order, many, list, required, target, id) in steps {
                let target = match target {
                    0 => Target::Skip,
                    1 => Target::Leaf(id),
                    2 => Target::Object(id),
                    3 => Target::Mark(id),
                    4 => Target::Open(id),
                    _ => Target::Odd,
                };
                class.by_tag.insert(tag(&(space, local)), class.steps.len());
                class.required += usize::from(required && orders.insert(order));
                class.steps.push(Step { order, many, list, required: usize::from(required), target });
                class.habits.push(Habit { name: Box::default(), scope: 0, next: class.steps.len() });
            }
            for (space, local, leaf, must) in attributes {
                let tag = tag(&(space, local));
                class.attributes.insert(tag, leaf);
                class.must.extend(must.then_some(tag));
            }
            made.push(class);
        }
        State {
            kinds: Vec::new(),
            columns: Columns::new(columns),
            rows: 0,
            leaves,
            classes: made,
            opens,
            routes: Vec::new(),
            bodies: HashMap::new(),
            envelopes,
            nil,
            names,
        }
    }
}

/// Makes rows of messages.
#[pyclass(frozen)]
pub struct Rows {
    bridge: Py<PyAny>,
    inner: Mutex<(State, Message)>,
}

/// What reading on in a message gave: the octets that are done, odd objects, references, qualities, rows without meaning,
/// and where the content of the body's first element stands.
type Read = (
    usize,
    Vec<Odd>,
    Vec<(usize, usize, Vec<String>)>,
    Vec<(usize, Vec<Name>)>,
    Vec<(usize, usize)>,
    Option<(usize, usize)>,
);

impl Rows {
    fn inner(&self) -> MutexGuard<'_, (State, Message)> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Rows {
    /// Args: what is asked for values and routes, and the plan.
    #[new]
    fn new(bridge: Py<PyAny>, plan: PlanData) -> Rows {
        Rows { bridge, inner: Mutex::new((State::new(plan), Message::default())) }
    }

    /// Reads on in a message; None where it has to be read from its tree.
    ///
    /// Args: its octets from where it is done, whether they begin it, whether they are the last ones, whether no rows are
    /// to be made, and the bounds as for objects.
    fn read(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyBytes>,
        is_first: bool,
        is_last: bool,
        is_dry: bool,
        bounds: (usize, usize, usize),
    ) -> PyResult<Option<Read>> {
        let bounds = Bounds { depth: bounds.0, attributes: bounds.1, namespaces: bounds.2 };
        let octets = data.as_bytes();
        let read = py.detach(|| {
            let mut inner = self.inner();
            let (state, message) = &mut *inner;
            if is_first {
                state.names.begin();
                *message = Message { is_dry, line: 1, ..Message::default() };
            }
            message.counted = 0;
            let tokens = Tokens::new(octets, bounds)?;
            let at = Walk { bridge: &self.bridge, state, message, tokens }.run(is_last)?;
            let Message { odd, related, quality, dropped, content, .. } = message;
            Ok((at, take(odd), take(related), take(quality), take(dropped), *content))
        });
        match read {
            Ok(read) => Ok(Some(read)),
            Err(Stop::GiveUp) => Ok(None),
            Err(Stop::Python(error)) => Err(error),
        }
    }

    /// How many rows there are, and about how many octets.
    fn size(&self) -> (usize, usize) {
        let (state, _) = &*self.inner();
        (state.rows, state.columns.size())
    }

    /// Takes columns out, by number, and forgets all rows.
    fn take<'py>(&self, py: Python<'py>, ids: Vec<usize>) -> PyResult<Vec<Taken<'py>>> {
        let (state, _) = &mut *self.inner();
        let rows = take(&mut state.rows);
        let taken = ids.into_iter().map(|id| state.columns.take(py, id, rows)).collect();
        state.columns.clear();
        taken
    }
}

struct Walk<'s, 'd> {
    bridge: &'s Py<PyAny>,
    state: &'s mut State,
    message: &'s mut Message,
    tokens: Tokens<'d>,
}

impl<'d> Walk<'_, 'd> {
    fn run(&mut self, is_last: bool) -> Result<usize, Stop> {
        loop {
            let (at, row) = (self.tokens.at, self.state.rows);
            let Message { position, line, counted, .. } = *self.message;
            let odd = self.message.odd.len();
            match self.step() {
                Ok(false) => {}
                Ok(true) => return Ok(self.tokens.at),
                Err(Stop::GiveUp) if !is_last => {
                    // It may go on in the next piece.
                    if self.state.rows > row {
                        self.message.dropped.push((row, self.state.rows));
                    }
                    (self.message.position, self.message.line, self.message.counted) = (position, line, counted);
                    self.message.odd.truncate(odd);
                    self.count(at);
                    return Ok(at);
                }
                Err(stop) => return Err(stop),
            }
        }
    }

    /// Reads what comes next outside of objects; whether the message has ended.
    fn step(&mut self) -> Result<bool, Stop> {
        if !self.message.has_begun {
            self.tokens.prolog()?;
            let start = self.tokens.start_tag(&mut self.state.names, NOWHERE)?;
            let tag = self.tag(&start)?;
            let soap = self.state.envelopes.iter().position(|(envelope, _)| *envelope == tag);
            self.message.soap = soap.ok_or(Stop::GiveUp)?;
            self.message.has_begun = true;
            self.open(&start, Place::Envelope, None);
            return Ok(false);
        }
        let Some(frame) = self.message.frames.last() else {
            self.tokens.epilog()?;
            return Ok(true);
        };
        let scope = frame.scope;
        let run = self.tokens.run()?;
        self.tokens.check(run)?;
        let at = self.tokens.at;
        match self.tokens.markup()? {
            Token::Section(_) | Token::Aside => {}
            Token::End => {
                self.tokens.end_tag_of(&frame.name)?;
                self.close(at);
            }
            Token::Start => {
                if self.depth() > self.tokens.bounds.depth {
                    return Err(Stop::GiveUp);
                }
                let start = self.tokens.start_tag(&mut self.state.names, scope)?;
                self.child(&start, at)?;
            }
        }
        Ok(false)
    }

    /// The depth of a child of the innermost element.
    fn depth(&self) -> usize {
        self.message.frames.len() + 1
    }

    fn tag(&mut self, start: &Start) -> Result<Tag, Stop> {
        self.state.names.element(start.scope, &self.tokens.data[start.name.clone()])
    }

    fn open(&mut self, start: &Start, place: Place, node: Option<Node>) {
        let name = self.tokens.data[start.name.clone()].into();
        let is_first = matches!(place, Place::Route(_) | Place::Nowhere)
            && self.message.content.is_none()
            && self.message.frames.last().is_some_and(|frame| frame.place == Place::Body);
        if is_first {
            self.message.content = Some((self.tokens.at, self.tokens.at));
        }
        self.message.frames.push(Frame { name, scope: start.scope, place, node, is_first });
        if start.is_empty {
            self.close(self.tokens.at);
        }
    }

    /// Closes the innermost element, whose content ends at a place.
    fn close(&mut self, end: usize) {
        self.settle();
        let Some(frame) = self.message.frames.pop() else { return };
        if frame.node.is_some() {
            self.message.above.pop();
        }
        if let Some((_, last)) = self.message.content.as_mut().filter(|_| frame.is_first) {
            *last = end;
        }
    }

    /// The line of a place, which is not before the last one asked for.
    fn count(&mut self, at: usize) -> usize {
        let passed = &self.tokens.data[self.message.counted.min(at)..at];
        self.message.line += memchr_iter(b'\n', passed).count();
        self.message.counted = at;
        self.message.line
    }

    fn child(&mut self, start: &Start, at: usize) -> Result<(), Stop> {
        let tag = self.tag(start)?;
        let action = match self.message.frames.last().map_or(Place::Nowhere, |frame| frame.place) {
            Place::Envelope if tag == self.state.envelopes[self.message.soap].1 && !self.message.has_body => {
                self.message.has_body = true;
                self.open(start, Place::Body, None);
                return Ok(());
            }
            Place::Body if !self.message.is_dry => Action::Enter(self.body(tag)?.ok_or(Stop::GiveUp)?),
            Place::Route(route) => *self.state.routes[route].actions.get(&tag).ok_or(Stop::GiveUp)?,
            _ => Action::Pass,
        };
        let depth = self.depth();
        match action {
            Action::Pass => self.open(start, Place::Nowhere, None),
            Action::Object(kind) => {
                self.settle();
                self.object(start, at, kind)?;
            }
            Action::Enter(route) => {
                self.settle();
                let node = self.state.routes[route].node.as_ref().map(|(_, kind)| *kind);
                let node = node.map(|kind| self.begin(at, self.state.kinds[kind].is_wanted));
                self.open(start, Place::Route(route), node);
            }
            Action::Short => {
                let text = self.tokens.content(&mut self.state.names, start, depth)?.ok_or(Stop::GiveUp)?.into_owned();
                let node = self.node()?;
                if node.short.is_none() && node.is_settled {
                    return Err(Stop::GiveUp);
                }
                node.short.get_or_insert(text);
            }
            Action::Attributes => self.attributes_of_node(start, at)?,
            Action::References(key) => {
                let row = self.node()?.row;
                let mut found = Vec::new();
                while let Some((child, _)) = self.inside(start)? {
                    found.push(self.name(&child, depth + 1)?);
                }
                self.message.related.extend(row.map(|row| (row, key, found)));
            }
            Action::Quality => {
                let row = self.node()?.row;
                let parts = self.parts(start, depth)?;
                self.message.quality.extend(row.map(|row| (row, parts)));
            }
        }
        Ok(())
    }

    /// The route of an element of the body; None where Python has to find the objects in it.
    fn body(&mut self, tag: Tag) -> Result<Option<usize>, Stop> {
        if let Some(known) = self.state.bodies.get(&tag) {
            return Ok(*known);
        }
        let State { names, routes, bodies, kinds, .. } = &mut *self.state;
        let described = Python::attach(|py| {
            let found = self.bridge.call_method1(py, "body", (names.clark(py, tag),))?;
            found.extract::<(Option<Vec<RouteData>>, Vec<KindData>)>(py)
        })?;
        let first = routes.len();
        bodies.insert(tag, described.0.as_ref().map(|_| first));
        for (label, class, is_wanted, name, parts) in described.1 {
            let name = name.map(|(space, local)| {
                let space = names.space(&space);
                names.tag(space, &local)
            });
            kinds.push(Kind { label, class, is_wanted, name, parts });
        }
        for (node, actions) in described.0.into_iter().flatten() {
            let actions = actions.into_iter().map(|(space, local, action, id)| {
                let action = match action {
                    0 => Action::Pass,
                    1 => Action::Object(id),
                    2 => Action::Enter(first + id),
                    3 => Action::Short,
                    4 => Action::Attributes,
                    5 => Action::References(id),
                    _ => Action::Quality,
                };
                let space = names.space(&space);
                (names.tag(space, &local), action)
            });
            routes.push(Route { node, actions: actions.collect() });
        }
        Ok(self.state.bodies[&tag])
    }

    /// Begins an object: its row, if it gets one, its line and position.
    fn begin(&mut self, at: usize, is_wanted: bool) -> Node {
        let lines_before = self.count(at) - 1;
        let line = lines_before + 1 + memchr_iter(b'\n', &self.tokens.data[at..self.tokens.at]).count();
        let row = is_wanted.then_some(self.state.rows);
        self.state.rows += usize::from(is_wanted);
        self.message.position += usize::from(is_wanted);
        Node { row, lines_before, line, position: self.message.position, ..Node::default() }
    }

    /// Reads an object of a flat list.
    fn object(&mut self, start: &Start, at: usize, kind: usize) -> Result<(), Stop> {
        let begun = self.begin(at, true);
        let row = begun.row.unwrap_or_default();
        let name = if self.fill(start, at, kind, row)? {
            self.name_at(kind, row)
        } else {
            self.note(at, kind, &begun, None);
            String::new()
        };
        let parents = name.match_indices('/').map(|(end, _)| &name[..end]).collect::<Vec<_>>();
        self.facts(kind, &begun, &name, &parents, false);
        Ok(())
    }

    /// Puts an object into its columns; false where it is odd, and was passed.
    fn fill(&mut self, start: &Start, at: usize, kind: usize, row: usize) -> Result<bool, Stop> {
        let depth = self.depth();
        let read = match self.state.kinds[kind].class {
            Some(class) => self.element(class, row, start, depth),
            None => Err(Fail::Odd),
        };
        match read {
            Ok(()) => Ok(true),
            Err(Fail::Stop(stop)) => Err(stop),
            Err(Fail::Odd) => {
                let scope = self.message.frames.last().map_or(NOWHERE, |frame| frame.scope);
                self.tokens.at = at;
                let start = self.tokens.start_tag(&mut self.state.names, scope)?;
                self.tokens.pass_all(&mut self.state.names, &start, depth)?;
                Ok(false)
            }
        }
    }

    /// Notes an odd object, which ends here.
    fn note(&mut self, at: usize, kind: usize, begun: &Node, names: Option<(String, Vec<String>)>) {
        let scope = self.message.frames.last().map_or(NOWHERE, |frame| frame.scope);
        let locals = self.message.frames.iter().map(|frame| {
            let name = std::str::from_utf8(&frame.name).unwrap_or("");
            name.rsplit(':').next().unwrap_or("").to_owned()
        });
        self.message.odd.push((
            begun.row.unwrap_or_default(),
            begun.position,
            begun.line,
            kind,
            (at, self.tokens.at),
            begun.lines_before,
            self.state.names.in_scope(scope).into_iter().map(|(prefix, uri)| (prefix.into(), uri.into())).collect(),
            locals.collect(),
            names,
        ));
    }

    /// Puts what is to be known of an object into its row.
    fn facts(&mut self, kind: usize, begun: &Node, name: &str, parents: &[&str], is_node: bool) {
        let Some(row) = begun.row else { return };
        let columns = &mut self.state.columns;
        columns.text(LABEL, row, self.state.kinds[kind].label.as_bytes());
        if !name.is_empty() {
            columns.text(NAME, row, name.as_bytes());
        }
        for parent in parents {
            let item = columns.item(PARENTS, row);
            columns.text(PARENT, item, parent.as_bytes());
        }
        columns.number(LINE, row, begun.line as i128);
        columns.number(POSITION, row, begun.position as i128);
        columns.number(IS_NODE, row, i128::from(is_node));
    }

    /// The name that an object's row has among its columns.
    fn name_at(&self, kind: usize, row: usize) -> String {
        let mut made = String::new();
        let Some((list, kind, value)) = self.state.kinds[kind].parts else { return made };
        for item in self.state.columns.items(list, row) {
            let (kind, value) = (self.state.columns.text_at(kind, item), self.state.columns.text_at(value, item));
            add_part(&mut made, kind, value);
        }
        made
    }
}

/// Nodes of the nested layout.
impl<'d> Walk<'_, 'd> {
    /// The innermost element, which is a node.
    fn node(&mut self) -> Result<&mut Node, Stop> {
        self.message.frames.last_mut().and_then(|frame| frame.node.as_mut()).ok_or(Stop::GiveUp)
    }

    fn kind_of_node(&self) -> usize {
        match self.message.frames.last().map(|frame| frame.place) {
            Some(Place::Route(route)) => self.state.routes[route].node.as_ref().map_or(0, |(_, kind)| *kind),
            _ => 0,
        }
    }

    /// Reads the attributes of the innermost node; those after the first ones do not count.
    fn attributes_of_node(&mut self, start: &Start, at: usize) -> Result<(), Stop> {
        let (kind, depth) = (self.kind_of_node(), self.depth());
        let node = self.node()?;
        if node.given.is_some() {
            return self.tokens.pass_all(&mut self.state.names, start, depth);
        }
        if node.is_settled {
            return Err(Stop::GiveUp);
        }
        let row = node.row;
        let given = match row {
            Some(row) => {
                if self.fill(start, at, kind, row)? {
                    self.name_at(kind, row)
                } else {
                    let begun = Node { row: Some(row), lines_before: self.count(at) - 1, ..Node::default() };
                    self.note(at, kind, &begun, Some((String::new(), Vec::new())));
                    let end = self.tokens.at;
                    self.tokens.at = at;
                    let scope = self.message.frames.last().map_or(NOWHERE, |frame| frame.scope);
                    let start = self.tokens.start_tag(&mut self.state.names, scope)?;
                    let given = self.named(&start, kind, depth)?;
                    self.tokens.at = end;
                    given
                }
            }
            None => self.named(start, kind, depth)?,
        };
        self.node()?.given = Some(given);
        Ok(())
    }

    /// Settles the name of the innermost node before an object inside it, or its end.
    fn settle(&mut self) {
        let kind = self.kind_of_node();
        let Some(Frame { node: Some(node), .. }) = self.message.frames.last_mut() else { return };
        if node.is_settled {
            return;
        }
        node.is_settled = true;
        let begun = Node { row: node.row, line: node.line, position: node.position, ..Node::default() };
        let (given, short) = (node.given.clone().unwrap_or_default(), node.short.clone().unwrap_or_default());
        let (rdn, id) = self.rdn();
        let above = &self.message.above;
        let name = if !given.is_empty() {
            given
        } else if short.is_empty() {
            String::new()
        } else {
            // Inside a node of the same type the short name is complete within the node above that one.
            let outer = above.iter().rev().find(|(_, other)| *other != id).map_or("", |(name, _)| name);
            let mut made = String::from(outer);
            add_part(&mut made, &rdn, &short);
            made
        };
        let parents: Vec<String> = above.iter().map(|(name, _)| name.clone()).collect();
        let refs: Vec<&str> = parents.iter().map(String::as_str).collect();
        self.facts(kind, &begun, &name, &refs, true);
        if let Some(row) = begun.row {
            if let Some(odd) = self.message.odd.iter_mut().rev().find(|odd| odd.0 == row) {
                (odd.1, odd.2) = (begun.position, begun.line);
                odd.8 = Some((name.clone(), parents));
            }
        }
        self.message.above.push((name, id));
    }

    /// The type in the name of the innermost node, and a number for it.
    fn rdn(&self) -> (String, usize) {
        let Some(Place::Route(route)) = self.message.frames.last().map(|frame| frame.place) else {
            return (String::new(), 0);
        };
        let rdn = self.state.routes[route].node.as_ref().map_or("", |(rdn, _)| rdn);
        let same = |route: &Route| route.node.as_ref().is_some_and(|(other, _)| other == rdn);
        (rdn.to_owned(), self.state.routes.iter().position(same).unwrap_or_default())
    }

    /// The next child element of an element whose start tag was read; None at its end.
    fn inside(&mut self, open: &Start) -> Result<Option<(Start, Tag)>, Stop> {
        while !open.is_empty {
            let run = self.tokens.run()?;
            self.tokens.check(run)?;
            match self.tokens.markup()? {
                Token::Section(_) | Token::Aside => {}
                Token::End => {
                    self.tokens.end_tag(&open.name)?;
                    return Ok(None);
                }
                Token::Start => {
                    let start = self.tokens.start_tag(&mut self.state.names, open.scope)?;
                    let tag = self.tag(&start)?;
                    return Ok(Some((start, tag)));
                }
            }
        }
        Ok(None)
    }

    /// The name that an object's element has, which is not in columns.
    fn named(&mut self, start: &Start, kind: usize, depth: usize) -> Result<String, Stop> {
        let mut wanted = self.state.kinds[kind].name;
        let mut found = String::new();
        while let Some((child, tag)) = self.inside(start)? {
            if wanted == Some(tag) {
                found = self.name(&child, depth + 1)?;
                wanted = None;
            } else {
                self.tokens.pass_all(&mut self.state.names, &child, depth + 1)?;
            }
        }
        Ok(found)
    }

    /// The text form of a name.
    fn name(&mut self, start: &Start, depth: usize) -> Result<String, Stop> {
        let mut made = String::new();
        while let Some((rdn, _)) = self.inside(start)? {
            let parts = self.parts(&rdn, depth + 1)?;
            let part = |local: &str| parts.iter().rev().find(|part| part.0 == local).map_or("", |part| &part.1);
            add_part(&mut made, part("type"), part("value"));
        }
        Ok(made)
    }

    /// Local names and texts of the elements in an element.
    fn parts(&mut self, start: &Start, depth: usize) -> Result<Vec<Name>, Stop> {
        let mut found = Vec::new();
        if depth >= self.tokens.bounds.depth {
            return Err(Stop::GiveUp);
        }
        while let Some((part, tag)) = self.inside(start)? {
            let text = self.tokens.content(&mut self.state.names, &part, depth + 1)?.ok_or(Stop::GiveUp)?;
            found.push((self.state.names.local(tag).to_owned(), text.into_owned()));
        }
        Ok(found)
    }
}

/// What is inside objects.
impl<'d> Walk<'_, 'd> {
    /// Puts an element of a class into its columns.
    fn element(&mut self, id: usize, row: usize, start: &Start, depth: usize) -> Result<(), Fail> {
        let class = &self.state.classes[id];
        if !(self.tokens.attributes.is_empty() && class.must.is_empty()) {
            if class.nillable && self.is_nil(start, depth)? {
                return Ok(());
            }
            self.attributes(id, row)?;
        }
        let class = &self.state.classes[id];
        if class.is_odd {
            return Err(Fail::Odd);
        }
        self.state.columns.mark(class.column, row);
        match class.text {
            Some(leaf) => {
                let text = self.tokens.content(&mut self.state.names, start, depth)?.ok_or(Fail::Odd)?;
                self.store(leaf, row, &text)
            }
            None => self.children(id, row, start, depth),
        }
    }

    /// Whether the last start tag says that its element is nil; it then has no content.
    fn is_nil(&mut self, start: &Start, depth: usize) -> Result<bool, Fail> {
        if !self.tokens.attributes.iter().any(|one| one.tag == self.state.nil) {
            return Ok(false);
        }
        let is_plain = self.tokens.attributes.len() == 1 && matches!(&*self.tokens.value(0)?, "true" | "1");
        let text = self.tokens.content(&mut self.state.names, start, depth)?;
        if is_plain && text.is_some_and(|text| text.is_empty()) {
            Ok(true)
        } else {
            Err(Fail::Odd)
        }
    }

    fn attributes(&mut self, id: usize, row: usize) -> Result<(), Fail> {
        for index in 0..self.tokens.attributes.len() {
            let tag = self.tokens.attributes[index].tag;
            let leaf = *self.state.classes[id].attributes.get(&tag).ok_or(Fail::Odd)?;
            let text = self.tokens.value(index)?;
            self.store(leaf, row, &text)?;
        }
        let has = |tag: &Tag| self.tokens.attributes.iter().any(|one| one.tag == *tag);
        if self.state.classes[id].must.iter().all(has) {
            Ok(())
        } else {
            Err(Fail::Odd)
        }
    }

    fn children(&mut self, id: usize, row: usize, start: &Start, depth: usize) -> Result<(), Fail> {
        let (mut last, mut found, mut previous) = (-1, 0, None::<usize>);
        let mut next = self.state.classes[id].first;
        if depth >= self.tokens.bounds.depth {
            return Err(Stop::GiveUp.into());
        }
        while !start.is_empty {
            let run = self.tokens.run()?;
            if !all_blank(&self.tokens.data[run]) {
                return Err(Fail::Odd);
            }
            match self.tokens.markup()? {
                Token::Start => {}
                Token::Aside => continue,
                Token::Section(span) if all_blank(&self.tokens.data[span.clone()]) => continue,
                Token::Section(_) => return Err(Fail::Odd),
                Token::End => {
                    self.tokens.end_tag(&start.name)?;
                    break;
                }
            }
            let at = self.tokens.at;
            let class = &mut self.state.classes[id];
            let habit = class.habits.get(next).filter(|habit| habit.scope == start.scope);
            let mut index = next;
            let child = match habit.and_then(|habit| self.tokens.foreseen(&habit.name, start.scope)) {
                Some(child) => child,
                None => {
                    let child = self.tokens.start_tag(&mut self.state.names, start.scope)?;
                    let name = &self.tokens.data[child.name.clone()];
                    let tag = self.state.names.element(child.scope, name)?;
                    index = *class.by_tag.get(&tag).ok_or(Fail::Odd)?;
                    let habit = &mut class.habits[index];
                    if child.scope == start.scope && habit.scope != child.scope || *habit.name != *name {
                        (habit.name, habit.scope) = (name.into(), child.scope);
                    }
                    match previous {
                        Some(previous) => class.habits[previous].next = index,
                        None => class.first = index,
                    }
                    child
                }
            };
            previous = Some(index);
            next = class.habits[index].next;
            let step = class.steps[index];
            if step.order > last {
                last = step.order;
                found += step.required;
            } else if !step.many || step.order != last {
                return Err(Fail::Odd);
            }
            let row = step.list.map_or(row, |list| self.state.columns.item(list, row));
            match step.target {
                Target::Leaf(leaf) => self.leaf(leaf, row, &child, depth + 1)?,
                Target::Object(id) => self.element(id, row, &child, depth + 1)?,
                Target::Skip => self.tokens.pass_all(&mut self.state.names, &child, depth + 1)?,
                Target::Mark(column) => {
                    let is_bare = self.tokens.attributes.is_empty();
                    let text = self.tokens.content(&mut self.state.names, &child, depth + 1)?;
                    if !is_bare || !text.is_some_and(|text| all_blank(text.as_bytes())) {
                        return Err(Fail::Odd);
                    }
                    self.state.columns.number(column, row, 1);
                }
                Target::Open(open) => self.open_content(open, row, &child, at, start.scope, depth + 1)?,
                Target::Odd => return Err(Fail::Odd),
            }
        }
        if found == self.state.classes[id].required {
            Ok(())
        } else {
            Err(Fail::Odd)
        }
    }

    /// Puts an element of simple type into its column; nothing where it is nil.
    #[inline]
    fn leaf(&mut self, leaf: usize, row: usize, start: &Start, depth: usize) -> Result<(), Fail> {
        if !self.tokens.attributes.is_empty() {
            let is_nil = self.state.leaves[leaf].nillable && self.is_nil(start, depth)?;
            return if is_nil { Ok(()) } else { Err(Fail::Odd) };
        }
        let text = self.tokens.content(&mut self.state.names, start, depth)?.ok_or(Fail::Odd)?;
        self.store(leaf, row, &text)
    }

    /// Puts a text into the column of its type.
    #[inline]
    fn store(&mut self, id: usize, row: usize, text: &str) -> Result<(), Fail> {
        let State { leaves, columns, .. } = &mut *self.state;
        let leaf = &mut leaves[id];
        let number = match leaf.form {
            Form::Plain => {
                columns.text(leaf.column, row, text.as_bytes());
                return Ok(());
            }
            Form::Date => date(text).and_then(days),
            Form::Moment => microseconds(text),
            Form::Integer(least, most) => integer(text, least, most).map(i128::from),
            Form::Asked => None,
        };
        if let Some(number) = number {
            columns.number(leaf.column, row, number);
            return Ok(());
        }
        if let Some(known) = leaf.known.get(text) {
            columns.store(leaf.column, row, known.as_ref().ok_or(Fail::Odd)?);
            return Ok(());
        }
        let stored = Python::attach(|py| stored(self.bridge.bind(py), id, text))?;
        if leaf.known.len() < MOST_KNOWN && text.len() <= LONGEST_KNOWN {
            leaf.known.insert(text.into(), stored.clone());
        }
        columns.store(leaf.column, row, &stored.ok_or(Fail::Odd)?);
        Ok(())
    }

    /// Puts open content into its columns: Python is asked for the texts in it, and for the XML.
    fn open_content(
        &mut self,
        open: usize,
        row: usize,
        start: &Start,
        at: usize,
        scope: ScopeId,
        depth: usize,
    ) -> Result<(), Fail> {
        if !self.tokens.attributes.is_empty() {
            return Err(Fail::Odd);
        }
        let State { names, columns, opens, .. } = &mut *self.state;
        self.tokens.pass_all(names, start, depth)?;
        let [map, entry, key, value, raw] = opens[open];
        let mut found = Some((Vec::<Name>::new(), String::new()));
        if !start.is_empty {
            let octets = &self.tokens.data[at..self.tokens.at];
            let spaces = names.in_scope(scope);
            found = Python::attach(|py| {
                let asked = (PyBytes::new(py, octets), spaces);
                self.bridge.call_method1(py, "open", asked)?.extract(py)
            })?;
        }
        let (pairs, xml) = found.ok_or(Fail::Odd)?;
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
