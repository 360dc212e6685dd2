//! Namespaces in scope, and names as numbers: each way to write a name is resolved once a scope.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::{give_up_if, Stop};

pub const SOAP: [&str; 2] = ["http://schemas.xmlsoap.org/soap/envelope/", "http://www.w3.org/2003/05/soap-envelope"];
pub const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";
const XML: &str = "http://www.w3.org/XML/1998/namespace";
const XMLNS: &str = "http://www.w3.org/2000/xmlns/";

/// Octets of names that one document may bring; libxml2 has bounds of its own for more.
const MOST_OCTETS: usize = 8 << 20;
/// Octets after which the next document begins with an empty table.
const WORTH_KEEPING: usize = 4 << 20;
const MOST_IN_SCOPE: u32 = 400;
const ENTRY: usize = 64;

pub type Tag = u32;
/// A namespace and a local name; or a prefix and a namespace.
pub type Name = (String, String);
pub type ScopeId = u32;
pub type Space = u32;

/// The scope in which nothing is declared.
pub const NOWHERE: ScopeId = 0;
pub const NO_SPACE: Space = 0;
/// The namespace of xsi:nil and xsi:type, and their names.
pub const XSI_SPACE: Space = 1;
pub const NIL: Tag = 0;
pub const TYPE: Tag = 1;

struct Scope {
    outer: ScopeId,
    prefix: Box<[u8]>,
    space: Space,
    /// Declarations in scope, those that others hide included.
    count: u32,
    /// Names of attributes as they are written, and of elements.
    known: [HashMap<Box<[u8]>, Tag>; 2],
    /// Declarations in it as they are written: of many objects each may declare the same.
    inner: HashMap<Box<[u8]>, ScopeId>,
}

impl Scope {
    fn new(outer: ScopeId, prefix: &[u8], space: Space, count: u32) -> Scope {
        Scope { outer, prefix: prefix.into(), space, count, known: Default::default(), inner: HashMap::new() }
    }
}

/// All names that were met.
pub struct Names {
    spaces: Vec<Box<str>>,
    space_ids: HashMap<Box<str>, Space>,
    tags: Vec<(Space, Box<str>)>,
    /// Clark names that Python got.
    clarks: HashMap<Tag, Py<PyString>>,
    tag_ids: HashMap<(Space, Box<str>), Tag>,
    scopes: Vec<Scope>,
    octets: usize,
    /// Where this document began to count.
    before: usize,
}

impl Names {
    pub fn new() -> Names {
        let scopes = vec![Scope::new(NOWHERE, b"", NO_SPACE, 0)];
        let mut names = Names {
            spaces: Vec::new(),
            space_ids: HashMap::new(),
            tags: Vec::new(),
            clarks: HashMap::new(),
            tag_ids: HashMap::new(),
            scopes,
            octets: 0,
            before: 0,
        };
        // In the order of the constants.
        names.space("");
        names.known(XSI, "nil");
        names.known(XSI, "type");
        names
    }

    /// Prepares for a document.
    pub fn begin(&mut self) {
        self.before = self.octets;
    }

    /// Whether so much is known that it is better to begin anew.
    pub fn is_worn(&self) -> bool {
        self.octets >= WORTH_KEEPING
    }

    fn grow(&mut self, octets: usize) -> Result<(), Stop> {
        self.octets += octets + ENTRY;
        give_up_if(self.octets - self.before > MOST_OCTETS)?;
        Ok(())
    }

    /// The number of a namespace.
    pub fn space(&mut self, text: &str) -> Space {
        if let Some(found) = self.space_ids.get(text) {
            return *found;
        }
        let id = self.spaces.len() as Space;
        self.spaces.push(text.into());
        self.space_ids.insert(text.into(), id);
        self.octets += text.len() + ENTRY;
        id
    }

    /// The number of a name.
    pub fn tag(&mut self, space: Space, local: &str) -> Tag {
        let key = (space, Box::from(local));
        if let Some(found) = self.tag_ids.get(&key) {
            return *found;
        }
        let id = self.tags.len() as Tag;
        self.tags.push(key.clone());
        self.tag_ids.insert(key, id);
        self.octets += 2 * local.len() + ENTRY;
        id
    }

    /// The number of a name, by its namespace.
    pub fn known(&mut self, space: &str, local: &str) -> Tag {
        let space = self.space(space);
        self.tag(space, local)
    }

    pub fn local(&self, tag: Tag) -> &str {
        &self.tags[tag as usize].1
    }

    pub fn is_in(&self, tag: Tag, space: Space) -> bool {
        self.tags[tag as usize].0 == space
    }

    /// The Clark name.
    pub fn clark<'py>(&mut self, py: Python<'py>, tag: Tag) -> Bound<'py, PyString> {
        let (space, local) = &self.tags[tag as usize];
        let made = self.clarks.entry(tag).or_insert_with(|| match &*self.spaces[*space as usize] {
            "" => PyString::new(py, local).unbind(),
            space => PyString::new(py, &format!("{{{space}}}{local}")).unbind(),
        });
        made.bind(py).clone()
    }

    /// The namespaces in scope, the innermost declaration of each prefix.
    pub fn in_scope(&self, mut id: ScopeId) -> Vec<(&str, &str)> {
        let mut found: HashMap<&[u8], Space> = HashMap::new();
        while id != NOWHERE {
            let scope = &self.scopes[id as usize];
            found.entry(&scope.prefix).or_insert(scope.space);
            id = scope.outer;
        }
        let known = found.into_iter().filter(|(_, space)| *space != NO_SPACE);
        known
            .map(|(prefix, space)| (std::str::from_utf8(prefix).unwrap_or(""), &*self.spaces[space as usize]))
            .collect()
    }

    pub fn count(&self, scope: ScopeId) -> u32 {
        self.scopes[scope as usize].count
    }

    /// The scope inside another one that a declaration makes.
    ///
    /// Args: the declaration as it is written, and its parts.
    pub fn declare(&mut self, outer: ScopeId, raw: &[u8], prefix: &[u8], uri: &str) -> Result<ScopeId, Stop> {
        if let Some(found) = self.scopes[outer as usize].inner.get(raw) {
            return Ok(*found);
        }
        let reserved = prefix == b"xml" || prefix == b"xmlns" || uri == XML || uri == XMLNS;
        give_up_if(reserved || !(is_plain_uri(uri) || (uri.is_empty() && prefix.is_empty())))?;
        let count = self.count(outer) + 1;
        give_up_if(count > MOST_IN_SCOPE)?;
        self.grow(raw.len() + prefix.len() + size_of::<Scope>())?;
        let id = self.scopes.len() as ScopeId;
        let space = self.space(uri);
        self.scopes.push(Scope::new(outer, prefix, space, count));
        self.scopes[outer as usize].inner.insert(raw.into(), id);
        Ok(id)
    }

    /// The namespace of a prefix, None where it is not declared; the default one has an empty prefix.
    pub fn find(&mut self, mut id: ScopeId, prefix: &[u8]) -> Option<Space> {
        if prefix == b"xml" {
            return Some(self.space(XML));
        }
        while id != NOWHERE {
            let scope = &self.scopes[id as usize];
            if *scope.prefix == *prefix {
                return Some(scope.space);
            }
            id = scope.outer;
        }
        prefix.is_empty().then_some(NO_SPACE)
    }

    /// The name of an element or attribute as it is written.
    #[inline]
    pub fn name(&mut self, scope: ScopeId, raw: &[u8], is_element: bool) -> Result<Tag, Stop> {
        if let Some(tag) = self.scopes[scope as usize].known[usize::from(is_element)].get(raw) {
            return Ok(*tag);
        }
        let tag = self.resolve(scope, raw, is_element)?;
        self.scopes[scope as usize].known[usize::from(is_element)].insert(raw.into(), tag);
        Ok(tag)
    }

    fn resolve(&mut self, scope: ScopeId, raw: &[u8], is_element: bool) -> Result<Tag, Stop> {
        let text = std::str::from_utf8(raw).map_err(|_| Stop::GiveUp)?;
        let (prefix, local) = text.split_once(':').unwrap_or(("", text));
        give_up_if(prefix == "xmlns" || (prefix == "xml" && (is_element || local != "lang")))?;
        let space = match prefix {
            "" if !is_element => NO_SPACE,
            _ => self.find(scope, prefix.as_bytes()).ok_or(Stop::GiveUp)?,
        };
        self.grow(raw.len())?;
        Ok(self.tag(space, local))
    }
}

/// Whether a namespace is an URI beyond doubt; of all others libxml2 decides.
fn is_plain_uri(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once(':') else { return false };
    let word = |text: &str| text.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"-._".contains(&octet));
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && word(scheme);
    let rest = rest.strip_prefix("//").map_or(Some(rest), |rest| {
        let (host, path) = rest.split_at(rest.find(['/', '#']).unwrap_or(rest.len()));
        (!host.is_empty() && word(host)).then_some(path)
    });
    let Some(rest) = rest else { return false };
    let (path, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let plain = |text: &str| text.split(['/', ':', '+', '=', ',', '~']).all(word);
    is_scheme && !scheme.contains('_') && !path.starts_with("//") && plain(path) && plain(fragment)
}
