//! The parts that XML is made of. Each is judged as libxml2 judges it; whatever is in doubt is left to libxml2.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr2, memchr3, memchr_iter, memmem};
use pyo3::FromPyObject;

use crate::names::{Names, ScopeId, Tag, NIL};
use crate::{give_up_if, odd_if, Stop};

/// Octets between two tags from which libxml2 may refuse a text; it does at ten million.
const LONGEST_TEXT: usize = 9_000_000;
/// Octets of a name, and attributes of one element, that are left to libxml2.
const LONGEST_NAME: usize = 1000;
const MOST_ATTRIBUTES: usize = 64;
/// libxml2's own bound on depth is 256.
const DEEPEST: usize = 250;

/// Bounds of a document.
#[derive(Clone, Copy, FromPyObject)]
pub struct Bounds {
    #[pyo3(item(0))]
    pub depth: usize,
    #[pyo3(item(1))]
    pub attributes: usize,
    #[pyo3(item(2))]
    pub namespaces: usize,
    /// Elements and attributes together.
    #[pyo3(item(3))]
    pub nodes: usize,
}

/// An attribute that is not a declaration.
pub struct Attribute {
    pub tag: Tag,
    name: Range<usize>,
    value: Range<usize>,
}

/// A start tag that was read.
#[derive(Clone)]
pub struct Start {
    pub name: Range<usize>,
    /// Where the tag ends.
    pub end: usize,
    /// The scope inside it.
    pub scope: ScopeId,
    /// How deep the element is; that of the root is 1.
    pub depth: usize,
    pub is_empty: bool,
    /// Elements and attributes up to here.
    nodes: usize,
}

impl Start {
    /// Where the tag begins.
    pub fn at(&self) -> usize {
        self.name.start - 1
    }
}

/// What comes next in the content of an element.
#[derive(PartialEq)]
pub enum Token {
    Start,
    End,
    /// A CDATA section.
    Section(Range<usize>),
    /// A comment or an instruction.
    Aside,
}

/// A document, and how far it was read.
pub struct Tokens<'d, 'n> {
    pub names: &'n mut Names,
    pub text: &'d str,
    pub data: &'d [u8],
    pub at: usize,
    /// Elements that are open.
    pub depth: usize,
    /// Elements and attributes that were read.
    pub nodes: usize,
    bounds: Bounds,
    has_section_ends: bool,
    is_long: bool,
    /// Where the last tag begins.
    pub last_tag: usize,
    /// The attributes of the last start tag.
    pub attributes: Vec<Attribute>,
}

pub fn is_blank(octet: u8) -> bool {
    matches!(octet, b' ' | b'\t' | b'\n' | b'\r')
}

pub fn all_blank(octets: &[u8]) -> bool {
    octets.iter().all(|octet| is_blank(*octet))
}

const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

fn begins_name(octet: u8) -> bool {
    octet.is_ascii_alphabetic() || octet == b'_'
}

fn is_of_name(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'_' | b'-' | b'.')
}

impl<'d, 'n> Tokens<'d, 'n> {
    /// A document whose characters are those of XML, in UTF-8.
    pub fn new(data: &'d [u8], names: &'n mut Names, bounds: Bounds) -> Result<Tokens<'d, 'n>, Stop> {
        let text = std::str::from_utf8(data).map_err(|_| Stop::GiveUp)?;
        let bad = data.iter().fold(false, |bad, octet| bad | (*octet < 32 && !is_blank(*octet)));
        let has = |part: &[u8]| memmem::find(data, part).is_some();
        give_up_if(bad || (!text.is_ascii() && (has(b"\xef\xbf\xbe") || has(b"\xef\xbf\xbf"))))?;
        let bounds = Bounds { depth: bounds.depth.min(DEEPEST), ..bounds };
        let at = if data.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        Ok(Tokens {
            names,
            text,
            data,
            at,
            depth: 0,
            nodes: 0,
            bounds,
            has_section_ends: has(b"]]>"),
            is_long: data.len() > LONGEST_TEXT,
            last_tag: 0,
            attributes: Vec::new(),
        })
    }

    pub fn here(&self, part: &[u8]) -> bool {
        self.data[self.at..].starts_with(part)
    }

    fn octet(&self) -> Result<u8, Stop> {
        self.data.get(self.at).copied().ok_or(Stop::GiveUp)
    }

    fn expect(&mut self, part: &[u8]) -> Result<(), Stop> {
        give_up_if(!self.here(part))?;
        self.at += part.len();
        Ok(())
    }

    fn skip_blanks(&mut self) -> bool {
        let start = self.at;
        while self.data.get(self.at).copied().is_some_and(is_blank) {
            self.at += 1;
        }
        self.at > start
    }

    /// What is before the root: its start tag comes next.
    pub fn prolog(&mut self) -> Result<(), Stop> {
        if self.here(b"<?xml") && self.data.get(self.at + 5).copied().is_some_and(is_blank) {
            self.declaration()?;
        }
        self.between_nodes()?;
        if self.here(b"<") && self.data.get(self.at + 1).copied().is_some_and(begins_name) {
            return Ok(());
        }
        Err(Stop::GiveUp)
    }

    /// What is behind the root, up to the end.
    pub fn epilog(&mut self) -> Result<(), Stop> {
        self.between_nodes()?;
        give_up_if(self.at < self.data.len())
    }

    fn between_nodes(&mut self) -> Result<(), Stop> {
        loop {
            self.skip_blanks();
            if self.here(b"<!--") {
                self.comment()?;
            } else if self.here(b"<?") {
                self.instruction()?;
            } else {
                return Ok(());
            }
        }
    }

    /// `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`
    fn declaration(&mut self) -> Result<(), Stop> {
        let end = self.at + memmem::find(&self.data[self.at..], b"?>").ok_or(Stop::GiveUp)?;
        let mut rest = &self.text[self.at + 5..end];
        let known: [(&str, &[&str]); 3] =
            [("version=", &["1.0"]), ("encoding=", &["UTF-8", "utf-8"]), ("standalone=", &["yes", "no"])];
        for (name, values) in known {
            let word = rest.trim_start_matches(BLANKS);
            let Some(value) = word.strip_prefix(name).filter(|_| word.len() < rest.len()) else {
                give_up_if(name == "version=")?;
                continue;
            };
            let quote = value.chars().next().filter(|quote| "\"'".contains(*quote)).ok_or(Stop::GiveUp)?;
            let (value, after) = value[1..].split_once(quote).ok_or(Stop::GiveUp)?;
            give_up_if(!values.contains(&value))?;
            rest = after;
        }
        self.at = end + 2;
        give_up_if(!all_blank(rest.as_bytes()))
    }

    fn comment(&mut self) -> Result<(), Stop> {
        let start = self.at + 4;
        let end = start + memmem::find(&self.data[start..], b"--").ok_or(Stop::GiveUp)?;
        give_up_if(end - start > LONGEST_TEXT)?;
        self.at = end;
        self.expect(b"-->")
    }

    fn instruction(&mut self) -> Result<(), Stop> {
        self.at += 2;
        let name = self.plain_name()?;
        give_up_if(self.data[name.clone()].get(..3).is_some_and(|begin| begin.eq_ignore_ascii_case(b"xml")))?;
        give_up_if(!self.here(b"?>") && !is_blank(self.octet()?))?;
        let size = memmem::find(&self.data[self.at..], b"?>").ok_or(Stop::GiveUp)?;
        give_up_if(size > LONGEST_TEXT)?;
        self.at += size + 2;
        Ok(())
    }

    fn plain_name(&mut self) -> Result<Range<usize>, Stop> {
        let start = self.at;
        give_up_if(!begins_name(self.octet()?))?;
        while self.data.get(self.at).copied().is_some_and(is_of_name) {
            self.at += 1;
        }
        give_up_if(self.at - start > LONGEST_NAME || self.data.get(self.at).is_some_and(|octet| !octet.is_ascii()))?;
        Ok(start..self.at)
    }

    /// A name, with a prefix or without.
    fn name(&mut self) -> Result<Range<usize>, Stop> {
        let start = self.at;
        self.plain_name()?;
        if self.here(b":") {
            self.at += 1;
            self.plain_name()?;
        }
        Ok(start..self.at)
    }

    /// The text up to the next `<`, which is then the place.
    #[inline]
    pub fn run(&mut self) -> Result<Range<usize>, Stop> {
        let start = self.at;
        if self.data.get(start) != Some(&b'<') {
            self.at += memchr(b'<', &self.data[start..]).ok_or(Stop::GiveUp)?;
            self.check_run(start..self.at)?;
        }
        Ok(start..self.at)
    }

    #[inline]
    fn check_run(&self, run: Range<usize>) -> Result<(), Stop> {
        give_up_if(self.is_long && run.end - self.last_tag > LONGEST_TEXT)?;
        give_up_if(self.has_section_ends && memmem::find(&self.data[run], b"]]>").is_some())?;
        Ok(())
    }

    /// What the `<` at this place begins. Start and end tags are still to be read.
    pub fn markup(&mut self) -> Result<Token, Stop> {
        match self.data.get(self.at + 1).copied().ok_or(Stop::GiveUp)? {
            b'/' => Ok(Token::End),
            b'?' => self.instruction().map(|()| Token::Aside),
            b'!' if self.here(b"<!--") => self.comment().map(|()| Token::Aside),
            b'!' => {
                self.expect(b"<![CDATA[")?;
                let start = self.at;
                let end = start + memmem::find(&self.data[start..], b"]]>").ok_or(Stop::GiveUp)?;
                self.at = end + 3;
                give_up_if(self.is_long && end - self.last_tag > LONGEST_TEXT)?;
                Ok(Token::Section(start..end))
            }
            _ => Ok(Token::Start),
        }
    }

    /// Reads on to the next tag in an element that only holds elements; whether it is a start tag. Anything else than blanks
    /// and comments before it is odd; whoever does not mind calls again.
    #[inline]
    pub fn next_tag(&mut self) -> Result<bool, Stop> {
        loop {
            let run = self.run()?;
            if !all_blank(&self.data[run.clone()]) {
                self.characters(run, false)?; // its references have to be right
                return Err(Stop::Odd);
            }
            match self.markup()? {
                Token::Start => return Ok(true),
                Token::End => return Ok(false),
                Token::Section(span) => odd_if(!all_blank(&self.data[span]))?,
                Token::Aside => {}
            }
        }
    }

    /// Reads the end tag of an element of a name.
    #[inline]
    pub fn end_tag(&mut self, name: &[u8]) -> Result<(), Stop> {
        self.last_tag = self.at;
        let after = self.at + 2 + name.len();
        give_up_if(self.data.get(self.at + 2..after) != Some(name))?;
        self.at = after;
        if self.data.get(after) != Some(&b'>') {
            self.skip_blanks();
        }
        self.depth -= 1;
        self.expect(b">")
    }

    /// Reads a start tag, its declarations and attributes.
    pub fn start_tag(&mut self, outer: ScopeId) -> Result<Start, Stop> {
        self.last_tag = self.at;
        self.at += 1;
        self.depth += 1;
        self.nodes += 1;
        give_up_if(self.depth > self.bounds.depth)?;
        let name = self.name()?;
        self.attributes.clear();
        let (mut scope, mut is_empty) = (outer, false);
        if self.data.get(self.at) == Some(&b'>') {
            self.at += 1;
        } else {
            (scope, is_empty) = self.attributes(outer)?;
        }
        give_up_if(self.nodes > self.bounds.nodes)?;
        let start = Start { name, end: self.at, scope, depth: self.depth, is_empty, nodes: self.nodes };
        self.depth -= usize::from(is_empty);
        Ok(start)
    }

    /// An element's name as it is written.
    pub fn raw(&self, start: &Start) -> &'d [u8] {
        &self.data[start.name.clone()]
    }

    /// The name of an element.
    pub fn tag(&mut self, start: &Start) -> Result<Tag, Stop> {
        self.names.name(start.scope, self.raw(start), true)
    }

    /// Takes a start tag without attributes whose name is foreseen; None where something else is there.
    #[inline]
    pub fn foreseen(&mut self, name: &[u8], scope: ScopeId) -> Option<Start> {
        let start = self.at + 1;
        let end = start + name.len();
        let is_there = self.data.get(start..end) == Some(name) && self.data.get(end) == Some(&b'>');
        if name.is_empty() || !is_there || self.depth >= self.bounds.depth || self.nodes >= self.bounds.nodes {
            return None;
        }
        self.attributes.clear();
        self.last_tag = self.at;
        self.at = end + 1;
        self.depth += 1;
        self.nodes += 1;
        Some(Start { name: start..end, end: self.at, scope, depth: self.depth, is_empty: false, nodes: self.nodes })
    }

    /// Reads the attributes up to the end of the tag, and sees that they differ; the scope that the declarations among them
    /// make, and whether the tag ends with `/>`.
    fn attributes(&mut self, outer: ScopeId) -> Result<(ScopeId, bool), Stop> {
        let (data, mut scope) = (self.data, outer);
        let mut prefixes: Vec<&[u8]> = Vec::new();
        let is_empty = loop {
            let apart = self.skip_blanks();
            if matches!(self.octet()?, b'>' | b'/') {
                break self.here(b"/");
            }
            give_up_if(!apart)?;
            let name = self.name()?;
            self.nodes += 1;
            self.skip_blanks();
            self.expect(b"=")?;
            self.skip_blanks();
            let quote = self.octet()?;
            give_up_if(quote != b'"' && quote != b'\'')?;
            let start = self.at + 1;
            let end = start + memchr2(quote, b'<', &data[start..]).ok_or(Stop::GiveUp)?;
            give_up_if(data[end] == b'<' || end - start > LONGEST_TEXT)?;
            self.at = end + 1;
            let raw = &data[name.clone()];
            let prefix = if raw == b"xmlns" { Some(&raw[..0]) } else { raw.strip_prefix(b"xmlns:") };
            if let Some(prefix) = prefix {
                give_up_if(prefixes.contains(&prefix))?;
                prefixes.push(prefix);
                scope = self.names.declare(scope, &data[name.start..end], prefix, &self.text[start..end])?;
            } else {
                give_up_if(self.attributes.len() >= self.bounds.attributes.min(MOST_ATTRIBUTES))?;
                self.attributes.push(Attribute { tag: NIL, name, value: start..end });
            }
        };
        self.expect(if is_empty { b"/>" } else { b">" })?;
        give_up_if(self.names.count(scope) as usize > self.bounds.namespaces)?;
        for index in 0..self.attributes.len() {
            let Attribute { name, value, .. } = &self.attributes[index];
            let tag = self.names.name(scope, &data[name.clone()], false)?;
            give_up_if(self.attributes[..index].iter().any(|other| other.tag == tag))?;
            self.characters(value.clone(), true)?; // its references have to be right
            self.attributes[index].tag = tag;
        }
        Ok((scope, is_empty))
    }

    /// Which attribute of the last start tag has a name.
    #[inline]
    pub fn attribute(&self, tag: Tag) -> Option<usize> {
        self.attributes.iter().position(|one| one.tag == tag)
    }

    /// The value of an attribute of the last start tag.
    pub fn value(&self, index: usize) -> Result<Cow<'d, str>, Stop> {
        self.characters(self.attributes[index].value.clone(), true)
    }

    /// The characters that a piece of text, or the value of an attribute, stands for.
    fn characters(&self, span: Range<usize>, is_attribute: bool) -> Result<Cow<'d, str>, Stop> {
        let special = |rest: &str| match is_attribute {
            true => rest.bytes().position(|octet| matches!(octet, b'&' | b'\t' | b'\n' | b'\r')),
            false => memchr2(b'&', b'\r', rest.as_bytes()),
        };
        let text = &self.text[span];
        let (mut made, mut rest) = (String::new(), text);
        while let Some(at) = special(rest) {
            made.push_str(&rest[..at]);
            let octet = rest.as_bytes()[at];
            rest = &rest[at + 1..];
            if octet == b'&' {
                let (name, after) = rest.split_once(';').ok_or(Stop::GiveUp)?;
                made.push(referred(name).ok_or(Stop::GiveUp)?);
                rest = after;
                continue;
            }
            if octet == b'\r' {
                rest = rest.strip_prefix('\n').unwrap_or(rest);
            }
            made.push(if is_attribute { ' ' } else { '\n' });
        }
        if rest.len() == text.len() {
            return Ok(Cow::Borrowed(text));
        }
        made.push_str(rest);
        Ok(Cow::Owned(made))
    }

    /// The text of an element whose start tag was read, up to its end; odd where there are elements in it.
    pub fn content(&mut self, start: &Start) -> Result<Cow<'d, str>, Stop> {
        if start.is_empty {
            return Ok(Cow::Borrowed(""));
        }
        // Most texts are one run without references.
        let begin = self.at;
        let end = begin + memchr3(b'<', b'&', b'\r', &self.data[begin..]).ok_or(Stop::GiveUp)?;
        if self.data[end..].starts_with(b"</") {
            self.at = end;
            self.check_run(begin..end)?;
            self.end_tag(self.raw(start))?;
            return Ok(Cow::Borrowed(&self.text[begin..end]));
        }
        let mut text = Cow::Borrowed("");
        loop {
            let run = self.run()?;
            text += self.characters(run, false)?;
            match self.markup()? {
                Token::Start => return Err(Stop::Odd),
                Token::End => return self.end_tag(self.raw(start)).map(|()| text),
                Token::Section(span) => {
                    text.to_mut().push_str(&self.text[span].replace("\r\n", "\n").replace('\r', "\n"))
                }
                Token::Aside => {}
            }
        }
    }

    /// Reads an element that says that it is nil, and is odd unless it says nothing else.
    pub fn nil(&mut self, start: &Start) -> Result<(), Stop> {
        let is_nil = self.attributes.len() == 1 && self.attributes[0].tag == NIL && self.value(0)? == "true";
        odd_if(!is_nil || !self.content(start)?.is_empty())
    }

    /// The start tag of the next element inside one that is open, None at its end tag, which is read too.
    ///
    /// Args: name and inner scope of the open element.
    pub fn inside(&mut self, name: &[u8], scope: ScopeId) -> Result<Option<Start>, Stop> {
        loop {
            match self.next_tag() {
                Ok(true) => return self.start_tag(scope).map(Some),
                Ok(false) => return self.end_tag(name).map(|()| None),
                Err(Stop::Odd) => {} // a text that nobody reads
                Err(stop) => return Err(stop),
            }
        }
    }

    /// Reads on to the end of an element which nobody makes anything of, unless its end was read.
    pub fn pass(&mut self, start: &Start) -> Result<(), Stop> {
        let mut open = Vec::new();
        if self.depth >= start.depth {
            open.push(start.clone());
        }
        while let Some(innermost) = open.last() {
            match self.inside(self.raw(innermost), innermost.scope)? {
                None => drop(open.pop()),
                Some(start) => {
                    self.tag(&start)?; // its prefix has to be declared
                    if !start.is_empty {
                        open.push(start);
                    }
                }
            }
        }
        Ok(())
    }

    /// Goes back to the content of an element.
    pub fn go_back(&mut self, start: &Start) {
        self.at = start.end;
        self.last_tag = start.at();
        self.depth = start.depth - usize::from(start.is_empty);
        self.nodes = start.nodes;
    }

    /// What stands before and behind elements that are read again by themselves: tags of those around them, which have their
    /// local names, and declare the namespaces of the innermost one.
    pub fn around<'a>(&self, names: impl Iterator<Item = &'a [u8]>, scope: ScopeId) -> (Vec<u8>, Vec<u8>) {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for name in names {
            let local = &name[memchr(b':', name).map_or(0, |colon| colon + 1)..];
            before.extend_from_slice(&[b"<", local, b">"].concat());
            after.splice(..0, [b"</", local, b">"].concat());
        }
        if before.pop().is_none() {
            return (before, after);
        }
        for (prefix, space) in self.names.in_scope(scope) {
            let colon = if prefix.is_empty() { "" } else { ":" };
            before.extend_from_slice(format!(" xmlns{colon}{prefix}=\"{space}\"").as_bytes());
        }
        before.push(b'>');
        (before, after)
    }
}

pub fn newlines(octets: &[u8]) -> usize {
    memchr_iter(b'\n', octets).count()
}

/// The character that a reference stands for, None where that is in doubt.
fn referred(name: &str) -> Option<char> {
    let number = match name {
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        _ => name.strip_prefix('#')?,
    };
    let (digits, base) = number.strip_prefix('x').map_or((number, 10), |digits| (digits, 16));
    if digits.len() > 8 || digits.starts_with('+') {
        return None;
    }
    let found = char::from_u32(u32::from_str_radix(digits, base).ok()?)?;
    let allowed = matches!(found, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
    allowed.then_some(found)
}
