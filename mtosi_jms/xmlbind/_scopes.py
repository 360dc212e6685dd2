"""Namespaces in scope. The time of a look-up grows with the declarations of the element, not with all in scope."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from lxml import etree

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
