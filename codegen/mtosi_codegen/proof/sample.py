"""Makes example envelopes: SOAP, the MTOSI header if the set has one, and an instance of a message."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from lxml import etree
from xmlschema.validators import XsdElement, XsdGroup

from mtosi_codegen.load import Bindings
from mtosi_codegen.mend import mend
from mtosi_codegen.model import Operation, Service
from mtosi_codegen.proof.instances import Kind, Maker, Stock
from mtosi_codegen.proof.messages import Message, Role, messages_of
from mtosi_codegen.proof.oracle import Oracle
from mtosi_jms.errors import SchemaError
from mtosi_jms.header import DIALECTS, release_of_body
from mtosi_jms.namespaces import SOAP11, split_clark

_TYPES: Final[Mapping[Role, str]] = {"request": "REQUEST", "response": "RESPONSE", "fault": "ERROR"}


def sample(
    operation: str,
    sources: Sequence[Path | str],
    *,
    kind: Kind = "least",
    seed: int = 0,
    role: Role = "request",
    bindings: Bindings = "jms",
) -> bytes:
    """Return a valid envelope with a message of an operation.

    Args:
        operation: its name, or `Service.operation` if several services have that operation.
        kind: `least`, `greatest` or `random`.
        seed: seed of the random choices; the same seed gives the same envelope.
        bindings: `jms`, or `all` to take other SOAP bindings too.

    Raises:
        SchemaError: no or several operations or messages of that name, or schemas that repair does not make usable.
    """
    samples = Samples(sources, bindings)
    return samples.envelope(
        _message(operation, messages_of(samples.services, [operation], samples.findings), role), kind, seed
    )


class Samples:
    """Makes envelopes for one set of sources, which is read once.

    Args:
        bindings: `jms`, or `all` to take other SOAP bindings too.

    Raises:
        SchemaError: the schemas cannot be used even after repair.
    """

    def __init__(self, sources: Sequence[Path | str], bindings: Bindings = "jms") -> None:
        with tempfile.TemporaryDirectory(prefix="mtosi-codegen-") as folder:
            mended = mend(sources, folder, bindings=bindings)
            self.services, self.findings = mended.services, mended.findings
            self._oracle = Oracle(mended.schema)
        self._stock = Stock(self._oracle)

    def envelope(self, message: Message, kind: Kind = "least", seed: int = 0) -> bytes:
        """Return a valid envelope with a message. Raises SchemaError: no schema defines its element, or no valid
        instance was found."""
        oracle, stock = self._oracle, self._stock
        declaration = oracle.element(message.element)
        if declaration is None:
            raise SchemaError(f"{message.path}: no schema has the element {message.element}")
        body = Maker(stock, kind, seed).make(declaration)
        envelope = etree.Element(f"{{{SOAP11}}}Envelope", nsmap={"soap": SOAP11})
        release = release_of_body(split_clark(message.element)[0])
        tags = [one.tag for one in sorted(DIALECTS, key=lambda one: one.release != release)]
        header = next(filter(None, map(oracle.element, tags)), None)
        if header is not None:
            etree.SubElement(envelope, f"{{{SOAP11}}}Header").append(_header(header, message, stock))
        place = etree.SubElement(envelope, f"{{{SOAP11}}}Body")
        if message.role == "fault":
            fault = etree.SubElement(place, f"{{{SOAP11}}}Fault")
            etree.SubElement(fault, "faultcode").text = "soap:Server"
            etree.SubElement(fault, "faultstring").text = split_clark(message.element)[1]
            place = etree.SubElement(fault, "detail")
        place.append(body)
        for part in (body, *(envelope[0] if header is not None else ())):
            if problems := oracle.problems(part):
                raise SchemaError(f"{message.path}: no valid instance was found: {problems[0]}")
        etree.indent(envelope)
        text: bytes = etree.tostring(envelope, encoding="utf-8", xml_declaration=True)
        return text + b"\n"

    def examples(self, service: Service, operation: Operation) -> dict[str, str]:
        """The smallest valid envelopes of an operation, by role; for faults the first valid one."""
        found: dict[str, str] = {}
        for message in messages_of([service], [operation.name]):
            if message.role not in found:
                with contextlib.suppress(SchemaError):
                    found[message.role] = self.envelope(message).decode()
        return found


def _message(operation: str, found: Sequence[Message], role: Role) -> Message:
    services = list(dict.fromkeys(f"{message.service}.{message.operation}" for message in found))
    if len(services) > 1:
        raise SchemaError(f"several services have an operation {operation!r}: name one of {', '.join(services)}")
    message = next((message for message in found if message.role == role), None)
    if message is None:
        raise SchemaError(f"operation {operation!r} has no {role}")
    return message


def _header(declaration: XsdElement, message: Message, stock: Stock) -> etree._Element:
    """The smallest MTOSI header, with the fields that identify the message if the schema has them."""
    values = {
        "activityName": message.operation,
        "msgName": split_clark(message.element)[1],
        "msgType": _TYPES[message.role],
        "senderURI": "/MTOSI/Sample",
        "destinationURI": f"/MTOSI/{message.service}",
        "correlationId": "1",
        "communicationPattern": "SimpleResponse",
        "communicationStyle": "MSG",
        **(
            {}
            if message.role == "request"
            else {"activityStatus": "SUCCESS" if message.role == "response" else "FAILURE"}
        ),
    }
    header = Maker(stock, "least").make(declaration)
    filled = etree.Element(header.tag, nsmap=header.nsmap)
    made = {str(child.tag): child for child in header}
    content = getattr(declaration.type, "content", None)
    for particle in content.iter_elements() if isinstance(content, XsdGroup) else ():
        name = str(particle.name)
        child = made.get(name)
        text = values.get(split_clark(name)[1])
        if text is not None and child is None:
            child = etree.Element(name)
        if child is not None:
            child.text = text if text is not None else child.text
            filled.append(child)
    return header if stock.oracle.problems(filled) else filled
