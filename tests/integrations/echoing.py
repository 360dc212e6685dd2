"""A call of each operation of a generated service by zeep, with the least request."""

from __future__ import annotations

from typing import Any

from lxml import etree
from zeep.helpers import serialize_object
from zeep.plugins import HistoryPlugin

from mtosi_jms.integrations.zeep import Client
from mtosi_jms.service import OperationInfo
from mtosi_jms.xmlbind import decode, to_element

from .least import Echo


class ZeepEcho(Echo):
    """An `Echo` that is called by zeep."""

    def check(self, client: Client, history: HistoryPlugin, operation: OperationInfo) -> None:
        """Call an operation by zeep with the least request: it comes whole, and so does the answer."""
        request = self.request(operation)
        answer = client.service[operation.name](**arguments(client, operation.name, to_element(request)))
        assert self.got.get(timeout=60) == (self.info.name, operation.name, request)
        if not operation.response:
            assert answer is None
            return
        element = history.last_received["envelope"].find("{*}Body")[0]
        assert decode(element, self.info.load(operation.response)) == self.response(operation)
        assert leaves(element) <= keys(serialize_object(answer, dict)) | {etree.QName(element).localname}


def arguments(client: Client, name: str, element: etree._Element) -> dict[str, Any]:
    """zeep's arguments for a request."""
    value = client.operation(name).input.body.parse(element, client.wsdl.types)
    if value is None:
        return {}
    _fill(value, element)
    return {key: value[key] for key in value}


def _fill(value: Any, element: etree._Element) -> None:
    """Put what is empty in the document, and None to zeep, into its value."""
    for name in list(value):
        held, children = value[name], element.findall("{*}" + name)
        if name.startswith("_value_") and isinstance(held, list):
            for item in held:
                _fill(item, element)
        elif isinstance(held, list):
            for one, child in zip(held, children, strict=False):
                if hasattr(one, "_xsd_type"):
                    _fill(one, child)
            value[name] = [{} if one is None else one for one in held]
        elif held is None and children:
            value[name] = {}
        elif hasattr(held, "_xsd_type"):
            _fill(held, children[0])


def leaves(element: etree._Element) -> set[str]:
    """The names of the elements with text."""
    return {etree.QName(one).localname for one in element.iter("*") if not len(one) and (one.text or "").strip()}


def keys(value: Any) -> set[str]:
    """All keys of what zeep made of an answer."""
    if isinstance(value, dict):
        return set(value) | {key for inner in value.values() for key in keys(inner)}
    return {key for inner in value for key in keys(inner)} if isinstance(value, list) else set()
