//! What stands around objects: the elements that are open, and how far a document was read that comes in pieces.

use crate::names::{ScopeId, NOWHERE};
use crate::tokens::{newlines, Start, Tokens};
use crate::Stop;

/// An open element outside of objects.
pub struct Level<T> {
    pub name: Box<[u8]>,
    pub scope: ScopeId,
    pub about: T,
}

/// What comes next outside of objects.
pub enum Event {
    Start(Start),
    /// The end tag of the innermost element.
    End,
    /// The end of the document.
    Done,
}

pub struct Outline<T> {
    pub levels: Vec<Level<T>>,
    /// Up to where the piece need not come again, and the line of that place.
    pub settled: usize,
    pub line: usize,
    has_begun: bool,
}

impl<T> Default for Outline<T> {
    fn default() -> Outline<T> {
        Outline { levels: Vec::new(), settled: 0, line: 1, has_begun: false }
    }
}

impl<T> Outline<T> {
    /// Reads on up to a tag or the end. A start tag is read, and whoever asks has to read its element or to open it; the
    /// innermost element stays open at its end tag.
    pub fn next(&mut self, tokens: &mut Tokens<'_, '_>) -> Result<Event, Stop> {
        tokens.nodes = 0; // each object is bounded by itself, the document is not
        let Some(level) = self.levels.last() else {
            if self.has_begun {
                return tokens.epilog().map(|()| Event::Done);
            }
            tokens.prolog()?;
            return tokens.start_tag(NOWHERE).map(Event::Start);
        };
        Ok(tokens.inside(&level.name, level.scope)?.map_or(Event::End, Event::Start))
    }

    /// Prepares for the next piece.
    pub fn begin(&mut self, tokens: &mut Tokens<'_, '_>) {
        self.settled = 0;
        tokens.depth = self.levels.len();
    }

    /// Notes that an element is open whose start tag was read.
    pub fn open(&mut self, tokens: &Tokens<'_, '_>, start: &Start, about: T) {
        self.levels.push(Level { name: tokens.raw(start).into(), scope: start.scope, about });
    }

    /// Notes that all was taken up to this place.
    pub fn settle(&mut self, tokens: &Tokens<'_, '_>) {
        self.line = self.line_of(tokens, tokens.at);
        self.settled = tokens.at;
        self.has_begun = true;
    }

    /// The line of a place that is not settled.
    pub fn line_of(&self, tokens: &Tokens<'_, '_>, at: usize) -> usize {
        self.line + newlines(&tokens.data[self.settled..at])
    }

    /// The scope in the innermost element.
    pub fn scope(&self) -> ScopeId {
        self.levels.last().map_or(NOWHERE, |level| level.scope)
    }

    /// The names of the elements that are open.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.levels.iter().map(|level| &*level.name)
    }
}
