"""Faults of generated packages: kinds wherever an exception declares them, written by suppliers and read back typed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mtosi_codegen import Result, generate
from mtosi_jms.errors import MtosiFault
from mtosi_jms.service.registry import services_of
from mtosi_jms.soap import Envelope, Header, exception_for, fault_class, fault_kinds, parse
from mtosi_jms.xmlbind import XmlObject, encode

from .conftest import ASK, wsdl, xsd

TROUBLE = (
    '<x:complexType name="Trouble"><x:sequence><x:element name="reason" type="x:string"/>%s</x:sequence>'
    "</x:complexType>"
)
NOTE = '<x:element name="note" type="x:int" minOccurs="0"/>'
LOCAL = '<x:element name="full" type="t:Trouble"/><x:element name="empty" type="t:Trouble"/>'
EXCEPTIONS = {
    "choice": f"<x:choice>{LOCAL}</x:choice>",
    "repeated": f'<x:choice maxOccurs="unbounded">{LOCAL}</x:choice>',
    "beside": f"<x:sequence><x:choice>{LOCAL}</x:choice>{NOTE}</x:sequence>",
    "open": f'<x:choice><x:element name="free"/><x:element name="gone" type="t:Gone"/>{LOCAL}</x:choice>',
    "nested": '<x:choice><x:element name="failure" type="t:Failure"/></x:choice>',
}


@pytest.fixture
def oracle(build: Callable[..., Result], package: Any) -> Any:
    """The types of a service whose exception has the given content."""

    def make(content: str, more: str = "") -> ModuleType:
        ends = "".join(f'<x:element name="ask{kind}" type="x:string"/>' for kind in ("Request", "Response"))
        failure = f'<x:complexType name="Failure"><x:choice>{LOCAL}</x:choice></x:complexType>'
        exception = f'<x:element name="askException"><x:complexType>{content}</x:complexType></x:element>'
        schema = xsd(ends + failure + exception + TROUBLE % more, "urn:m")
        name = package(build({"o.wsdl": wsdl("".join(ASK.values())), "messages.xsd": schema}))
        return importlib.import_module(f"{name}.urn_m.types")

    return make


def _answered(fault: MtosiFault, exception: type[XmlObject]) -> MtosiFault:
    package = exception.__xml__.module.root
    made = Envelope.for_fault(fault, exception, Header(correlation_id="17"))
    found = parse(made.to_bytes(), package=package)
    assert found.fault is not None
    assert found.header.correlation_id == "17"
    return found.fault


@pytest.mark.parametrize("shape", ["choice", "repeated", "beside", "open"])
def test_kinds_that_are_declared_in_place_are_typed(oracle: Any, shape: str) -> None:
    types = oracle(EXCEPTIONS[shape])
    found = _answered(types.FullFault("no room"), types.AskException)
    assert type(found) is types.FullFault
    assert (found.kind, found.reason, type(found.detail)) == ("full", "no room", types.Trouble)
    assert fault_class("empty", types.AskException) is types.EmptyFault
    assert list(fault_kinds(types.AskException)) == ["full", "empty"]


def test_a_kind_inside_a_kind(oracle: Any) -> None:
    types = oracle(EXCEPTIONS["nested"])
    made = exception_for(MtosiFault("no room", kind="full"), types.AskException, Header())
    assert made == types.AskException(failure=types.Failure(full=types.Trouble(reason="no room")))
    found = _answered(MtosiFault("no room", kind="full"), types.AskException)
    assert type(found) is types.FailureFault
    assert found.fault_string == "no room"


def test_a_kind_that_needs_more_than_words_goes_out_without_detail(oracle: Any) -> None:
    types = oracle(EXCEPTIONS["choice"], '<x:element name="where" type="x:string"/>')
    assert exception_for(MtosiFault("no room", kind="full"), types.AskException, Header()) is None
    found = _answered(MtosiFault("no room", kind="full"), types.AskException)
    assert (type(found), found.reason) == (MtosiFault, "no room")
    detail = types.Trouble(reason="no room", where="here")
    assert _answered(types.FullFault("x", detail=detail), types.AskException).detail == detail


@pytest.mark.parametrize("release", [pytest.param("2.0", marks=pytest.mark.endurance), "4.0"])
def test_every_kind_of_every_operation_of_a_release(release: str, shared: Path, package: Any) -> None:
    name = package(generate([shared / "mtosi" / release]))
    operations = {op.fault: info for info in services_of(name) for op in info.operations if op.fault}
    exceptions = [info.load(path) for path, info in sorted(operations.items())]
    silent: set[str] = set()
    untyped: set[str] = set()
    for exception in exceptions:
        for kind in ("unheardOf", *fault_kinds(exception)):
            made = exception_for(MtosiFault("why", kind=kind), exception, Header())
            if made is None:
                silent.add(exception.__name__)
            else:
                assert b"why" in encode(made), (exception, kind)
                untyped |= {kind} if fault_class(kind, exception) is MtosiFault else set()
    assert silent == {"GetAssociatedTerminationPointsWrtTmdException"}, "its only kind is a name"
    assert untyped == {"unheardOf", "objectName", "nonExistentContainingObject"}, "the names go along with a kind"
