"""WSDLs as services."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mtosi_codegen import Result
from mtosi_codegen.wsdl.join import stripped_name
from mtosi_jms.errors import SchemaError

from .conftest import ASK, MESSAGES, rules, wsdl, xsd

Build = Callable[..., Result]


@pytest.fixture
def oracle() -> Callable[..., dict[str, str]]:
    """The sources of one service, with replacements in the WSDL."""

    def make(*changes: tuple[str, str]) -> dict[str, str]:
        text = wsdl("\n".join(ASK.values()))
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        return {"oracle.wsdl": text, "messages.xsd": MESSAGES}

    return make


@pytest.mark.obligation("P26", "001-S4", "001-S5")
def test_a_service_with_one_operation(build: Build, oracle: Any) -> None:
    result = build(oracle())
    (service,) = result.services
    (operation,) = service.operations
    assert result.findings == ()
    assert (service.name, service.namespace, service.port_type) == ("Oracle", "urn:w", "Oracle_MSG")
    assert service.address == "jms://somewhere/Oracle"
    assert (operation.name, operation.mep, operation.python_name) == ("ask", "request-response", "ask")
    assert operation.request == ("urn:m", "askRequest")
    assert operation.response == ("urn:m", "askResponse")
    assert operation.fault == ("urn:m", "askException")
    assert operation.response_message == "askResponse"


@pytest.mark.parametrize(
    ("transport", "found"),
    [
        ("http://schemas.xmlsoap.org/soap/jms", 1),
        ("http://www.w3.org/2010/soapjms/", 1),
        ("http://schemas.xmlsoap.org/soap/JMS", 1),
        ("http://schemas.xmlsoap.org/soap/http", 0),
        ("", 0),
    ],
)
def test_the_transport_decides(build: Build, oracle: Any, transport: str, found: int) -> None:
    files = oracle(("http://schemas.xmlsoap.org/soap/jms", transport), ("jms://somewhere", "http://somewhere"))
    assert len(build(files).services) == found
    assert len(build(files, bindings="all").services) == 1


@pytest.mark.parametrize(
    "address",
    [
        '<s:address location="jms:queue:oracle"/>',
        '<j:address xmlns:j="http://cxf.apache.org/transports/jms" destinationStyle="queue"/><s:address location="x"/>',
    ],
)
def test_a_port_on_jms_decides_too(build: Build, oracle: Any, address: str) -> None:
    files = oracle(
        ("http://schemas.xmlsoap.org/soap/jms", "http://schemas.xmlsoap.org/soap/http"),
        ('<s:address location="jms://somewhere/Oracle"/>', address),
    )
    (service,) = build(files).services
    assert service.name == "Oracle"
    assert build({**files, "oracle.wsdl": files["oracle.wsdl"].replace(address, "")}).services == ()


def test_a_w3c_address_is_kept_as_it_is(build: Build, oracle: Any) -> None:
    uri = "jms:jndi:dynamicQueues/oracle?timeToLive=1000"
    (service,) = build(oracle(("jms://somewhere/Oracle", uri))).services
    assert service.address == uri


def test_without_a_port(build: Build, oracle: Any) -> None:
    (service,) = build(oracle((ASK["service"], ""))).services
    assert (service.address, len(service.operations)) == ("", 1)


@pytest.mark.obligation("P26", "001-S5")
def test_one_way(build: Build, oracle: Any) -> None:
    files = oracle(('<w:output message="t:askResponse"/><w:fault name="f" message="t:askException"/>', ""))
    (operation,) = build(files).services[0].operations
    assert (operation.mep, operation.response, operation.fault) == ("one-way", None, None)


@pytest.mark.obligation("001-S13")
def test_the_response_is_what_the_wsdl_says(build: Build, oracle: Any) -> None:
    (operation,) = build(oracle(('element="m:askResponse"', 'element="m:lost"'))).services[0].operations
    assert (operation.request, operation.response) == (("urn:m", "askRequest"), ("urn:m", "lost"))


@pytest.mark.obligation("001-S6")
def test_the_order_of_parameters_means_nothing_to_documents(build: Build, oracle: Any) -> None:
    result = build(oracle(('operation name="ask">', 'operation name="ask" parameterOrder="b a">')))
    (operation,) = result.services[0].operations
    assert result.findings == ()
    assert (operation.request, operation.response) == (("urn:m", "askRequest"), ("urn:m", "askResponse"))


def test_header_parts_are_not_the_body(build: Build, oracle: Any) -> None:
    part = '<w:part name="body" element="m:askRequest"/>'
    header = '<w:part name="head" element="m:refused"/>'
    bound = '<w:input><s:header message="t:askRequest" part="head" use="literal"/><s:body use="literal"/></w:input>'
    for parts in (header + part, part + header):
        files = oracle((part, parts), ('<w:input><s:body use="literal"/></w:input>', bound))
        (operation,) = build(files).services[0].operations
        assert operation.request.local == "askRequest"


def test_several_bindings_in_one_file(build: Build, oracle: Any) -> None:
    second = ASK["binding"].replace("OracleSoapJmsBinding", "Delphi")
    http = ASK["binding"].replace("OracleSoapJmsBinding", "Web").replace("soap/jms", "soap/http")
    files = oracle((ASK["binding"], ASK["binding"] + second + http))
    services = build(files).services
    assert [(service.binding, service.name) for service in services] == [
        ("OracleSoapJmsBinding", "Oracle"),
        ("Delphi", "Delphi"),
    ]
    assert {service.module for service in build(files, bindings="all").services} == {
        "urn_w.oracle",
        "urn_w.delphi",
        "urn_w.oracle_http",
    }


def test_messages_two_imports_away_in_the_same_namespace(build: Build) -> None:
    def imported(location: str) -> str:
        return f'<w:import namespace="urn:w" location="{location}"/>'

    result = build(
        {
            "deep/er/binding.wsdl": wsdl(imported("../port.wsdl") + ASK["binding"] + ASK["service"]),
            "deep/port.wsdl": wsdl(imported("../messages.wsdl") + ASK["port"]),
            "messages.wsdl": wsdl(ASK["types"] + ASK["messages"]),
            "messages.xsd": MESSAGES,
        }
    )
    assert result.findings == ()
    assert [operation.name for operation in result.services[0].operations] == ["ask"]


def test_inline_schemas_that_import_each_other_by_namespace(build: Build, oracle: Any) -> None:
    inline = MESSAGES.partition("?>")[2]
    user = xsd('<x:import namespace="urn:m"/><x:element name="e" type="m:AnswerType"/>', "urn:user").partition("?>")[2]
    old = '<x:schema><x:import namespace="urn:m" schemaLocation="messages.xsd"/></x:schema>'
    result = build({"oracle.wsdl": oracle((old, inline + user))["oracle.wsdl"]})
    assert result.findings == ()
    assert len(result.services[0].operations) == 1
    assert sorted(module.namespace for module in result.model.modules) == ["urn:m", "urn:user"]


def test_two_services_with_the_same_name_live_side_by_side(build: Build, oracle: Any) -> None:
    files = {f"{name}/{file}": text for name in ("one", "two") for file, text in oracle().items()}
    files["two/sibyl.wsdl"] = files.pop("two/oracle.wsdl")
    services = build(files).services
    assert [(service.name, service.class_name, service.module) for service in services] == [
        ("Oracle", "Oracle", "urn_w.oracle"),
        ("sibyl", "Sibyl", "urn_w.sibyl"),
    ]


def test_a_service_named_like_a_module_of_types(build: Build, oracle: Any) -> None:
    (service,) = build(oracle(("urn:w", "urn:m"), ("Oracle_MSG", "Types"))).services
    assert (service.module, service.class_name) == ("urn_m.types_service", "Types")


@pytest.mark.parametrize(
    ("first", "second", "taken", "reported"),
    [
        ("head", "body", "askResponse", 0),
        ("mtosiBody", "more", "askRequest", 0),
        ("one", "theHeader", "askRequest", 0),
        ("one", "two", "askRequest", 1),
    ],
)
def test_the_body_among_several_parts(
    build: Build, oracle: Any, first: str, second: str, taken: str, reported: int
) -> None:
    one = '<w:part name="body" element="m:askRequest"/>'
    both = f'{one.replace("body", first)}<w:part name="{second}" element="m:askResponse"/>'
    result = build(oracle((one, both)))
    assert result.services[0].operations[0].request == ("urn:m", taken)
    assert rules(result) == ["message-part"] * reported
    assert not result.failed


def test_only_some_operations(build: Build, oracle: Any) -> None:
    files = oracle()
    files["more.xsd"] = MESSAGES.replace("urn:m", "urn:more")
    chosen = build(files, operations=["Oracle.ask"])
    assert [module.namespace for module in chosen.model.modules] == ["urn:m"]
    assert not chosen.failed
    with pytest.raises(SchemaError, match=re.escape("no operation 'akk'; did you mean ask?")):
        build(files, operations=["akk"])


def test_the_element_that_a_message_means(build: Build, oracle: Any) -> None:
    files = {**oracle(), "messages.xsd": MESSAGES.replace('"askResponse"', '"askRequestResponse"')}
    result = build(files)
    assert [finding.rule for finding in result.findings] == ["element-unresolved"]
    assert result.services[0].operations[0].response == ("urn:m", "askRequestResponse")


@pytest.mark.parametrize(
    ("name", "stripped"),
    [
        ("ManagedElementRetrieval_MSG", "ManagedElementRetrieval"),
        ("ManagedElementRetrievalSoapJmsBinding", "ManagedElementRetrieval"),
        ("ConnectionControlJms", "ConnectionControl"),
        ("InventoryPortType", "Inventory"),
        ("Service", "Service"),
        ("Mart", "Mart"),
    ],
)
def test_interface_names(name: str, stripped: str) -> None:
    assert stripped_name(name) == stripped


LOOKUPS = ("Id", "Name", "Place")


def _lookups(wsdl: Callable[..., str], port: Mapping[str, str], bound: Mapping[str, str]) -> str:
    """A WSDL whose operation `lookup` is there three times; the SOAP action of each is that of its message.

    Args:
        port: the attributes of input and output in the port type, by message.
        bound: those of the binding, in its order.
    """

    def operation(names: str, one: str = "") -> str:
        first, _, second = names.partition("|")
        asked, found = (f'message="t:by{one}"', f'message="t:found{one}"') if one else ("", "")
        body = '<s:body use="literal"/>'
        return f"<w:input {first} {asked}>{body}</w:input><w:output {second} {found}>{body}</w:output>"

    elements = "".join(
        f'<x:element name="{kind}{one}" type="x:string"/>' for one in LOOKUPS for kind in ("by", "found")
    )
    messages = "".join(
        f'<w:message name="{kind}{one}"><w:part name="b" element="t:{kind}{one}"/></w:message>'
        for one in LOOKUPS
        for kind in ("by", "found")
    )
    ports = "".join(f'<w:operation name="lookup">{operation(names, one)}</w:operation>' for one, names in port.items())
    bindings = "".join(
        f'<w:operation name="lookup"><s:operation soapAction="urn:{one}"/>{operation(names)}</w:operation>'
        for one, names in bound.items()
    )
    return wsdl(
        f'<w:types><x:schema targetNamespace="urn:w">{elements}</x:schema></w:types>{messages}'
        f'<w:portType name="P">{ports}</w:portType><w:binding name="B" type="t:P">'
        f'<s:binding transport="http://schemas.xmlsoap.org/soap/jms"/>{bindings}</w:binding>'
    )


NAMED = {one: f'name="in{one}"|name="out{one}"' for one in LOOKUPS}
BACKWARDS = dict(reversed(NAMED.items()))


@pytest.mark.obligation("GEN1")
@pytest.mark.parametrize(
    ("port", "bound"),
    [
        (NAMED, BACKWARDS),
        (NAMED, {one: names.partition("|")[0] for one, names in BACKWARDS.items()}),
        (NAMED, {one: f"|{names.partition('|')[2]}" for one, names in BACKWARDS.items()}),
        ({**NAMED, "Id": "|"}, {**BACKWARDS, "Id": 'name="lookupRequest"|name="lookupResponse"'}),
        ({**NAMED, "Id": 'name="lookupRequest"|name="lookupResponse"'}, {**BACKWARDS, "Id": "|"}),
        (
            {one: f'name="any"|name="out{one}"' for one in LOOKUPS},
            {one: f'name="any"|name="out{one}"' for one in BACKWARDS},
        ),
    ],
)
def test_overloads_have_the_soap_action_of_their_input_and_output(
    build: Callable[..., Result], port: dict[str, str], bound: dict[str, str]
) -> None:
    result = build({"a.wsdl": _lookups(wsdl, port, bound)})
    assert result.findings == ()
    found = {operation.request.local: operation.action for operation in result.services[0].operations}
    assert found == {f"by{one}": f"urn:{one}" for one in LOOKUPS}


@pytest.mark.obligation("GEN1")
@pytest.mark.parametrize("names", ["|", 'name="in"|name="out"', 'name="x"|'])
def test_overloads_that_nothing_tells_apart_are_a_finding(build: Callable[..., Result], names: str) -> None:
    result = build({"a.wsdl": _lookups(wsdl, NAMED, dict.fromkeys(BACKWARDS, names))})
    assert {finding.rule for finding in result.findings} == {"operation-overloaded"}
    assert len(result.services[0].operations) == 3


@pytest.mark.obligation("REQ1")
def test_operations_with_one_request_element_are_reported(build: Build, oracle: Any) -> None:
    tell = '<w:operation name="tell"><w:input message="t:askRequest"/><w:output message="t:askResponse"/></w:operation>'
    bound = '<w:operation name="tell"><s:operation soapAction="urn:tell"/><w:input><s:body use="literal"/></w:input>'
    bound += '<w:output><s:body use="literal"/></w:output></w:operation>'
    result = build(oracle(("</w:portType>", f"{tell}</w:portType>"), ("</w:binding>", f"{bound}</w:binding>")))
    assert [operation.name for service in result.services for operation in service.operations] == ["ask", "tell"]
    (finding,) = result.findings
    assert (finding.rule, finding.file, finding.failed) == ("operation-shared", "oracle.wsdl", False)
    assert "operations ask, tell of Oracle have one request element, {urn:m}askRequest" in finding.message
