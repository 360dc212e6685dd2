"""The exclusive canonical form of an element, in which unknown elements are kept.

libxml2 could write it, but it copies all namespaces in scope for each element, does not escape namespace names (not
even a `&`), and fails for relative ones. Elements of lxml do not give the prefixes of attributes, so XPath finds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, Final

from lxml import etree

from mtosi_jms.errors import ForbiddenXmlError
from mtosi_jms.namespaces import XML
from mtosi_jms.xmlbind._registry import XSI_TYPE

_MOST_KNOWN: Final = 4096
_FEW: Final = 16
_ATTRIBUTES: Final = etree.XPath("@*", regexp=False)
_OF_ONE: Final = ("start-ns", "start")


class Scope:
    """The namespaces in scope of an element, by prefix; that of the default namespace is empty. An empty namespace
    removes it."""

    __slots__ = ("_known", "_outer", "_own")

    def __init__(self, own: dict[str, str], outer: Scope | None) -> None:
        self._own = own
        self._outer = outer
        self._known: dict[str, str | None] = dict(own)

    def find(self, prefix: str) -> str | None:
        known = self._known
        if prefix not in known:
            scope = self._outer
            while scope is not None and prefix not in scope._known:
                scope = scope._outer
            known[prefix] = scope._known[prefix] if scope is not None else None
        return known[prefix]

    def among(self, prefixes: AbstractSet[str]) -> dict[str, str]:
        """Return the namespaces of prefixes; undeclared prefixes are left out."""
        if len(prefixes) <= _FEW:
            return {prefix: space for prefix in prefixes if (space := self.find(prefix)) is not None}
        found: dict[str, str] = {}
        scope: Scope | None = self
        while scope is not None:
            for prefix in scope._own.keys() & prefixes:
                found.setdefault(prefix, scope._own[prefix])
            scope = scope._outer
        return found


_NOTHING: Final = Scope({}, None)


class Scopes:
    """The scopes of the elements of one document. Scopes of parents are remembered, up to a limit, for all children."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[etree._Element, Scope] = {}

    def of(self, element: etree._Element) -> Scope:
        parent = element.getparent()
        outer = self._known.get(parent) if parent is not None else _NOTHING
        return _inside(element, outer if outer is not None else self._remembered(parent))

    def qname(self, text: str, element: etree._Element) -> str | None:
        """Return the Clark name of a qualified name; None if it is not a name or its prefix is unknown."""
        prefix, colon, local = text.strip().rpartition(":")
        namespace = self.of(element).find(prefix)
        if colon and not (prefix and namespace):
            return None
        try:
            return str(etree.QName(namespace or None, local))
        except ValueError:
            return None

    def _remembered(self, node: etree._Element | None) -> Scope:
        steps: list[etree._Element] = []
        while node is not None and node not in self._known:
            steps.append(node)
            node = node.getparent()
        scope = self._known[node] if node is not None else _NOTHING
        if len(self._known) + len(steps) > _MOST_KNOWN:
            self._known.clear()
        for step in reversed(steps):
            scope = self._known[step] = _inside(step, scope)
        return scope


def _inside(element: etree._Element, outer: Scope) -> Scope:
    """Return the scope of an element inside the scope of its parent."""
    own = declared_by(element)
    return Scope(own, outer) if own else outer


def declared_by(element: etree._Element) -> dict[str, str]:
    own: dict[str, str] = {}
    for event, found in etree.iterwalk(element, events=_OF_ONE):
        if event == "start":
            break
        own[found[0]] = found[1]
    return own


def attributes_of(element: etree._Element) -> list[tuple[str, str]]:
    """Return the attributes of an element, Clark name and text, in linear time; lxml's list of many is slower."""
    if len(element.keys()) <= _FEW:
        found: list[tuple[str, str]] = element.items()
        return found
    return [(text.attrname, str(text)) for text in _ATTRIBUTES(element)]


_PREFIX = re.compile(r"(?<![\w.\-])[\d.\-]*+([^\W\d][\w.\-]*+):(?=[^\W\d]|\*)")

Spaces = dict[str, str]
"""Namespaces by prefix; the prefix of the default namespace is empty."""
Undo = list[tuple[str, str | None]]
"""The prefixes that a start tag declares, with their namespaces before that."""


def canonical(element: etree._Element, scopes: Scopes) -> bytes:
    """Return an element with all namespaces that it needs, in UTF-8, without comments and processing instructions.

    It needs the namespaces of its names, and those of declared prefixes that its content refers to (`xsi:type="v:T"`,
    `/me:me[1]`).

    Raises:
        ForbiddenXmlError: the element contains entity references.
    """
    referred = _referred(element)
    own = scopes.of(element).among(referred) if referred else {}
    if len(element):
        if referred:
            referred &= {prefix for _, (prefix, _) in etree.iterwalk(element, events=("start-ns",))}
        return _tree(element, referred, own).encode()
    name, tag, _ = _start(element, {}, own)
    text = element.text
    return f"{tag}{_escaped(text)}</{name}>".encode() if text else f"{tag}</{name}>".encode()


def declaration(prefix: str, namespace: str) -> str:
    """Return the declaration of a namespace, the default one for an empty prefix, as an attribute with a blank before
    it."""
    return f' xmlns{":" if prefix else ""}{prefix}="{_attribute_text(namespace)}"'


def _tree(apex: etree._Element, referred: set[str], own: Spaces) -> str:
    """Return an element that contains others.

    Args:
        referred: prefixes that are declared inside it and that its content refers to.
        own: namespaces that it has to declare in addition to those of its names.
    """
    in_force: Spaces = {}
    name, tag, undo = _start(apex, in_force, own)
    parts = [tag, _escaped(apex.text or "")]
    put = parts.append
    above: list[tuple[etree._Element, str, Undo, Iterator[etree._Element]]] = []
    node, children = apex, iter(apex)
    names: dict[tuple[str, str | None], tuple[str, str]] = {}
    while True:
        for child in children:
            tag, text = child.tag, child.text
            if type(tag) is not str:  # a comment or an instruction
                put(_escaped(child.tail or ""))
                continue
            key = (tag, child.prefix)
            namespace, called = names.get(key) or names.setdefault(key, _name(child))
            plain = not referred and in_force.get(key[1] or "", "") == namespace and not child.keys()
            if plain and not len(child):  # most elements are only a name and a text
                put(f"<{called}>{_escaped(text)}</{called}>" if text else f"<{called}></{called}>")
                if tail := child.tail:
                    put(_escaped(tail))
                continue
            above.append((node, name, undo, children))
            node, name, undo, children = child, called, [], iter(child)
            if plain:
                put(f"<{name}>")
            else:
                name, tag, undo = _start(child, in_force, _own(child, referred) if referred else {})
                put(tag)
            if text:
                put(_escaped(text))
            break
        else:
            put(f"</{name}>")
            for prefix, before in undo:
                if before is None:
                    del in_force[prefix]
                else:
                    in_force[prefix] = before
            if not above:
                return "".join(parts)
            if tail := node.tail:
                put(_escaped(tail))
            node, name, undo, children = above.pop()


def _own(node: etree._Element, referred: set[str]) -> Spaces:
    declared = declared_by(node)
    return {prefix: space for prefix, space in declared.items() if prefix in referred} if declared else declared


def _name(node: etree._Element) -> tuple[str, str]:
    tag, prefix = str(node.tag), node.prefix
    namespace, _, local = tag[1:].rpartition("}") if tag[0] == "{" else ("", "", tag)
    return namespace, f"{prefix}:{local}" if prefix else local


def _start(node: etree._Element, in_force: Spaces, own: Spaces) -> tuple[str, str, Undo]:
    """Return the name of an element, its start tag, and the prefixes that the start tag declares.

    Args:
        in_force: namespaces declared around it; the declarations of the element are added.
        own: namespaces that it has to declare in addition to those of its names, unless they are in force.
    """
    namespace, name = _name(node)
    prefix = node.prefix or ""
    undo: Undo = []
    if in_force.get(prefix, "") != namespace:
        undo.append((prefix, in_force.get(prefix)))
        in_force[prefix] = namespace
    attributes = _attributes(node, in_force, undo) if node.keys() else ""
    for prefix, namespace in own.items():
        if in_force.get(prefix, "") != namespace:
            undo.append((prefix, in_force.get(prefix)))
            in_force[prefix] = namespace
    if not undo:
        return name, f"<{name}{attributes}>", undo
    if len(undo) == 1:
        declared = declaration(undo[0][0], in_force[undo[0][0]])
    else:
        undo.sort()
        declared = "".join([declaration(prefix, in_force[prefix]) for prefix, _ in undo])
    return name, f"<{name}{declared}{attributes}>", undo


def _attributes(node: etree._Element, in_force: Spaces, undo: Undo) -> str:
    """Return the attributes of an element, ordered by namespace and name."""
    given = attributes_of(node)
    if len(given) == 1 and given[0][0][0] != "{":
        return f' {given[0][0]}="{_attribute_text(given[0][1])}"'
    written: list[tuple[str, str, str]] = []
    for at, (tag, text) in enumerate(given, start=1):
        if tag[0] != "{":
            written.append(("", tag, f' {tag}="{_attribute_text(text)}"'))
            continue
        namespace, _, local = tag[1:].rpartition("}")
        prefix = "xml" if namespace == XML else _nth_name(at)(node).partition(":")[0]
        if namespace != XML and in_force.get(prefix) != namespace:
            undo.append((prefix, in_force.get(prefix)))
            in_force[prefix] = namespace
        written.append((namespace, local, f' {prefix}:{local}="{_attribute_text(text)}"'))
    if len(written) > 1:
        written.sort()
    return "".join([attribute for _, _, attribute in written])


@lru_cache(256)
def _nth_name(at: int) -> Any:
    """Return the XPath for the name, with prefix, of the attribute of an element with this number, from 1."""
    return etree.XPath(f"name(@*[{at}])", smart_strings=False, regexp=False)


def _attribute_text(text: str) -> str:
    if text.isalnum():
        return text
    if "&" in text:
        text = text.replace("&", "&amp;")
    if "<" in text:
        text = text.replace("<", "&lt;")
    if '"' in text:
        text = text.replace('"', "&quot;")
    if text.isprintable():
        return text
    return text.replace("\t", "&#x9;").replace("\n", "&#xA;").replace("\r", "&#xD;")


def _escaped(text: str) -> str:
    if "&" in text:
        text = text.replace("&", "&amp;")
    if "<" in text:
        text = text.replace("<", "&lt;")
    if ">" in text:
        text = text.replace(">", "&gt;")
    return text.replace("\r", "&#xD;") if "\r" in text else text


def _referred(apex: etree._Element) -> set[str]:
    """Return the prefixes that content may refer to; the empty one if an xsi:type refers to the default namespace."""
    found: set[str] = set()
    for node in apex.iter() if len(apex) else (apex,):
        if node.tag is etree.Entity:
            raise ForbiddenXmlError("entity references are not allowed", line=apex.sourceline)
        if isinstance(node.tag, str):
            text = node.text
            if text and ":" in text:
                found.update(_PREFIX.findall(text))
            if node.keys():
                for name, text in attributes_of(node):
                    if ":" in text:
                        found.update(_PREFIX.findall(text))
                    elif name == XSI_TYPE:
                        found.add("")
        tail = node.tail
        if tail and ":" in tail and node is not apex:
            found.update(_PREFIX.findall(tail))
    found.discard("xml")
    return found
