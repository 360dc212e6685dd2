//! The parts that XML is made of. Each is judged as libxml2 judges it; whatever is in doubt is left to libxml2.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr2, memchr3, memchr_iter, memmem};
use pyo3::FromPyObject;

use crate::names::{Names, ScopeId, Tag};
use crate::{give_up_if, Stop};

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
}

/// An attribute that is not a declaration.
pub struct Attribute {
    pub tag: Tag,
    pub value: Range<usize>,
}

/// A start tag that was read.
pub struct Start {
    pub name: Range<usize>,
    /// The scope inside it.
    pub scope: ScopeId,
    pub is_empty: bool,
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
    pub bounds: Bounds,
    has_returns: bool,
    has_section_ends: bool,
    is_long: bool,
    last_tag: usize,
    /// The attributes of the last start tag.
    pub attributes: Vec<Attribute>,
    spans: Vec<(Range<usize>, Range<usize>)>,
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
            bounds,
            has_returns: memchr(b'\r', data).is_some(),
            has_section_ends: has(b"]]>"),
            is_long: data.len() > LONGEST_TEXT,
            last_tag: 0,
            attributes: Vec::new(),
            spans: Vec::new(),
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

    /// Reads the end tag of an element of a name.
    #[inline]
    pub fn end_tag(&mut self, name: &Range<usize>) -> Result<(), Stop> {
        self.end_tag_of(&self.data[name.clone()])
    }

    /// The same, where the name is at hand.
    #[inline]
    pub fn end_tag_of(&mut self, name: &[u8]) -> Result<(), Stop> {
        let data = self.data;
        let after = self.at + 2 + name.len();
        give_up_if(data.get(self.at + 2..after) != Some(name))?;
        self.at = after;
        if data.get(after) != Some(&b'>') {
            self.skip_blanks();
        }
        self.expect(b">")?;
        self.last_tag = self.at;
        Ok(())
    }

    /// Reads a start tag, its declarations and attributes.
    pub fn start_tag(&mut self, outer: ScopeId) -> Result<Start, Stop> {
        self.at += 1;
        let name = self.name()?;
        self.attributes.clear();
        let mut scope = outer;
        let mut is_empty = false;
        if self.data.get(self.at) == Some(&b'>') {
            self.at += 1;
        } else {
            is_empty = self.spans()?;
            if !self.spans.is_empty() {
                scope = self.declare(outer)?;
                self.resolve(scope)?;
            }
        }
        self.last_tag = self.at;
        Ok(Start { name, scope, is_empty })
    }

    /// The name of an element whose start tag was read.
    pub fn tag(&mut self, start: &Start) -> Result<Tag, Stop> {
        self.names.name(start.scope, &self.data[start.name.clone()], true)
    }

    /// Takes a start tag without attributes whose name is foreseen; None where something else is there.
    #[inline]
    pub fn foreseen(&mut self, name: &[u8], scope: ScopeId) -> Option<Start> {
        let start = self.at + 1;
        let end = start + name.len();
        if name.is_empty() || self.data.get(start..end) != Some(name) || self.data.get(end) != Some(&b'>') {
            return None;
        }
        self.attributes.clear();
        self.at = end + 1;
        self.last_tag = self.at;
        Some(Start { name: start..end, scope, is_empty: false })
    }

    /// Finds the attributes up to the end of the tag; whether that is `/>`.
    fn spans(&mut self) -> Result<bool, Stop> {
        self.spans.clear();
        loop {
            let apart = self.skip_blanks();
            match self.octet()? {
                b'>' => {
                    self.at += 1;
                    return Ok(false);
                }
                b'/' => {
                    self.expect(b"/>")?;
                    return Ok(true);
                }
                _ if !apart || self.spans.len() >= MOST_ATTRIBUTES + self.bounds.namespaces => {
                    return Err(Stop::GiveUp);
                }
                _ => {
                    let name = self.name()?;
                    self.skip_blanks();
                    self.expect(b"=")?;
                    self.skip_blanks();
                    let quote = self.octet()?;
                    give_up_if(quote != b'"' && quote != b'\'')?;
                    let start = self.at + 1;
                    let end = start + memchr2(quote, b'<', &self.data[start..]).ok_or(Stop::GiveUp)?;
                    give_up_if(self.data[end] == b'<' || end - start > LONGEST_TEXT)?;
                    self.at = end + 1;
                    self.spans.push((name, start..end));
                }
            }
        }
    }

    /// The scope that the declarations among the attributes make.
    fn declare(&mut self, outer: ScopeId) -> Result<ScopeId, Stop> {
        let mut scope = outer;
        let mut seen: Vec<&[u8]> = Vec::new();
        for (name, value) in &self.spans {
            let name = &self.data[name.clone()];
            let prefix = if name == b"xmlns" { b"" } else { name.strip_prefix(b"xmlns:").unwrap_or(b":") };
            if prefix == b":" {
                continue;
            }
            give_up_if(seen.contains(&prefix))?;
            seen.push(prefix);
            scope = self.names.declare(scope, prefix, &self.text[value.clone()])?;
        }
        give_up_if(self.names.count(scope) as usize > self.bounds.namespaces)?;
        Ok(scope)
    }

    /// Names the attributes that are not declarations, and sees that they differ.
    fn resolve(&mut self, scope: ScopeId) -> Result<(), Stop> {
        for (name, value) in &self.spans {
            let name = &self.data[name.clone()];
            if name == b"xmlns" || name.starts_with(b"xmlns:") {
                continue;
            }
            let tag = self.names.name(scope, name, false)?;
            let most = self.attributes.len() >= self.bounds.attributes.min(MOST_ATTRIBUTES);
            give_up_if(most || self.attributes.iter().any(|other| other.tag == tag))?;
            if memchr(b'&', &self.data[value.clone()]).is_some() {
                self.unescaped(value.clone(), true)?;
            }
            self.attributes.push(Attribute { tag, value: value.clone() });
        }
        Ok(())
    }

    /// The value of an attribute of the last start tag.
    pub fn value(&self, index: usize) -> Result<Cow<'d, str>, Stop> {
        let span = self.attributes[index].value.clone();
        let plain = self.data[span.clone()].iter().all(|octet| !matches!(octet, b'&' | b'\t' | b'\n' | b'\r'));
        if plain {
            Ok(Cow::Borrowed(&self.text[span]))
        } else {
            self.unescaped(span, true).map(Cow::Owned)
        }
    }

    /// The characters that a piece of text stands for.
    #[inline]
    pub fn characters(&self, span: Range<usize>) -> Result<Cow<'d, str>, Stop> {
        let octets = &self.data[span.clone()];
        if memchr(b'&', octets).is_none() && !(self.has_returns && memchr(b'\r', octets).is_some()) {
            return Ok(Cow::Borrowed(&self.text[span]));
        }
        self.unescaped(span, false).map(Cow::Owned)
    }

    /// The characters of a CDATA section.
    pub fn section(&self, span: Range<usize>) -> Cow<'d, str> {
        let text = &self.text[span];
        if self.has_returns && text.contains('\r') {
            return Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"));
        }
        Cow::Borrowed(text)
    }

    fn unescaped(&self, span: Range<usize>, is_attribute: bool) -> Result<String, Stop> {
        let mut made = String::with_capacity(span.len());
        let mut rest = &self.text[span];
        while let Some(at) = rest.find(['&', '\r', '\n', '\t']) {
            made.push_str(&rest[..at]);
            let octet = rest.as_bytes()[at];
            rest = &rest[at + 1..];
            match octet {
                b'&' => {
                    let (name, after) = rest.split_once(';').ok_or(Stop::GiveUp)?;
                    made.push(referred(name).ok_or(Stop::GiveUp)?);
                    rest = after;
                }
                b'\r' => {
                    rest = rest.strip_prefix('\n').unwrap_or(rest);
                    made.push(if is_attribute { ' ' } else { '\n' });
                }
                _ => made.push(if is_attribute { ' ' } else { char::from(octet) }),
            }
        }
        made.push_str(rest);
        Ok(made)
    }

    /// Sees that the references of a text which nobody reads are what they should be.
    pub fn check(&self, span: Range<usize>) -> Result<(), Stop> {
        if memchr(b'&', &self.data[span.clone()]).is_some() {
            self.unescaped(span, false)?;
        }
        Ok(())
    }

    /// The text of an element whose start tag was read, up to its end; None where there are elements in it.
    pub fn content(&mut self, start: &Start, depth: usize) -> Result<Option<Cow<'d, str>>, Stop> {
        if start.is_empty {
            return Ok(Some(Cow::Borrowed("")));
        }
        let begin = self.at;
        let end = begin + memchr3(b'<', b'&', b'\r', &self.data[begin..]).ok_or(Stop::GiveUp)?;
        if self.data[end..].starts_with(b"</") {
            self.at = end;
            self.check_run(begin..end)?;
            self.end_tag(&start.name)?;
            return Ok(Some(Cow::Borrowed(&self.text[begin..end])));
        }
        let run = self.run()?;
        let mut made = self.characters(run)?.into_owned();
        loop {
            match self.markup()? {
                Token::Start => {
                    self.pass(start, depth)?;
                    return Ok(None);
                }
                Token::End => {
                    self.end_tag(&start.name)?;
                    return Ok(Some(Cow::Owned(made)));
                }
                Token::Section(span) => made += &self.section(span),
                Token::Aside => {}
            }
            let run = self.run()?;
            made += &self.characters(run)?;
        }
    }

    /// The start tag of the next element inside one that is open, None at its end tag, which is read too; and where it begins.
    ///
    /// Args: name and inner scope of the open element.
    pub fn inside(&mut self, name: &[u8], scope: ScopeId) -> Result<(usize, Option<Start>), Stop> {
        loop {
            let run = self.run()?;
            self.check(run)?;
            let at = self.at;
            match self.markup()? {
                Token::Section(_) | Token::Aside => {}
                Token::End => return self.end_tag_of(name).map(|()| (at, None)),
                Token::Start => return self.start_tag(scope).map(|start| (at, Some(start))),
            }
        }
    }

    /// Reads on to the end of an element whose start tag was read, which nobody makes anything of.
    pub fn pass(&mut self, start: &Start, depth: usize) -> Result<(), Stop> {
        self.watch(start, depth, |_| true)
    }

    /// The same, but someone is told where each element inside begins and its name, and of the end of each. Whoever does not
    /// look into one is not told of its end; the document must then be known to be well-formed.
    pub fn watch(
        &mut self,
        start: &Start,
        depth: usize,
        mut told: impl FnMut(Option<(usize, Tag)>) -> bool,
    ) -> Result<(), Stop> {
        let data = self.data;
        let mut open = Vec::new();
        if !start.is_empty {
            open.push((start.name.clone(), start.scope));
        }
        while let Some((name, scope)) = open.last() {
            let (at, Some(start)) = self.inside(&data[name.clone()], *scope)? else {
                open.pop();
                told(None);
                continue;
            };
            let looks_inside = told(Some((at, self.tag(&start)?)));
            give_up_if(depth + open.len() > self.bounds.depth)?;
            if !looks_inside {
                self.skip(&start)?;
            } else if start.is_empty {
                told(None);
            } else {
                open.push((start.name, start.scope));
            }
        }
        Ok(())
    }

    /// Goes behind the end of an element whose start tag was read, in a document that is known to be well-formed.
    fn skip(&mut self, start: &Start) -> Result<(), Stop> {
        let mut depth = usize::from(!start.is_empty);
        while depth > 0 {
            self.run()?;
            let token = self.markup()?;
            if token != Token::Start && token != Token::End {
                continue;
            }
            loop {
                self.at += memchr3(b'>', b'"', b'\'', &self.data[self.at..]).ok_or(Stop::GiveUp)? + 1;
                match self.data[self.at - 1] {
                    b'>' => break,
                    quote => self.at += memchr(quote, &self.data[self.at..]).ok_or(Stop::GiveUp)? + 1,
                }
            }
            self.last_tag = self.at;
            match token {
                Token::End => depth -= 1,
                _ => depth += usize::from(self.data[self.at - 2] != b'/'),
            }
        }
        Ok(())
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
