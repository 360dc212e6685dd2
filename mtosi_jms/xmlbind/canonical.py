"""The exclusive canonical form of an element, which is how unknown elements are kept.

libxml2 can write it, but copies all namespaces in scope for each element, writes namespace names as they are (a `&`
among them), and has no form for relative ones. lxml's elements do not tell the prefixes of attributes: XPath does.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from lxml import etree

from mtosi_jms.errors import ForbiddenXmlError
from mtosi_jms.namespaces import XML
from mtosi_jms.xmlbind.registry import XSI_TYPE
from mtosi_jms.xmlbind.scopes import Scopes, attributes_of

_PREFIX = re.compile(r"(?<![\w.\-])[\d.\-]*+([^\W\d][\w.\-]*+):(?=[^\W\d]|\*)")
_EVENTS: Final = ("start-ns", "start", "end", "comment", "pi")

Spaces = dict[str, str]
"""Namespaces by prefix, the default one's empty."""
Undo = list[tuple[str, str | None]]
"""Prefixes that a start tag declares, with what they stood for before."""


def canonical(element: etree._Element, scopes: Scopes) -> bytes:
    """An element with every namespace that it needs, in UTF-8; comments and processing instructions are left out.

    Needed are the namespaces of its names, and of the prefixes that its content refers to (`xsi:type="v:T"`,
    `/me:me[1]`) as far as they are declared.

    Args:
        element: an element of any lxml parser.
        scopes: of its document.

    Raises:
        ForbiddenXmlError: it holds entity references.
    """
    referred = _referred(element)
    own = scopes.of(element).among(referred) if referred else {}
    if len(element):
        return _tree(element, referred, own).encode()
    name, tag, _ = _start(element, {}, own)
    text = element.text
    return f"{tag}{_escaped(text)}</{name}>".encode() if text else f"{tag}</{name}>".encode()


def declaration(prefix: str, namespace: str) -> str:
    """A namespace declaration as an attribute, a blank before it.

    Args:
        prefix: empty for the default namespace.
        namespace: its name, any text.
    """
    return f' xmlns{":" if prefix else ""}{prefix}="{_attribute_text(namespace)}"'


def _tree(apex: etree._Element, referred: set[str], own: Spaces) -> str:
    """An element with others in it."""
    parts: list[str] = []
    in_force: Spaces = {}
    ends: list[tuple[str, Undo]] = []
    for event, node in etree.iterwalk(apex, events=_EVENTS if referred else _EVENTS[1:]):
        if event == "start":
            name, tag, undo = _start(node, in_force, own)
            own = {}
            ends.append((name, undo))
            text = node.text
            parts.append(tag + _escaped(text) if text else tag)
        elif event == "start-ns":
            if node[0] in referred:
                own[node[0]] = node[1]
        else:
            end = ""
            if event == "end":
                name, undo = ends.pop()
                end = f"</{name}>"
                for prefix, before in undo:
                    if before is None:
                        del in_force[prefix]
                    else:
                        in_force[prefix] = before
            tail = node.tail if ends else None  # what follows the element itself is no part of it
            parts.append(end + _escaped(tail) if tail else end)
    return "".join(parts)


def _start(node: etree._Element, in_force: Spaces, own: Spaces) -> tuple[str, str, Undo]:
    """The name of an element, its start tag, and what that declares.

    Args:
        node: the element.
        in_force: what was declared around it; what it declares is added.
        own: what it has to declare beside the namespaces of its names, if that is not in force.
    """
    tag, prefix = str(node.tag), node.prefix or ""
    namespace, _, local = tag[1:].rpartition("}") if tag[0] == "{" else ("", "", tag)
    name = f"{prefix}:{local}" if prefix else local
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
    """The attributes of an element, by namespace and name."""
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
    """What tells the name, prefix included, of an element's attribute; they are numbered from 1."""
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
    """Prefixes that content, not names, may refer to; the empty one where an xsi:type refers to the default namespace.

    Raises:
        ForbiddenXmlError: there are entity references.
    """
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
