"""Services from several WSDLs, and names in them that no schema author thought of."""

from __future__ import annotations

import asyncio
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import mtosi_jms
from mtosi_codegen import Result, generate
from mtosi_jms.errors import MtosiFault
from mtosi_jms.jms import JmsMessage
from mtosi_jms.service.registry import services_of
from mtosi_jms.soap import Envelope, Header, exception_for, fault_class, fault_kinds, parse
from mtosi_jms.testing import exchange
from mtosi_jms.xmlbind import XmlObject, encode

from .conftest import ASK, MESSAGES, rules, wsdl, xsd

JMS = '<s:binding style="document" transport="http://schemas.xmlsoap.org/soap/jms"/>'


def _import(file: str) -> str:
    return f'<w:import namespace="urn:w" location="{file}"/>'


@pytest.fixture
def layers() -> dict[str, str]:
    """One service in five files, each importing the next."""
    return {
        "service.wsdl": wsdl(_import("binding.wsdl") + ASK["service"]),
        "binding.wsdl": wsdl(_import("port.wsdl") + ASK["binding"]),
        "port.wsdl": wsdl(_import("middle.wsdl") + ASK["port"]),
        "middle.wsdl": wsdl(_import("messages.wsdl")),
        "messages.wsdl": wsdl(ASK["types"] + ASK["messages"]),
        "messages.xsd": MESSAGES,
    }


@pytest.mark.obligation("001-S4")
@pytest.mark.parametrize("source", ["", "service.wsdl"])
def test_a_service_whose_binding_stands_in_another_file(tree: Any, layers: dict[str, str], source: str) -> None:
    result = generate([tree(layers) / source])
    (service,) = result.services
    assert result.findings == ()
    assert (service.name, service.wsdl) == ("Oracle", "binding.wsdl")
    assert service.address == "jms://somewhere/Oracle"
    assert [operation.name for operation in service.operations] == ["ask"]


def test_a_folder_with_http_only_says_so(build: Callable[..., Result], layers: dict[str, str]) -> None:
    http = {**layers, "binding.wsdl": layers["binding.wsdl"].replace("soap/jms", "soap/http")}
    result = build(http)
    assert (rules(result), result.failed, result.services) == (["no-service"], False, ())
    assert "--bindings all" in result.findings[0].message
    assert [service.name for service in build(http, bindings="all").services] == ["Oracle"]


def test_a_stale_copy_of_a_wsdl_is_left_out(build: Callable[..., Result], layers: dict[str, str]) -> None:
    copies = {"binding - Copy.wsdl": layers["binding.wsdl"], "a copy/binding.wsdl": layers["binding.wsdl"]}
    result = build({**layers, **copies})
    assert [service.wsdl for service in result.services] == ["binding.wsdl"]
    assert rules(result) == ["rival-left-out", "rival-left-out"]


def test_a_stale_wsdl_that_is_named_itself_counts(tree: Any, layers: dict[str, str]) -> None:
    folder = tree({**layers, "binding-old.wsdl": layers["binding.wsdl"]})
    result = generate([folder / "binding-old.wsdl"])
    assert [service.wsdl for service in result.services] == ["binding-old.wsdl"]


def test_operations_services_and_fields_of_any_name(
    build: Callable[..., Result], package: Callable[[Result], str]
) -> None:
    names = ["get1", "get_1", "get-1", "I_N_F_O", "info", "list", "class", "__init__", "Supplier"]
    fields = ["options", "options_", "self", "request", "batch_size", "timeout"]
    operations = "".join(
        f'<w:operation name="{name}"><w:input message="t:askRequest"/><w:output message="t:askResponse"/></w:operation>'
        for name in names
    )
    bound = "".join(f'<w:operation name="{name}"/>' for name in names)
    services = "".join(
        f'<w:portType name="{name}">{operations}</w:portType>'
        f'<w:binding name="{name}B" type="t:{name}">{JMS}{bound}</w:binding>'
        for name in ("Any", "Iterable")
    )
    more = "".join(f'<x:element name="{name}" type="x:string" minOccurs="0"/>' for name in fields)
    schema = MESSAGES.replace("</x:sequence>", f"{more}</x:sequence>", 1)
    result = build({"a.wsdl": wsdl(ASK["types"] + ASK["messages"] + services), "messages.xsd": schema})
    name = package(result)
    requestor = mtosi_jms.Requestor(mtosi_jms.connect("memory:codegen"), sender_uri="queue:ME")
    for service in result.model.services:
        cls = getattr(importlib.import_module(f"{name}.{service.module}"), service.class_name)
        stub = cls(requestor, "queue:X")
        calls = [getattr(stub, operation.python_name) for operation in service.operations]
        assert len({type(call) for call in calls}) == len(names)
        assert [call.info.name for call in calls] == names
        parameters = list(inspect.signature(calls[0]).parameters)
        own = ["what", "options__", "options_", "self_", "request_", "batch_size_", "timeout_"]
        assert parameters == ["request", *own, "options", "timeout"]


def test_a_wsdl_that_names_the_transport_of_the_w3c(
    build: Callable[..., Result], layers: dict[str, str], package: Callable[[Result], str]
) -> None:
    w3c = layers["binding.wsdl"].replace("http://schemas.xmlsoap.org/soap/jms", "http://www.w3.org/2010/soapjms/")
    actions = {"binding.wsdl": w3c.replace("<s:operation/>", '<s:operation soapAction="urn:ask"/>')}
    found = []
    for files in (layers, layers | actions):
        service = importlib.import_module(f"{package(build(files))}.urn_w.oracle").Oracle.__service__
        found.append((service.transport, service.operations[0].soap_action))
    assert found == [("", ""), ("http://www.w3.org/2010/soapjms/", "urn:ask")]


SOAPJMS = 'xmlns:j="http://www.w3.org/2010/soapjms/"'


def _with_settings(text: str, **places: str) -> str:
    """A WSDL with elements of W3C's SOAP over JMS in its binding, service or port."""
    for place, elements in places.items():
        start = {"binding": "<s:binding", "service": "<w:port ", "port": "<s:address", "operation": "<s:operation"}[
            place
        ]
        made = "".join(f"<j:{name} {SOAPJMS}>{value}</j:{name}>" for name, _, value in map(_split, elements.split()))
        assert start in text
        text = text.replace(start, f"{made}{start}", 1)
    return text


def _split(setting: str) -> tuple[str, str, str]:
    return setting.partition("=")


@pytest.mark.obligation("REQ5")
@pytest.mark.parametrize(
    ("places", "delivery", "reported"),
    [
        (
            {"binding": "deliveryMode=PERSISTENT timeToLive=60000 priority=8"},
            {"persistent": True, "time_to_live": 60.0, "priority": 8},
            [],
        ),
        ({"binding": "priority=8", "service": "priority=7", "port": "priority=1"}, {"priority": 1}, []),
        ({"binding": "priority=8", "service": "priority=7"}, {"priority": 7}, []),
        ({"port": "timeToLive=0 deliveryMode=NON_PERSISTENT"}, {"persistent": False, "time_to_live": 0.0}, []),
        ({"binding": "priority=12"}, {}, ["soapjms:priority is '12'"]),
        ({"binding": "priority=8", "port": "priority=-1"}, {"priority": 8}, ["soapjms:priority is '-1'"]),
        ({"port": "timeToLive=1.5"}, {}, ["soapjms:timeToLive is '1.5'"]),
        ({"service": "deliveryMode=durable"}, {}, ["soapjms:deliveryMode is 'durable'"]),
        ({"binding": "replyToName=a topicReplyToName=b"}, {}, ["soapjms:replyToName", "soapjms:topicReplyToName"]),
        (
            {
                "service": "jndiURL=x jndiInitialContextFactory=y",
                "port": "jndiConnectionFactoryName=z jndiContextParameter=",
            },
            {},
            [
                "soapjms:jndiConnectionFactoryName",
                "soapjms:jndiContextParameter",
                "soapjms:jndiInitialContextFactory",
                "soapjms:jndiURL",
            ],
        ),
        ({"binding": "lookupVariant=x"}, {}, ["soapjms:lookupVariant"]),
        ({"port": "priority=3 priority=4 priority=3"}, {"priority": 3}, ["soapjms:priority"]),
        (
            {"operation": "priority=3 jndiURL=x", "port": "priority=2"},
            {"priority": 2},
            ["soapjms:jndiURL", "soapjms:priority"],
        ),
    ],
)
def test_soap_jms_elements_are_options_of_calls_or_findings(
    build: Callable[..., Result],
    package: Callable[[Result], str],
    places: dict[str, str],
    delivery: dict[str, object],
    reported: list[str],
) -> None:
    result = build({"a.wsdl": _with_settings(wsdl("\n".join(ASK.values())), **places), "messages.xsd": MESSAGES})
    assert sorted(finding.message for finding in result.findings) == reported
    assert {finding.rule for finding in result.findings} <= {"soap-jms"}
    oracle = importlib.import_module(f"{package(result)}.urn_w.oracle").Oracle
    assert dict(oracle.__service__.delivery) == delivery


@pytest.mark.obligation("REQ5", "REQ6")
def test_calls_follow_the_wsdl_and_their_own_options(
    build: Callable[..., Result], package: Callable[[Result], str]
) -> None:
    text = wsdl("\n".join(ASK.values())).replace(
        "http://schemas.xmlsoap.org/soap/jms", "http://www.w3.org/2010/soapjms/"
    )
    text = _with_settings(text, binding="deliveryMode=PERSISTENT timeToLive=60000 priority=8")
    text = text.replace("http://schemas.xmlsoap.org/wsdl/soap/", "http://schemas.xmlsoap.org/wsdl/soap12/")
    oracle = importlib.import_module(
        f"{package(build({'a.wsdl': text, 'messages.xsd': MESSAGES}))}.urn_w.oracle"
    ).Oracle
    answers: list[JmsMessage] = []

    class Lost(oracle.Supplier):  # type: ignore[misc, name-defined]
        def ask(self, request: Any, context: Any) -> Any:
            answers.append(context.message)
            raise MtosiFault("nothing is known", fault_code="Server")

    with exchange([Lost()]) as pair:
        calls: list[tuple[str, dict[str, Any], tuple[str, int, int]]] = [
            ("queue:EMS.OS", {}, ("PERSISTENT", 60_000, 8)),
            ("queue:EMS.OS", {"priority": 2, "time_to_live": 5, "persistent": False}, ("NON_PERSISTENT", 5_000, 2)),
            ("jms:queue:EMS.OS?priority=3&timeToLive=7000", {}, ("PERSISTENT", 7_000, 3)),
        ]
        for address, options, expected in calls:
            address = address.replace("EMS.OS", pair.destination.name)
            stub = oracle(pair.requestor, address)
            for call in (
                lambda stub=stub, **given: stub.ask(what="?", **given),
                lambda stub=stub, **given: asyncio.run(stub.aio.ask(what="?", **given)),
            ):
                with pytest.raises(MtosiFault, match="nothing is known") as fault:
                    call(options=mtosi_jms.CallOptions(**options))
                assert fault.value.fault_code == "Receiver"
                sent = answers.pop()
                assert (sent.delivery_mode.name, sent.time_to_live_ms, sent.priority) == expected
                assert sent.properties["SOAPJMS_contentType"] == "application/soap+xml; charset=UTF-8"
                assert parse(sent.body).version == "1.2"


@pytest.mark.obligation("REQ3")
def test_header_parts_are_declared(build: Callable[..., Result], package: Callable[[Result], str]) -> None:
    part = '<w:part name="tx" element="m:refused"/></w:message>'
    text = wsdl("\n".join(ASK.values())).replace("</w:message>", part, 1)
    bound = '<s:header message="t:askRequest" part="tx" use="literal"/><s:body parts="body" use="literal"/>'
    text = text.replace('<s:body use="literal"/>', bound, 1)
    for options in ({}, {"operations": ["ask"]}):
        name = package(build({"a.wsdl": text, "messages.xsd": MESSAGES}, **options))
        service = importlib.import_module(f"{name}.urn_w.oracle").Oracle.__service__
        assert service.header_tags(service.operations[0]) == {"{urn:m}refused"}


# Faults of generated packages: kinds wherever an exception declares them, written by suppliers and read back typed.

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
