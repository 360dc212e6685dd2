"""SOAP header blocks of zeep's callers: the MTOSI header among them is merged with ours, the others are kept.

The requestor writes the MTOSI header. What a caller gives in `_soapheaders` adds to it, and replaces what the requestor
has no part in. Fields that say who asks, where the answer goes and which pattern it follows are the requestor's.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from lxml import etree
from zeep.wsdl.bindings.soap import SoapOperation
from zeep.xsd import CompoundValue

from mtosi_jms.errors import ConfigError
from mtosi_jms.header import BY_TAG
from mtosi_jms.namespaces import split_clark
from mtosi_jms.soap import FIELD_NAMES, Header, converted, header_class
from mtosi_jms.xmlbind import to_element

_ORDER: Final = {name: place for place, name in enumerate(FIELD_NAMES)}
OWN: Final = frozenset({
    "batchSequenceEndOfReply", "batchSequenceNumber", "communicationPattern", "communicationStyle", "destinationURI",
    "failureReplytoURI", "msgType", "replyToURI", "requestedBatchSize", "senderURI",
})  # fmt: skip
"""Fields that are the requestor's, whatever a caller gives."""


def blocks_of(operation: SoapOperation, given: object) -> tuple[etree._Element | None, list[etree._Element]]:
    """What a caller gives in `_soapheaders`: the MTOSI header, complete or not, and the other blocks. `given`: as zeep
    takes it: header parts by name, a list of values and elements, or nothing. Raises ConfigError: a part that the
    operation does not have, or something else than a header block."""
    declared = dict(operation.input.header.type.elements) if operation.input and operation.input.header else {}
    blocks: list[etree._Element] = []
    if isinstance(given, Mapping):
        for name, value in given.items():
            if name not in declared:
                known = ", ".join(declared) or "none"
                raise ConfigError(f"_soapheaders: {operation.name} has no header {name!r}; there are {known}")
            if value is not None:
                blocks.append(_block(declared[name], value))
    elif isinstance(given, list | tuple):
        blocks = [_element(value) for value in given]
    elif given is not None:
        raise ConfigError(f"_soapheaders: give a dict or a list, not {type(given).__name__}")
    mtosi_header = next((block for block in blocks if block.tag in BY_TAG), None)
    return mtosi_header, [block for block in blocks if block is not mtosi_header]


def declared_header(operation: SoapOperation) -> str | None:
    """The Clark name of the MTOSI header that the WSDL has in the requests of an operation; None if it has none."""
    if operation.input is None or operation.input.header is None:
        return None
    tags = (str(element.qname.text) for _, element in operation.input.header.type.elements)
    return next((tag for tag in tags if tag in BY_TAG), None)


def merged_header(operation: SoapOperation, header: Header, given: etree._Element | None) -> etree._Element:
    """The MTOSI header with what a caller gives, in the order of the schema.

    It is of the dialect that the caller gives, else of the one that the WSDL declares.

    Args:
        given: the caller's, None where there is none.
    """
    tag = str(given.tag) if given is not None else declared_header(operation)
    made = to_element(header if tag is None else converted(header, header_class(BY_TAG[tag])))
    if given is None:
        return made
    fields = {split_clark(str(child.tag))[1]: child for child in made}
    for child in given.iterchildren("*"):
        name = split_clark(str(child.tag))[1]
        if name not in OWN:
            fields[name] = copy.deepcopy(child)
    for name, value in given.items():
        made.set(name, value)
    made[:] = sorted(fields.values(), key=lambda child: _ORDER.get(split_clark(str(child.tag))[1], len(_ORDER)))
    return made


def _element(value: object) -> etree._Element:
    """A header block that was given in a list."""
    if isinstance(value, etree._Element):
        return copy.deepcopy(value)
    element = getattr(value, "_xsd_elm", None)
    if not isinstance(value, CompoundValue) or element is None:
        raise ConfigError(f"_soapheaders: give elements of the WSDL or of lxml, not {type(value).__name__}")
    return _block(element, value)


def _block(element: Any, value: Any) -> etree._Element:
    """A header block as XML; the MTOSI header without what it would need to be complete."""
    holder = etree.Element("block")
    if element.qname.text not in BY_TAG:
        element.render(holder, value)
    else:
        made = value if isinstance(value, CompoundValue) else element(**value)
        node = etree.SubElement(holder, element.qname.text)
        for name, part in element.type.elements:
            if made[name] is not None:
                part.render(node, made[name])
        for name, attribute in element.type.attributes:
            if made[name] is not None:
                attribute.render(node, made[name])
    block = holder[0]
    holder.remove(block)
    return block
