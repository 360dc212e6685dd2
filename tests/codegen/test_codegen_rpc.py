"""Messages of types: the rpc style, parts with a type, SOAP encoding, headers; what goes over the wire and back."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lxml import etree

import mtosi_jms
from mtosi_codegen import Result
from mtosi_jms.soap import Envelope

from .conftest import rules, wsdl, xsd

Build = Callable[..., Result]

SOAP = "{http://schemas.xmlsoap.org/soap/envelope/}"
TYPES = """
<x:complexType name="Point"><x:sequence>
  <x:element name="x" type="x:int"/><x:element name="label" type="x:string" minOccurs="0"/>
</x:sequence><x:attribute name="unit" type="x:string"/></x:complexType>
<x:element name="note" type="x:string"/>
<x:element name="trouble"><x:complexType><x:sequence><x:element name="reason" type="x:string"/></x:sequence>
</x:complexType></x:element>
"""
LITERAL = 'use="literal" namespace="urn:wire"'


def _schema(body: str = TYPES, more: str = "") -> str:
    return (
        f'<w:types><x:schema targetNamespace="urn:t" elementFormDefault="qualified" {more}>{body}</x:schema></w:types>'
    )


def _message(name: str, **parts: str) -> str:
    written = (
        f'<w:part name="{part}" {"element" if what.startswith("!") else "type"}="{what.lstrip("!")}"/>'
        for part, what in parts.items()
    )
    return f'<w:message name="{name}">{"".join(written)}</w:message>'


def _bound(request: str = LITERAL, response: str = LITERAL, *, operation: str = "move", style: str = "rpc") -> str:
    inner = f"<w:input>{request if request.startswith('<') else f'<s:body {request}/>'}</w:input>"
    outer = f"<w:output>{response if response.startswith('<') else f'<s:body {response}/>'}</w:output>"
    return (
        f'<w:binding name="Plotter" type="t:Plotter"><s:binding style="{style}" '
        'transport="http://schemas.xmlsoap.org/soap/jms"/>'
        f'<w:operation name="{operation}"><s:operation soapAction="urn:move"/>{inner}{outer if response else ""}'
        "</w:operation></w:binding>"
        '<w:service name="Plotter"><w:port name="p" binding="t:Plotter"><s:address location="jms:x"/></w:port>'
        "</w:service>"
    )


PORT = """<w:portType name="Plotter"><w:operation name="move"><w:input message="t:moveIn"/>
<w:output message="t:moveOut"/></w:operation></w:portType>"""
MESSAGES = _message("moveIn", to="t:Point", times="x:int") + _message("moveOut", at="t:Point")


@pytest.fixture
def plotter() -> Callable[..., dict[str, str]]:
    """The sources of a service that moves a pen."""

    def make(messages: str = MESSAGES, port: str = PORT, bound: str = "", types: str = "") -> dict[str, str]:
        return {"plotter.wsdl": wsdl((types or _schema()) + messages + port + (bound or _bound()), "urn:t")}

    return make


@pytest.fixture
def made(build: Build, package: Callable[[Result], str]) -> Callable[..., SimpleNamespace]:
    """Generates, imports, and hands out the modules by namespace."""

    def make(files: dict[str, str], **options: Any) -> SimpleNamespace:
        result = build(files, **options)
        name = package(result)
        importlib.import_module(name)
        spaces = {module.namespace: importlib.import_module(f"{name}.{module.path}") for module in result.model.modules}
        services = [importlib.import_module(f"{name}.{service.module}") for service in result.model.services]
        return SimpleNamespace(result=result, spaces=spaces, services=services)

    return make


def _body(obj: Any) -> etree._Element:
    (child,) = etree.fromstring(Envelope(body=obj).to_bytes()).iterfind(f"{SOAP}Body/*")
    return child


def _shape(element: etree._Element) -> tuple[Any, ...]:
    """Names, texts and attributes of an element, however its prefixes are spelt."""
    return element.tag, (element.text or "").strip(), dict(element.attrib), [_shape(child) for child in element]


def test_a_wrapper_of_the_operations_name_with_accessors_without_namespace(made: Any, plotter: Any) -> None:
    found = made(plotter())
    assert found.result.findings == ()
    wire, types = found.spaces["urn:wire"], found.spaces["urn:t"]
    request = _body(wire.Move(to=types.Point(x=3, unit="mm"), times=2))
    assert [child.tag for child in request] == ["to", "times"]
    assert (request.tag, request[0][0].tag, request[0].get("unit")) == ("{urn:wire}move", "{urn:t}x", "mm")
    assert _body(wire.MoveResponse(at=types.Point(x=1))).tag == "{urn:wire}moveResponse"


@pytest.mark.obligation("001-S2")
def test_a_call_in_the_rpc_style_goes_there_and_back(made: Any, plotter: Any) -> None:
    found = made(plotter())
    (service,), types = found.services, found.spaces["urn:t"]

    class Pen(service.Plotter.Supplier):  # type: ignore[misc]
        def move(self, request: Any, context: Any) -> Any:
            return found.spaces["urn:wire"].MoveResponse(at=types.Point(x=request.to.x * request.times, label="here"))

    with (
        mtosi_jms.connect("memory:rpc") as connection,
        mtosi_jms.Supplier(connection, "queue:PEN", [Pen()]).start(),
        mtosi_jms.Requestor(connection, sender_uri="queue:ME") as requestor,
    ):
        answer = service.Plotter(requestor, "queue:PEN").move(to=types.Point(x=21), times=2, timeout=20)
    assert (answer.at.x, answer.at.label) == (42, "here")


def _zeep(tmp_path: Path, files: dict[str, str]) -> Any:
    zeep = pytest.importorskip("zeep")
    path = tmp_path / "for_zeep.wsdl"
    path.write_text(files["plotter.wsdl"].replace("soap/jms", "soap/http"))
    return zeep.Client(str(path))


@pytest.mark.parametrize("style", ["rpc", "document"])
def test_the_wire_looks_as_zeep_writes_it(made: Any, plotter: Any, tmp_path: Path, style: str) -> None:
    messages = MESSAGES if style == "rpc" else _message("moveIn", to="t:Point") + _message("moveOut", at="t:Point")
    files = plotter(messages, bound=_bound(style=style))
    found = made(files)
    point = {"x": 3, "label": "pen", "unit": "mm"}
    given = {"to": point, "times": 2} if style == "rpc" else point
    client = _zeep(tmp_path, files)
    envelope = client.create_message(client.service, "move", **given)
    (theirs,) = envelope.iterfind(f"{SOAP}Body/*")
    types = found.spaces["urn:t"]
    if style == "rpc":
        ours = found.spaces["urn:wire"].Move(to=types.Point(**point), times=2)
    else:
        ours = found.spaces[""].To(**point)
    assert _shape(_body(ours)) == _shape(theirs)


def test_zeep_reads_the_answer(made: Any, plotter: Any, tmp_path: Path) -> None:
    files = plotter()
    found = made(files)
    client = _zeep(tmp_path, files)
    answer = Envelope(body=found.spaces["urn:wire"].MoveResponse(at=found.spaces["urn:t"].Point(x=7, unit="mm")))
    (binding,) = client.wsdl.bindings.values()
    reply = binding.get("move").process_reply(etree.fromstring(answer.to_bytes()))
    assert (reply.x, reply.label, reply.unit) == (7, None, "mm")


def _fields(found: SimpleNamespace) -> list[str]:
    """The fields of the request `move`, as its descriptor has them."""
    return [field.name for field in found.spaces["urn:wire"].Move.__xml__.fields]


def _requests(result: Result) -> list[tuple[str, str]]:
    return [tuple(operation.request) for service in result.services for operation in service.operations]


@pytest.mark.obligation("001-S2")
def test_the_operation_overrides_the_style_of_its_binding(build: Build, plotter: Any) -> None:
    bound = _bound(style="document").replace("<s:operation", '<s:operation style="rpc"')
    result = build(plotter(bound=bound))
    assert _requests(result) == [("urn:wire", "move")]
    assert result.findings == ()


def test_without_a_namespace_that_of_the_wsdl_counts(build: Build, plotter: Any) -> None:
    result = build(plotter(bound=_bound(request='use="literal"')))
    assert _requests(result) == [("urn:t", "move")]
    assert rules(result) == ["binding-style"]
    assert "no namespace" in result.findings[0].message


def test_only_the_parts_that_the_body_names(made: Any, plotter: Any) -> None:
    found = made(plotter(bound=_bound(request=f'parts="to" {LITERAL}')))
    assert _fields(found) == ["to"]
    assert found.result.findings == ()


def test_header_parts_are_no_parameters_and_get_an_element(made: Any, plotter: Any) -> None:
    header = (
        '<s:header message="t:moveIn" part="times" use="literal" namespace="urn:head">'
        '<s:headerfault message="t:other" part="why" use="literal"/></s:header>'
    )
    found = made(
        plotter(MESSAGES + _message("other", why="!t:trouble"), bound=_bound(request=f"{header}<s:body {LITERAL}/>"))
    )
    assert _fields(found) == ["to"]
    assert found.spaces["urn:head"].Times(value=3).value == 3
    assert found.result.findings == ()


def test_a_header_part_that_is_not_there(build: Build, plotter: Any) -> None:
    header = '<s:header message="t:moveIn" part="wrong" use="literal"/>'
    (finding,) = build(plotter(bound=_bound(request=f"{header}<s:body {LITERAL}/>"))).findings
    assert finding.rule == "message-part"
    assert "'wrong'" in finding.message
    assert not finding.failed


@pytest.mark.parametrize(("about", "told"), [("!t:note", []), ("t:note", ["message-part"])])
def test_an_element_in_an_rpc_message_stands_in_the_wrapper(
    made: Any, plotter: Any, about: str, told: list[str]
) -> None:
    """Also one that is named where a type should be."""
    found = made(plotter(_message("moveIn", about=about) + _message("moveOut", at="t:Point")))
    assert rules(found.result) == ["binding-style", *told]
    assert [child.tag for child in _body(found.spaces["urn:wire"].Move(note="x"))] == ["{urn:t}note"]


def test_one_way_without_parts(made: Any, plotter: Any) -> None:
    port = (
        '<w:portType name="Plotter"><w:operation name="move"><w:input message="t:moveIn"/></w:operation></w:portType>'
    )
    found = made(plotter(_message("moveIn"), port, bound=_bound(response="")))
    (operation,) = found.result.services[0].operations
    assert (operation.mep, _body(found.spaces["urn:wire"].Move()).tag) == ("one-way", "{urn:wire}move")
    assert found.result.findings == ()


def test_faults_with_a_type(made: Any, plotter: Any) -> None:
    port = PORT.replace("</w:operation>", '<w:fault name="f" message="t:broken"/></w:operation>')
    found = made(plotter(MESSAGES + _message("broken", why="t:Point"), port))
    assert found.result.findings == ()
    assert found.result.services[0].operations[0].fault == ("", "why")
    assert found.spaces[""].WhyFault.__detail__ is found.spaces[""].Why


@pytest.mark.obligation("001-S5")
@pytest.mark.parametrize(("first", "second"), [("<w:output", ""), ("<w:output", "<w:input")])
def test_a_service_that_speaks_first(build: Build, plotter: Any, first: str, second: str) -> None:
    children = f'{first} message="t:moveOut"/>' + (f'{second} message="t:moveIn"/>' if second else "")
    port = f'<w:portType name="Plotter"><w:operation name="move">{children}</w:operation></w:portType>'
    result = build(plotter(port=port))
    assert (rules(result), result.failed) == (["operation-reversed"], False)
    assert result.services[0].uncalled == ["move"]
    assert "Point" in {cls.name for cls in result.model.classes}


@pytest.mark.obligation("001-S3")
def test_soap_12(made: Any, plotter: Any) -> None:
    files = {name: text.replace("wsdl/soap/", "wsdl/soap12/") for name, text in plotter().items()}
    found = made(files)
    assert found.result.findings == ()
    assert _requests(found.result) == [("urn:wire", "move")]


def test_two_bindings_of_one_port_type_share_their_messages(made: Any, plotter: Any) -> None:
    second = _bound().partition("<w:service")[0].replace('name="Plotter" type', 'name="PlotterAgain" type')
    found = made(plotter(bound=_bound() + second))
    assert [service.name for service in found.result.services] == ["Plotter", "PlotterAgain"]
    assert [cls.xml.local for cls in found.result.model.classes if cls.namespace == "urn:wire"] == [
        "move",
        "moveResponse",
    ]


def test_another_element_of_the_wrappers_name(build: Build, plotter: Any) -> None:
    port = PORT.replace("</w:portType>", "") + (
        '<w:operation name="stop"><w:input message="t:moveIn"/></w:operation></w:portType>'
    )
    types = _schema(TYPES + '<x:element name="move" type="x:int"/>')
    bound = _bound(request='use="literal" namespace="urn:t"').replace(
        "</w:binding>",
        f'<w:operation name="stop"><s:operation/><w:input><s:body {LITERAL}/></w:input></w:operation></w:binding>',
    )
    result = build(plotter(port=port, types=types, bound=bound))
    assert (result.failed, _requests(result)) == (False, [("urn:t", "move"), ("urn:wire", "stop")])
    assert "another of that name" in result.findings[-1].message
    (cls,) = (cls for cls in result.model.classes if cls.xml == ("urn:t", "move"))
    assert cls.mixed


def test_parts_of_one_name_and_two_types_keep_their_content_as_xml(made: Any, plotter: Any) -> None:
    files = plotter(_message("moveIn", p="t:Point") + _message("moveOut", p="x:int"), bound=_bound(style="document"))
    found = made(files)
    assert rules(found.result) == ["message-part"] * 3
    assert _body(found.spaces[""].P(content=["7"])).text == "7"


# The SOAP encoding

ENCODED = 'use="encoded" namespace="urn:wire" encodingStyle="http://schemas.xmlsoap.org/soap/encoding/"'
ARRAY = """<x:complexType name="Path"><x:complexContent><x:restriction base="e:Array">
<x:attribute ref="e:arrayType" w:arrayType="{item}"/></x:restriction></x:complexContent></x:complexType>"""
IMPORT = '<x:import namespace="http://schemas.xmlsoap.org/soap/encoding/"/>'
NAMES = 'xmlns:e="http://schemas.xmlsoap.org/soap/encoding/" xmlns:w="http://schemas.xmlsoap.org/wsdl/"'


@pytest.mark.obligation("001-S2")
def test_encoded_messages_are_generated_and_said_to_be(made: Any, plotter: Any) -> None:
    messages = _message("moveIn", along="t:Path", title="e:string") + _message("moveOut", at="t:Path")
    types = _schema(IMPORT + TYPES + ARRAY.format(item="t:Point[]"), NAMES)
    messages = messages.replace('type="e:', f'{NAMES} type="e:')
    found = made(plotter(messages, types=types, bound=_bound(ENCODED, ENCODED)))
    assert rules(found.result) == ["binding-style"]
    assert "SOAP encoding" in found.result.findings[0].message
    types_, wire = found.spaces["urn:t"], found.spaces["urn:wire"]
    body = _body(wire.Move(along=types_.Path(item=[types_.Point(x=1), types_.Point(x=2)]), title="zigzag"))
    assert [child.tag for child in body] == ["along", "title"]
    assert [item.tag for item in body[0]] == ["item", "item"]


@pytest.mark.parametrize(
    ("item", "content", "field", "reported"),
    [
        ("x:string[3]", "", "item: list[str]", 0),
        ("x:string[,]", "", "item: list[_x.RawXml]", 1),
        ("x:int[]", '<x:sequence><x:element name="step" type="x:int" maxOccurs="unbounded"/></x:sequence>', "step", 0),
    ],
)
def test_arrays_are_lists(build: Build, item: str, content: str, field: str, reported: int) -> None:
    text = ARRAY.format(item=item).replace("<x:attribute", f"{content}<x:attribute", 1)
    result = build(xsd(IMPORT + text, more=NAMES))
    assert field in result.files["urn_t/types.py"]
    assert [finding.rule for finding in result.findings] == ["xsd-unsupported"] * reported
