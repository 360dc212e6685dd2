"""What zeep is given to read: WSDLs of other styles, with defects, and files that are none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from mtosi_jms.errors import SchemaError
from mtosi_jms.integrations.zeep import client, read_wsdl
from mtosi_jms.soap import parse
from mtosi_jms.testing import Pair

Paired = Callable[..., Pair]

W3C_JMS = "http://www.w3.org/2010/soapjms/"
MTOSI_JMS = "http://schemas.xmlsoap.org/soap/jms"
HTTP = "http://schemas.xmlsoap.org/soap/http"


def definitions(*, transport: str = W3C_JMS, version: str = "", style: str = "document", parts: str = "element") -> str:
    """A WSDL of one service with one operation, `order`, whose answer is `ordered`."""
    soap = f"http://schemas.xmlsoap.org/wsdl/soap{version}/"
    element = parts == "element"
    return f"""<wsdl:definitions xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/" xmlns:soap="{soap}" xmlns:t="urn:shop"
     xmlns:x="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:shop">
    <wsdl:types><x:schema targetNamespace="urn:shop" elementFormDefault="qualified">
     <x:element name="order"><x:complexType><x:sequence><x:element name="part" type="x:string"/>
      <x:element name="count" type="x:int"/></x:sequence></x:complexType></x:element>
     <x:element name="ordered"><x:complexType><x:sequence><x:element name="number" type="x:int"/></x:sequence>
      </x:complexType></x:element></x:schema></wsdl:types>
    <wsdl:message name="in">{
        '<wsdl:part name="body" element="t:order"/>'
        if element
        else '<wsdl:part name="part" type="x:string"/><wsdl:part name="count" type="x:int"/>'
    }</wsdl:message>
    <wsdl:message name="out">{
        '<wsdl:part name="body" element="t:ordered"/>' if element else '<wsdl:part name="number" type="x:int"/>'
    }</wsdl:message>
    <wsdl:portType name="Shop"><wsdl:operation name="order"><wsdl:input message="t:in"/>
     <wsdl:output message="t:out"/></wsdl:operation></wsdl:portType>
    <wsdl:binding name="ShopBinding" type="t:Shop"><soap:binding style="{style}" transport="{transport}"/>
     <wsdl:operation name="order"><soap:operation soapAction="urn:order"/>
      <wsdl:input><soap:body use="literal" namespace="urn:shop"/></wsdl:input>
      <wsdl:output><soap:body use="literal" namespace="urn:shop"/></wsdl:output></wsdl:operation></wsdl:binding>
    <wsdl:service name="Shop"><wsdl:port name="ShopPort" binding="t:ShopBinding">
     <soap:address location="jms:jndi:shop"/></wsdl:port></wsdl:service></wsdl:definitions>"""


def ordering(paired: Paired, wsdl: Path, answer: str) -> tuple[Any, Any]:
    """zeep's result of `order`, and the request as it came."""
    pair = paired()
    came = []

    def script(asked: Any) -> Any:
        came.append(asked.message.body)
        soap = etree.fromstring(asked.message.body).tag.removesuffix("Envelope").strip("{}")
        return [asked.reply(f'<e:Envelope xmlns:e="{soap}"><e:Body>{answer}</e:Body></e:Envelope>'.encode())]

    pair.scripted.start(script)
    result = client(wsdl, pair.requestor, pair.destination).service.order(part="wheel", count=4)
    return result, etree.fromstring(came[0])


@pytest.mark.parametrize("transport", [W3C_JMS, MTOSI_JMS, HTTP])
@pytest.mark.parametrize("version", ["", "12"])
def test_any_transport_and_version_of_soap_goes_over_jms(
    tmp_path: Path, paired: Paired, transport: str, version: str
) -> None:
    wsdl = tmp_path / "shop.wsdl"
    wsdl.write_text(definitions(transport=transport, version=version))
    answer = '<ordered xmlns="urn:shop"><number>7</number></ordered>'
    number, request = ordering(paired, wsdl, answer)
    assert number == 7
    assert request.findtext(".//{urn:shop}part") == "wheel"
    assert parse(etree.tostring(request)).version == ("1.2" if version else "1.1")


@pytest.mark.parametrize("transport", [W3C_JMS, MTOSI_JMS])
def test_the_transport_of_the_w3c_brings_its_properties(tmp_path: Path, paired: Paired, transport: str) -> None:
    wsdl = tmp_path / "shop.wsdl"
    wsdl.write_text(definitions(transport=transport, version="12"))
    pair = paired()
    shop = client(wsdl, pair.requestor, pair.destination)
    shop.batches("order", batch_size=0, part="wheel", count=4)
    properties = pair.scripted.take().message.properties
    said = [properties.get(f"SOAPJMS_{name}") for name in ("contentType", "soapAction")]
    assert said == (["application/soap+xml; charset=UTF-8", "urn:order"] if transport == W3C_JMS else [None, None])


def test_ports_may_stand_in_a_file_of_their_own(tmp_path: Path, paired: Paired) -> None:
    text = definitions()
    begin, end = text.index("<wsdl:service"), text.index("</wsdl:definitions>")
    (tmp_path / "shop.wsdl").write_text(text[:begin] + text[end:])
    head = text[: text.index("<wsdl:types>")]
    imports = '<wsdl:import namespace="urn:shop" location="shop.wsdl"/>'
    ports = tmp_path / "ports.wsdl"
    ports.write_text(head + imports + text[begin:])
    number, _ = ordering(paired, ports, '<ordered xmlns="urn:shop"><number>7</number></ordered>')
    assert number == 7


def test_a_path_may_be_text_and_relative(
    tmp_path: Path, paired: Paired, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shop.wsdl").write_text(definitions())
    monkeypatch.chdir(tmp_path)
    document = read_wsdl("shop.wsdl")
    assert document.location == str(tmp_path / "shop.wsdl")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "shop.wsdl"]


ABSTRACT = '<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" targetNamespace="urn:a"/>'
WSDL2 = '<description xmlns="http://www.w3.org/ns/wsdl" targetNamespace="urn:a"/>'
SCHEMA = '<schema xmlns="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:a"/>'


@pytest.mark.parametrize("text", ["", "no xml", "<a/>", ABSTRACT, WSDL2, SCHEMA, "<!DOCTYPE a [<!ENTITY b 'c'>]><a/>"])
def test_what_is_no_wsdl_with_a_soap_binding_is_a_typed_error(tmp_path: Path, paired: Paired, text: str) -> None:
    file = tmp_path / "a.wsdl"
    file.write_text(text)
    pair = paired()
    with pytest.raises(SchemaError) as caught:
        client(file, pair.requestor, pair.destination)
    assert caught.value.file == str(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for name in ("nothing.wsdl", "."):
        with pytest.raises(SchemaError, match="no such file"):
            read_wsdl(tmp_path / name)
    (tmp_path / "shop.wsdl").write_text(definitions())
    with pytest.raises(SchemaError, match="no such file or folder"):
        read_wsdl(tmp_path / "shop.wsdl", sources=[tmp_path / "nothing"])


def test_a_type_that_nothing_defines_takes_anything(tmp_path: Path, paired: Paired) -> None:
    wsdl = tmp_path / "shop.wsdl"
    wsdl.write_text(definitions().replace('name="part" type="x:string"', 'name="part" type="t:Part"'))
    pair = paired()
    shop = client(wsdl, pair.requestor, pair.destination)
    envelope = shop.create_message(shop.service, "order", part={"_value_1": [etree.Element("wheel")]}, count=4)
    assert envelope.find(".//{urn:shop}part/wheel") is not None


@pytest.mark.parametrize("percent", range(0, 100, 10))
def test_a_part_of_a_wsdl_is_an_error_of_ours(tmp_path: Path, percent: int) -> None:
    wsdl = tmp_path / "shop.wsdl"
    wsdl.write_text(definitions()[: len(definitions()) * percent // 100])
    with pytest.raises(SchemaError, match=r"shop\.wsdl"):
        read_wsdl(wsdl)


def test_prefixes_below_the_root_of_an_included_schema_are_kept(tmp_path: Path, paired: Paired) -> None:
    """zeep moves the content of such a schema, and lxml then drops a second prefix of one namespace."""
    types = '<x:schema targetNamespace="urn:shop"><x:include schemaLocation="shop.xsd"/></x:schema>'
    text = definitions()
    begin, end = text.index("<x:schema"), text.index("</wsdl:types>")
    (tmp_path / "shop.wsdl").write_text(text[:begin] + types + text[end:])
    (tmp_path / "shop.xsd").write_text(
        '<x:schema xmlns:x="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:shop">'
        '<x:element name="order" xmlns:a="urn:shop" type="a:Order"/>'
        '<x:element name="ordered" xmlns:b="urn:shop" type="b:Ordered"/>'
        '<x:complexType name="Order"><x:sequence><x:element name="part" type="x:string"/>'
        '<x:element name="count" type="x:int"/></x:sequence></x:complexType>'
        '<x:complexType name="Ordered"><x:sequence><x:element name="number" type="x:int"/></x:sequence>'
        "</x:complexType></x:schema>"
    )
    answer = '<s:ordered xmlns:s="urn:shop"><number>7</number></s:ordered>'
    assert ordering(paired, tmp_path / "shop.wsdl", answer)[0] == 7


def test_rpc_style_wraps_the_parts(tmp_path: Path, paired: Paired) -> None:
    wsdl = tmp_path / "shop.wsdl"
    wsdl.write_text(definitions(style="rpc", parts="type"))
    number, request = ordering(paired, wsdl, '<o:orderResponse xmlns:o="urn:shop"><number>7</number></o:orderResponse>')
    assert number == 7
    assert [one.tag for one in request.find(".//{urn:shop}order")] == ["part", "count"]


HEADERS = """<wsdl:message name="sess"><wsdl:part name="session" type="t:Session"/>
 <wsdl:part name="plain" element="t:trace"/></wsdl:message>"""
SESSION = """<x:complexType name="Session"><x:sequence><x:element name="id" type="x:string"/></x:sequence>
 </x:complexType><x:element name="trace" type="x:string"/></x:schema>"""


@pytest.mark.obligation("GEN2")
@pytest.mark.parametrize("namespace", ["urn:hdrs", ""])
@pytest.mark.parametrize("over_http", [False, True])
def test_a_header_part_with_a_type_is_in_the_namespace_of_its_header(
    tmp_path: Path, paired: Paired, namespace: str, over_http: bool
) -> None:
    said = f' namespace="{namespace}"' if namespace else ""
    blocks = "".join(
        f'<soap:header message="t:sess" part="{part}" use="literal"{said}/>' for part in ("session", "plain")
    )
    text = definitions(transport=HTTP if over_http else MTOSI_JMS).replace("</x:schema>", SESSION, 1)
    text = text.replace("<wsdl:portType", f"{HEADERS}<wsdl:portType", 1)
    for direction in ("input", "output"):
        text = text.replace(f"<wsdl:{direction}><soap:body", f"<wsdl:{direction}>{blocks}<soap:body")
    wsdl = tmp_path / "shop.wsdl"
    wsdl.write_text(text)
    pair = paired()
    caller = client(wsdl, url="http://127.0.0.1:9/") if over_http else client(wsdl, pair.requestor, pair.destination)
    session = caller.get_type("{urn:shop}Session")(id="7")
    given = {"session": session, "plain": "t"}
    tag = f"{{{namespace}}}session" if namespace else "session"
    made = caller.create_message(caller.service, "order", part="w", count=1, _soapheaders=given)
    assert [(one.tag, "".join(one.itertext())) for one in made[0] if "tmforum" not in one.tag] == [
        (tag, "7"),
        ("{urn:shop}trace", "t"),
    ]
    answer = f"<e:Header><s:session xmlns:s='{namespace}'><id xmlns='urn:shop'>8</id></s:session></e:Header>"
    answer = answer if namespace else answer.replace("s:session", "session").replace(" xmlns:s=''", "")
    body = "<e:Body><ordered xmlns='urn:shop'><number>7</number></ordered></e:Body>"
    envelope = etree.fromstring(
        f"<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'>{answer}{body}</e:Envelope>"
    )
    assert caller.operation("order").output.deserialize(envelope).header.session.id == "8"
