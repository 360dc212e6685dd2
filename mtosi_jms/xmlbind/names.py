"""Names as they are written: prefixes, and the declarations that they need."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from lxml import etree

from mtosi_jms.errors import EncodeError
from mtosi_jms.namespaces import XML, XMLNS, split_clark
from mtosi_jms.xmlbind._canonical import declaration
from mtosi_jms.xmlbind.registry import known_prefix
from mtosi_jms.xmlbind.writeplan import WritePlan

_MOST_TOLD: Final = 256
_told: dict[tuple[frozenset[WritePlan], frozenset[str], frozenset[str]], str] = {}
"""What was declared before, by the classes and the namespaces that needed it."""


class Names:
    """The namespaces that a text needs.

    Attributes:
        namespaces: those of single names.
        plans: the plans of the classes that were written; the namespaces of all their names are needed.
    """

    def __init__(self) -> None:
        self.namespaces: set[str] = set()
        self.plans: set[WritePlan] = set()
        self._prefixes: dict[str, str] = {}

    def declarations(self, but: frozenset[str] = frozenset()) -> str:
        """`xmlns:` attributes for the namespaces, in the order of their prefixes.

        Args:
            but: namespaces that the caller declares.
        """
        key = (frozenset(self.plans), frozenset(self.namespaces), but)
        told = _told.get(key)
        if told is None:
            needed = self.namespaces.union(*(plan.namespaces for plan in self.plans)) - but - {XML, ""}
            pairs = sorted((self._prefix(namespace), namespace) for namespace in needed)
            told = "".join(declaration(prefix, namespace) for prefix, namespace in pairs)
            if not self._prefixes:
                if len(_told) >= _MOST_TOLD:
                    _told.clear()
                _told[key] = told
        return told

    def _prefix(self, namespace: str) -> str:
        """The prefix of a namespace: that of the process, else one of this text's own.

        Namespaces that no schema names come from peers; to remember them all would let peers fill the memory.
        """
        prefix = known_prefix(namespace) or self._prefixes.get(namespace)
        if prefix is None:
            prefix = self._prefixes[namespace] = f"_{len(self._prefixes) + 1}"
        return prefix

    def qualified(self, tag: str) -> str:
        """A Clark name as it is written, its namespace noted.

        Raises:
            EncodeError: it is no name that a parser would take.
        """
        namespace, local = _checked(tag)
        if not namespace:
            return local
        self.namespaces.add(namespace)
        return f"{self._prefix(namespace)}:{local}"


@lru_cache(1024)
def _checked(tag: Any) -> tuple[str, str]:
    """Namespace and local name of a Clark name."""
    if not isinstance(tag, str):
        raise EncodeError(f"a name is text, not {type(tag).__name__}")
    try:
        etree.Element(tag)
    except ValueError:
        raise EncodeError(f"{tag[:60]!r} is no name of XML, or its namespace is no URI") from None
    namespace, local = split_clark(tag)
    if namespace == XMLNS:
        raise EncodeError("namespaces are declared by the encoder alone")
    return namespace, local
