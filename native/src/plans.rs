//! What is known of classes: sent over by Python when the first element of a class is met.

use std::collections::HashMap;

use pyo3::prelude::*;

use crate::names::{Names, ScopeId, Tag};
use crate::objects::Shape;
use crate::tokens::{Start, Tokens};
use crate::values::{Kind, Values};
use crate::Stop;

pub type ClassId = u32;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Code {
    Simple(Kind),
    Object(ClassId),
    Keep,
}

/// Where an element of a name goes.
#[derive(Clone, Copy)]
pub struct Slot {
    pub field: usize,
    pub code: Code,
    pub many: bool,
    /// Its place in the sequence.
    pub order: i32,
    pub nillable: bool,
    /// Whether it is a member of the substitution group of the field's element.
    pub member: bool,
}

/// What came after an element the last time, and how its name was written.
struct Habit {
    name: Box<[u8]>,
    scope: ScopeId,
    next: usize,
}

/// The child elements that a class knows, and a guess which one comes next.
pub struct Children {
    by_tag: HashMap<Tag, usize>,
    habits: Vec<Habit>,
    first: usize,
}

impl Children {
    /// Children of some names, which are numbered.
    pub fn new(tags: impl Iterator<Item = Tag>) -> Children {
        let by_tag: HashMap<Tag, usize> = tags.enumerate().map(|(number, tag)| (tag, number)).collect();
        let habit = |number| Habit { name: Box::default(), scope: 0, next: number + 1 };
        Children { habits: (0..by_tag.len()).map(habit).collect(), by_tag, first: 0 }
    }

    /// Reads the start tag of a child; and its number, None where the class does not know it.
    ///
    /// Args: the document, the scope in the element, and the number of the child before.
    #[inline]
    pub fn read(
        &mut self,
        tokens: &mut Tokens<'_, '_>,
        scope: ScopeId,
        previous: Option<usize>,
    ) -> Result<(Start, Option<usize>), Stop> {
        let next = previous.map_or(self.first, |previous| self.habits[previous].next);
        let habit = self.habits.get(next).filter(|habit| habit.scope == scope);
        if let Some(start) = habit.and_then(|habit| tokens.foreseen(&habit.name, scope)) {
            return Ok((start, Some(next)));
        }
        let start = tokens.start_tag(scope)?;
        let Some(index) = self.by_tag.get(&tokens.tag(&start)?).copied() else {
            return Ok((start, None));
        };
        let name = tokens.raw(&start);
        let habit = &mut self.habits[index];
        if start.scope == scope && habit.scope != scope || *habit.name != *name {
            (habit.name, habit.scope) = (name.into(), start.scope);
        }
        match previous {
            Some(previous) => self.habits[previous].next = index,
            None => self.first = index,
        }
        Ok((start, Some(index)))
    }
}

pub struct Class {
    /// Whether elements come in the order of their slots.
    pub ordered: bool,
    /// Whether Python has to be asked about the order of elements, or how many there are.
    pub checked: bool,
    /// None: only the lenient reader can make its objects.
    pub shape: Option<Shape>,
    pub slots: Vec<Slot>,
    /// The slots as Python has them.
    pub sources: Vec<Py<PyAny>>,
    pub children: Children,
    pub attributes: HashMap<Tag, (usize, Kind)>,
    /// The field of simple content; without one, each element has a field.
    pub text: Option<(usize, Kind)>,
    /// Orders of fields that were asked about.
    pub verdicts: HashMap<Box<[u16]>, bool>,
}

type SlotData<'py> = (String, String, usize, u8, bool, i32, bool, bool, Bound<'py, PyAny>, Bound<'py, PyAny>);
type AttributeData<'py> = (String, String, usize, Bound<'py, PyAny>);
type ClassData<'py> =
    ((Bound<'py, PyAny>, bool, bool), Vec<SlotData<'py>>, Vec<AttributeData<'py>>, Option<(usize, Bound<'py, PyAny>)>);

/// The classes that were met, by number; their data comes when one is needed.
pub struct Plans {
    tables: Vec<Py<PyAny>>,
    by_table: HashMap<usize, ClassId>,
    classes: Vec<Option<Class>>,
}

impl Plans {
    pub fn new() -> Plans {
        Plans { tables: Vec::new(), by_table: HashMap::new(), classes: Vec::new() }
    }

    /// The number of a class.
    pub fn id(&mut self, table: &Bound<'_, PyAny>) -> PyResult<ClassId> {
        let address = table.as_ptr() as usize; // the table is kept, and so its address
        if let Some(found) = self.by_table.get(&address) {
            return Ok(*found);
        }
        let id = ClassId::try_from(self.tables.len())?;
        self.tables.push(table.clone().unbind());
        self.classes.push(None);
        self.by_table.insert(address, id);
        Ok(id)
    }

    pub fn table<'py>(&self, py: Python<'py>, id: ClassId) -> &Bound<'py, PyAny> {
        self.tables[id as usize].bind(py)
    }

    /// A class that was met.
    #[inline]
    pub fn class(&mut self, id: ClassId) -> &mut Class {
        self.classes[id as usize].as_mut().expect("a class is described before its objects are read")
    }

    /// How the objects of a class are laid out, of which one was made.
    #[inline]
    pub fn shape(&mut self, id: ClassId) -> &Shape {
        self.class(id).shape.as_ref().expect("it made the object")
    }

    /// Sees that a class is described.
    pub fn meet(
        &mut self,
        bridge: &Bound<'_, PyAny>,
        id: ClassId,
        names: &mut Names,
        values: &mut Values,
    ) -> PyResult<()> {
        if self.classes[id as usize].is_none() {
            let data = bridge.call_method1("describe", (self.table(bridge.py(), id),))?;
            let class = self.described(data.extract()?, names, values)?;
            self.classes[id as usize] = Some(class);
        }
        Ok(())
    }

    fn described(&mut self, data: ClassData<'_>, names: &mut Names, values: &mut Values) -> PyResult<Class> {
        let ((shape, ordered, checked), slots, attributes, text) = data;
        let mut made = Class {
            ordered,
            checked,
            shape: Shape::of(&shape)?,
            slots: Vec::new(),
            sources: Vec::new(),
            children: Children::new(std::iter::empty()),
            attributes: HashMap::new(),
            text: None,
            verdicts: HashMap::new(),
        };
        let mut tags = Vec::new();
        for (space, local, field, code, many, order, nillable, member, target, source) in slots {
            tags.push(names.known(&space, &local));
            let code = match code {
                0 => Code::Simple(values.kind(&target)?),
                1 => Code::Object(self.id(&target)?),
                _ => Code::Keep,
            };
            made.slots.push(Slot { field, code, many, order, nillable, member });
            made.sources.push(source.unbind());
        }
        made.children = Children::new(tags.into_iter());
        for (space, local, field, kind) in attributes {
            made.attributes.insert(names.known(&space, &local), (field, values.kind(&kind)?));
        }
        if let Some((field, kind)) = text {
            made.text = Some((field, values.kind(&kind)?));
        }
        Ok(made)
    }
}
