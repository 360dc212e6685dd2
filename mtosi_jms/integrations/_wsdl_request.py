"""A request without stubs: zeep makes the operation of a WSDL; its arguments come from assignments or a file."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from lxml import etree

from mtosi_jms.cli.arguments import nearest
from mtosi_jms.cli.calls import Reply, fill_shape
from mtosi_jms.errors import ConfigError, MissingExtraError, MtosiError
from mtosi_jms.exchange import Requestor
from mtosi_jms.integrations.zeep import client, read_wsdl
from mtosi_jms.namespaces import split_clark
from mtosi_jms.service import CallOptions
from mtosi_jms.soap import Envelope
from mtosi_jms.stubs.fmw.nam import NamingAttributeType
from mtosi_jms.xmlbind import RawXml, to_element

try:
    from zeep.exceptions import Error as ZeepError
    from zeep.helpers import serialize_object
    from zeep.xsd import AnySimpleType, ComplexType, Element
except ImportError as error:
    raise MissingExtraError("zeep", "zeep") from error


class ByWsdl:
    """An operation of a WSDL. `name`: `operation`, or `Service.operation` if several services have it. `request`: the
    request as XML, or assignments, `path=value` each. Raises ConfigError: no such service, operation or field, with
    near names; a request that zeep refuses."""

    def __init__(
        self, document: Any, requestor: Requestor, to: str, name: str, request: etree._Element | list[str]
    ) -> None:
        service, _, self.operation = name.rpartition(".")
        self.depth = 0
        self._client = client(document, requestor, to, service_name=service or None)
        operation = self._client.operation(self.operation)
        self.service = service or operation.binding.port_name.localname
        body = operation.input.body
        if isinstance(request, list):
            self._arguments = fill_shape(_Type(body.type if body is not None else None), request)
        else:
            self._arguments = _values_in(request, operation, document)
        try:
            operation.create(**self._arguments)
        except (ZeepError, TypeError, ValueError) as error:
            raise ConfigError(f"{self.operation}: {error}") from None

    def replies(self, options: CallOptions, batch_size: int | None) -> Iterator[Reply | None]:
        latest: list[Envelope] = []
        hook = options.on_reply

        def on_reply(envelope: Envelope) -> None:
            latest[:] = [envelope]
            if hook is not None:
                hook(envelope)

        arguments = {**self._arguments, "_options": replace(options, on_reply=on_reply)}
        if batch_size is None:
            answer = self._client.service[self.operation](**arguments)
            yield _reply(latest[0], answer) if latest else None
            return
        with self._client.batches(self.operation, batch_size=batch_size, **arguments) as batches:
            for answer in batches:
                yield _reply(latest[0], answer)


def read(wsdl: str, sources: Sequence[str]) -> Any:
    return read_wsdl(wsdl, sources=sources)


def _reply(envelope: Envelope, answer: Any) -> Reply:
    body = envelope.body
    element = body.element() if isinstance(body, RawXml) else to_element(body)
    return Reply(element, lambda: _body_of(answer))


def _values_in(element: etree._Element, operation: Any, document: Any) -> dict[str, Any]:
    """zeep's arguments for an operation, out of a request as XML."""
    body = operation.input.body
    tag = body.qname.text if body is not None else "empty"
    if element.tag != tag:
        raise ConfigError(f"{element.tag} is not a request of {operation.name}, which is {tag}")
    try:
        value = body.parse(element, document.types)
    except ZeepError as error:
        raise ConfigError(f"zeep cannot read the request: {error}") from None
    return {key: value[key] for key in value if value[key] is not None} if value is not None else {}


class _Type:
    """A type of a WSDL."""

    def __init__(self, xsd: Any) -> None:
        self._slots: dict[str, _Slot] = {}
        if isinstance(xsd, ComplexType):
            self._add(xsd.elements_nested, "")
            for name, attribute in xsd.attributes:
                if attribute.name:
                    self._slots.setdefault(name, _Slot(name, attribute, ""))

    def _add(self, nested: Iterable[tuple[str | None, Any]], group: str) -> None:
        """Take in the elements of a group and of the groups in it. `group`: zeep's name for the repeated group around
        them."""
        for name, item in nested:
            if isinstance(item, Element):
                key = name or item.attr_name
                self._slots.setdefault(key, _Slot(key, item, group))
            elif hasattr(item, "elements_nested"):
                self._add(item.elements_nested, group or (name or "_value_1" if item.accepts_multiple else ""))

    def slot(self, name: str, path: str) -> _Slot:
        found = self._slots.get(name)
        if found is None:
            raise ConfigError(f"{path!r}: no field {name!r}; {nearest(name, self._slots)}")
        return found

    def make(self, values: Mapping[str, list[Any]], path: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, held in values.items():
            slot = self._slots[key]
            if slot.group:
                made.setdefault(slot.group, []).extend({key: value} for value in held)
            else:
                made[key] = held if slot.many else held[0]
        return made


class _Slot:
    def __init__(self, key: str, part: Any, group: str) -> None:
        self.key = key
        self.local = key
        self.group = group
        self.many = bool(group) or bool(getattr(part, "accepts_multiple", False))
        self._xsd = part.type

    def shape(self) -> _Type | None:
        return _Type(self._xsd) if isinstance(self._xsd, ComplexType) else None

    def value(self, text: str, path: str) -> Any:
        own = self._xsd
        try:
            if isinstance(own, AnySimpleType):
                return own.pythonvalue(text)
            if split_clark(str(getattr(own, "qname", None) or ""))[1] == NamingAttributeType.__name__:
                parts = NamingAttributeType.parse(text).rdn
                return {"rdn": [{"type": part.type, "value": part.value} for part in parts]}
            nested = own.elements_nested if isinstance(own, ComplexType) else []
            if len(nested) == 1 and isinstance(nested[0][1], Element):  # simple content
                return {nested[0][0]: _Slot(self.key, nested[0][1], "").value(text, path)}
        except ConfigError:
            raise
        except (ValueError, ArithmeticError, MtosiError) as error:
            raise ConfigError(f"{path!r}: {text!r} does not fit: {error}") from None
        raise ConfigError(f"{path!r}: no value can be given here; name a field inside it, or take a file with --body")


def _plain(value: Any) -> Any:
    """An answer decoded by zeep as values for JSON: fields by their XML names, XML of unknown types as text."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items() if one not in (None, [])}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, etree._Element):
        return etree.tostring(value, encoding="unicode", with_tail=False)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return str(value)
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def _body_of(answer: Any) -> Any:
    """The body of zeep's answer as JSON has it; zeep hands out header and body where the WSDL has both."""
    value = serialize_object(answer, dict)
    if isinstance(value, dict) and set(value) == {"header", "body"}:
        value = value["body"]
    return _plain(value)
