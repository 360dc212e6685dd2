"""Faults that are the SDK's and zeep's at once: existing `except zeep.exceptions.Fault` goes on to work."""

from __future__ import annotations

from typing import Any, Final

from lxml import etree
from zeep.exceptions import Fault

from mtosi_jms.errors import MtosiFault
from mtosi_jms.namespaces import SOAP12, clark, split_clark
from mtosi_jms.xmlbind import parse_xml


class SoapFault(MtosiFault, Fault):
    """A fault as zeep has it, and as the SDK has it.

    It is an instance of the fault's own class too: `except EntityNotFoundFault` catches it where a registered package
    has that class. `kind`, `reason`, `header`, `fault_code`, `fault_string` and `raw` are those of `MtosiFault`.

    Attributes:
        fault: the fault as the requestor raises it; its `detail` is the object of the exception kind.
        code: the fault code as it was written, with its prefix.
        actor: of SOAP 1.1; None where there is none.
        subcodes: of SOAP 1.2, qualified names; None in SOAP 1.1.
        detail: the element `detail`, as zeep's faults have it; None where there is none.
    """

    def __init__(self, fault: MtosiFault) -> None:
        Exception.__init__(self, *fault.args)
        self.__dict__.update({name: value for name, value in vars(fault).items() if name != "detail"})
        self.fault = fault
        element = self._element()
        self.message = fault.fault_string
        self.code = fault.fault_code
        self.actor = None
        self.subcodes: list[etree.QName] | None = None
        if element is None:
            return
        if split_clark(str(element.tag))[0] == SOAP12:
            code = element.find(clark(SOAP12, "Code"))
            self.code = _text(code, clark(SOAP12, "Value")) or self.code
            self.subcodes = []
            while code is not None and (code := code.find(clark(SOAP12, "Subcode"))) is not None:
                prefix, _, local = (_text(code, clark(SOAP12, "Value")) or "").rpartition(":")
                namespace = code.nsmap.get(prefix or None)
                self.subcodes.extend([etree.QName(namespace, local)] if local else [])
        else:
            self.code = _text(element, "faultcode") or self.code
            self.actor = _text(element, "faultactor")

    def _element(self) -> Any:
        return parse_xml(self.fault.raw) if self.fault.raw is not None else None

    @property
    def detail(self) -> Any:
        element = self._element()
        found = (child for child in ([] if element is None else element) if _local(child) in ("detail", "Detail"))
        return next(found, None)

    @detail.setter
    def detail(self, value: Any) -> None:
        raise AttributeError("detail is that of the message; change fault.detail")

    def __reduce__(self) -> tuple[Any, ...]:
        return as_zeep, (self.fault,)


def as_zeep(fault: MtosiFault) -> SoapFault:
    """A fault that the requestor raised as one that is zeep's, too."""
    own = type(fault)
    both = _CLASSES.get(own)
    if both is None:
        both = _CLASSES[own] = type(own.__name__, (SoapFault, own), {"__module__": own.__module__})
    return both(fault)


_CLASSES: Final[dict[type[MtosiFault], type[SoapFault]]] = {MtosiFault: SoapFault}
"""What a class of faults is raised as."""


def _text(element: Any, name: str) -> str | None:
    found = element.find(name) if element is not None else None
    return (found.text or "").strip() or None if found is not None else None


def _local(element: Any) -> str:
    return split_clark(str(element.tag))[1]
