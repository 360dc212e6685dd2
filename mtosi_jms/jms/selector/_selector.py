"""A parsed selector: its text, the names in it, and its evaluation for properties and messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mtosi_jms.errors import SelectorError
from mtosi_jms.jms.message import DeliveryMode, JmsMessage, Long
from mtosi_jms.jms.selector._evaluate import Condition, compile_condition
from mtosi_jms.jms.selector._parser import HEADERS, parse_tree
from mtosi_jms.jms.selector._render import render
from mtosi_jms.jms.selector.nodes import Identifier, Node, children
from mtosi_jms.masking import shown_half_made

_BLANKS: Final = " \t\f\r\n"


class Selector:
    """A condition on the headers and properties of a message, never on its body (P15).

    Two selectors are equal if they have the same canonical text, which `str` gives. It is empty for a selector that
    accepts everything.

    Attributes:
        identifiers: the names of properties and headers in the selector.
    """

    __slots__ = ("_canonical", "_condition", "_headers", "identifiers", "text", "tree")

    def __init__(self, text: str, tree: Node | None) -> None:
        self.text = text
        self.tree = tree
        self.identifiers: frozenset[str] = frozenset(_identifiers(tree) if tree is not None else ())
        self._headers = {name: _HEADER[name] for name in self.identifiers & HEADERS}
        self._condition: Condition = (lambda _: True) if tree is None else compile_condition(tree)
        self._canonical = "" if tree is None else render(tree)

    def matches(self, properties: Mapping[str, object]) -> bool | None:
        """Evaluate the selector for properties. Headers are looked up among them by their names.

        Args:
            properties: values are str, bool, int, float, or None for a missing property.

        Returns:
            True, False, or None for unknown. The selector matches only if the result is True.
        """
        return self._condition(properties.get)

    def accepts(self, message: JmsMessage) -> bool:
        """Whether the selector is True for the headers and properties of a message.

        JMSDeliveryMode is 'PERSISTENT' or 'NON_PERSISTENT'. A header that the message does not have yet is NULL.
        """
        lookup = message.properties.get
        if not self._headers:
            return self._condition(lookup) is True
        headers = self._headers

        def value(name: str) -> Any:
            header = headers.get(name)
            return lookup(name) if header is None else header(message)

        return self._condition(value) is True

    def __str__(self) -> str:
        return self._canonical

    @shown_half_made
    def __repr__(self) -> str:
        return f"Selector({self._canonical!r})"

    def __eq__(self, other: object) -> bool:
        return self._canonical == other._canonical if isinstance(other, Selector) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._canonical)

    def __reduce__(self) -> tuple[Any, ...]:
        return parse, (self.text,)


def parse(text: str) -> Selector:
    """Parse a selector of JMS 1.1, section 3.8.1.

    Args:
        text: the condition. If it is empty or blank, the selector accepts everything.

    Raises:
        SelectorError: the text is not a selector; `position` says where.
    """
    if not isinstance(text, str):
        raise SelectorError(f"a selector is text, not {type(text).__name__}")
    return Selector(text, parse_tree(text) if text.strip(_BLANKS) else None)


def _identifiers(node: Node) -> Iterator[str]:
    if isinstance(node, Identifier):
        yield node.name
    for child in children(node):
        yield from _identifiers(child)


_HEADER: Final[dict[str, Callable[[JmsMessage], Any]]] = {
    "JMSDeliveryMode": lambda message: DeliveryMode(message.delivery_mode).name,
    "JMSPriority": lambda message: message.priority,
    "JMSMessageID": lambda message: message.message_id,
    "JMSTimestamp": lambda message: None if message.timestamp_ms is None else Long(message.timestamp_ms),
    "JMSCorrelationID": lambda message: message.correlation_id,
    "JMSType": lambda message: message.jms_type,
}
