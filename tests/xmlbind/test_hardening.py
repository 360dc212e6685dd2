"""Hostile and broken documents: always an `MtosiError` of the right class with the line, and nothing is fetched."""

from __future__ import annotations

import gzip
import io
import socketserver
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mtosi_jms import soap, xmlbind
from mtosi_jms.compression import ZSTD
from mtosi_jms.errors import ConfigError, EnvelopeError, ForbiddenXmlError, MalformedXmlError, XmlError
from mtosi_jms.stubs.fmw.hdr import Header
from mtosi_jms.xmlbind import XmlLimits

from .conftest import doc

ENVELOPE = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b'<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns:h="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1">\n'
    b"<s:Header><h:header><h:activityName>get</h:activityName><h:msgType>REQUEST</h:msgType></h:header></s:Header>\n"
    b'<s:Body><v:x xmlns:v="urn:v" a="&lt;">&#233;<![CDATA[<]]></v:x></s:Body></s:Envelope>'
)
READERS: dict[str, Callable[[bytes], Any]] = {
    "parse_xml": xmlbind.parse_xml,
    "decode": xmlbind.decode,
    "soap": soap.parse,
    "iter_decode": lambda data: list(xmlbind.iter_decode(data, Header)),
    "iter_decode-file": lambda data: list(xmlbind.iter_decode(io.BytesIO(data), Header)),
}
readers = pytest.mark.parametrize("reader", READERS.values(), ids=READERS)

LONG_PROLOG = b"<!-- " + b"x" * 70_000 + b" -->\n"
DTD = b"<!DOCTYPE a [<!ENTITY e 'x'>]>"
LAUGHS = (
    "<!DOCTYPE a [<!ENTITY l0 'lol'>"
    + "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, 10))
    + "]><a>&l9;</a>"
).encode()
FORBIDDEN = {
    "dtd": DTD + b"<a/>",
    "dtd-after-declaration": b'<?xml version="1.0"?>\n' + DTD + b"<a/>",
    "dtd-after-comments": b"<!-- <a> --><?p <!-- ?>\n<!-- -->" + DTD + b"<a/>",
    "dtd-after-a-long-prolog": LONG_PROLOG + DTD + b"<a>&e;</a>",
    "dtd-with-entity-in-attribute": LONG_PROLOG + DTD + b"<a b='&e;'/>",
    "dtd-empty": b"<!DOCTYPE a><a/>",
    "dtd-utf-16": ("<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>").encode("utf-16"),
    "dtd-utf-16-no-mark": ("<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>").encode("utf-16-le"),
    "dtd-utf-16-long-prolog": (LONG_PROLOG + DTD + b"<a>&e;</a>").decode().encode("utf-16"),
    "dtd-byte-order-mark": b"\xef\xbb\xbf" + DTD + b"<a/>",
    "billion-laughs": LAUGHS,
    "billion-laughs-after-a-long-prolog": LONG_PROLOG + LAUGHS,
    "quadratic": b"<!DOCTYPE a [<!ENTITY e '" + b"x" * 50_000 + b"'>]><a>" + b"&e;" * 50_000 + b"</a>",
    "external-entity": b"<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>",
    "external-dtd": b"<!DOCTYPE a SYSTEM 'http://127.0.0.1:9/a.dtd'><a/>",
    "parameter-entity": b"<!DOCTYPE a [<!ENTITY % p SYSTEM 'http://127.0.0.1:9/p'> %p;]><a/>",
    "deep": b"<a>" * 10_000 + b"</a>" * 10_000,
    "deep-just": b"<a>" * 201 + b"</a>" * 201,
    "long-text": b"<a>" + b"x" * 20_000_000 + b"</a>",
    "long-attribute": b"<a b='" + b"x" * 20_000_000 + b"'/>",
    "long-cdata": b"<a><![CDATA[" + b"x" * 20_000_000 + b"]]></a>",
    "long-name": b"<" + b"x" * 100_000 + b"/>",
}


@pytest.mark.obligation("SEC14", "SEC15")
@readers
@pytest.mark.parametrize("name", FORBIDDEN)
def test_forbidden(name: str, reader: Callable[[bytes], Any]) -> None:
    with pytest.raises(ForbiddenXmlError) as caught:
        reader(FORBIDDEN[name])
    assert caught.value.line is not None
    assert len(str(caught.value)) < 500


MALFORMED = {
    "empty": b"",
    "blanks": b" \n\t ",
    "byte-order-mark": b"\xef\xbb\xbf",
    "text": b"hello",
    "no-end": b"<a>",
    "two-roots": b"<a/><b/>",
    "text-after": b"<a/>x",
    "crossed": b"<a><b></a></b>",
    "blank-before-declaration": b' <?xml version="1.0"?><a/>',
    "undeclared-prefix": b"<p:a/>",
    "undeclared-attribute-prefix": b"<a p:b='1'/>",
    "undefined-entity": b"<a>&nbsp;</a>",
    "repeated-attribute": b"<a b='1' b='2'/>",
    "bare-ampersand": b"<a>&</a>",
    "control-character": b"<a>\x01</a>",
    "control-reference": b"<a>&#1;</a>",
    "surrogate-reference": b"<a>&#xD800;</a>",
    "nul": b"<a>\0</a>",
    "nul-first": b"\0<a/>",
    "invalid-utf-8": b"<a>\xff\xfe</a>",
    "cut-utf-8": b"<a>\xc3</a>",
    "overlong-utf-8": b"<a>\xc0\xbc</a>",
    "wrong-encoding": b'<?xml version="1.0" encoding="UTF-16"?><a/>' + b" " * 100,
    "unknown-encoding": b'<?xml version="1.0" encoding="no-such"?><a/>',
    "odd-utf-16": "<a/>".encode("utf-16") + b"\0",
    "cut-declaration": b'<?xml version="1.0"',
    "cut-comment": b"<a><!-- ",
    "cut-cdata": b"<a><![CDATA[ ",
    "xml-2": b'<?xml version="2.0" encoding="UTF-8"?><a>',
    "html": b"<html><br></html>",
}


@readers
@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(name: str, reader: Callable[[bytes], Any]) -> None:
    with pytest.raises(MalformedXmlError) as caught:
        reader(MALFORMED[name])
    assert caught.value.line is not None


@readers
def test_utf_7_hides_nothing(reader: Callable[[bytes], Any]) -> None:
    declaration = b"<?xml version='1.0' encoding='UTF-7'?>"
    for hidden in (
        b"+ADwAIQ-DOCTYPE a +AFs- +ADwAIQ-ENTITY e 'x'+AD4- +AF0APg-<a>+ACY-e;</a>",
        b"+ADwAIQ-DOCTYPE a SYSTEM 'file:///etc/passwd'+AD4-<a/>",
        b"+ADwAIQ-DOCTYPE a+AD4-<a/>",
    ):
        with pytest.raises(XmlError) as caught:
            reader(declaration + hidden)
        assert "passwd" not in str(caught.value)
    _ours(lambda: reader(declaration + b"+ADw-a/+AD4-"))


def _ours(act: Callable[[], Any]) -> Any:
    """The result, or None where there is an error of the documents' kind; any other error is one of the test."""
    try:
        return act()
    except XmlError:
        return None


@readers
def test_truncated_at_every_byte(reader: Callable[[bytes], Any]) -> None:
    for end in range(len(ENVELOPE)):
        with pytest.raises(MalformedXmlError) as caught:
            reader(ENVELOPE[:end])
        assert caught.value.line is not None, end


class _Witness(BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_error(404)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def witness() -> Iterator[tuple[str, list[str]]]:
    """A web server, and what it was asked for."""
    asked: list[str] = []
    handler = type("Handler", (_Witness,), {"asked": asked})
    with socketserver.TCPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()
        thread.join()


@pytest.mark.obligation("SEC14")
@readers
def test_nothing_is_fetched(
    reader: Callable[[bytes], Any], witness: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, asked = witness
    secret = tmp_path / "secret.txt"
    secret.write_text("hunter2")
    for prolog in (b"", LONG_PROLOG):
        for dtd in (
            f"<!DOCTYPE a SYSTEM '{url}/dtd'>",
            f"<!DOCTYPE a [<!ENTITY e SYSTEM '{url}/entity'>]>",
            f"<!DOCTYPE a [<!ENTITY % p SYSTEM '{url}/parameter'> %p;]>",
            f"<!DOCTYPE a [<!ENTITY e SYSTEM '{secret.as_uri()}'>]>",
            f"<!DOCTYPE a PUBLIC '-//x' '{secret.as_uri()}'>",
        ):
            with pytest.raises(ForbiddenXmlError) as caught:
                reader(prolog + dtd.encode() + b"<a>&e;</a>")
            assert "hunter2" not in str(caught.value)
        included = f'{prolog.decode()}<a xmlns:i="http://www.w3.org/2001/XInclude"><i:include href="{url}/x"/></a>'
        sheet = f"<?xml-stylesheet href='{url}/s'?><a xmlns:s='s' s:schemaLocation='s {url}/l'/>"
        for document in (included, sheet):
            try:
                reader(document.encode())
            except EnvelopeError:
                continue
    assert asked == []


@pytest.mark.obligation("SEC15")
def test_limits_are_the_callers() -> None:
    small = XmlLimits(max_bytes=20)
    with pytest.raises(ForbiddenXmlError, match="larger than 20 bytes"):
        xmlbind.parse_xml(b"<a>" + b"x" * 20 + b"</a>", limits=small, source="f.xml")
    assert xmlbind.parse_xml(b"<a/>", limits=small).tag == "a"
    shallow = XmlLimits(max_depth=3)
    for reader in (xmlbind.parse_xml, xmlbind.decode):
        with pytest.raises(ForbiddenXmlError, match="nested deeper than 3 elements") as caught:
            reader(b"<a><a><a>\n<a/></a></a></a>", limits=shallow)
        assert caught.value.line == 2
    with pytest.raises(ForbiddenXmlError, match="nested deeper than 3 elements") as caught:
        list(xmlbind.iter_decode(b"<a><a><a>\n<a/></a></a></a>", Header, limits=shallow))
    assert caught.value.line == 2
    huge = XmlLimits(huge=True, max_depth=2_000)
    assert len(xmlbind.parse_xml(b"<a>" + b"x" * 20_000_000 + b"</a>", limits=huge).text or "") == 20_000_000
    for reader in (xmlbind.parse_xml, lambda data, limits: list(xmlbind.iter_decode(data, Header, limits=limits))):
        assert reader(b"<a>" * 1_000 + b"</a>" * 1_000, limits=huge) is not None
        with pytest.raises(ForbiddenXmlError, match="deeper than 2000"):
            reader(b"<a>" * 2_001 + b"</a>" * 2_001, limits=huge)


def test_lines_and_sources() -> None:
    with pytest.raises(MalformedXmlError) as caught:
        xmlbind.parse_xml(b"<a>\n\n<b></a>", source="in.xml")
    assert (caught.value.line, caught.value.source) == (3, "in.xml")
    assert str(caught.value).startswith("in.xml:3: ")
    with pytest.raises(ForbiddenXmlError) as caught_too:
        xmlbind.parse_xml(b"<!--\n\n-->\n<!DOCTYPE a><a/>")
    assert caught_too.value.line == 4
    deep = xmlbind.parse_xml(b"<a>" + b"\n<b/>" * 70_000 + b"</a>")
    assert deep[69_999].sourceline == 70_001


def test_text_is_taken_as_it_is() -> None:
    assert xmlbind.parse_xml('<?xml version="1.0" encoding="UTF-16"?>\n<a>é</a>').text == "é"
    assert xmlbind.parse_xml("\ufeff<?xml version='1.0'?>\n<a/>").sourceline == 2
    assert xmlbind.parse_xml("\ufeff<a/>").tag == "a"
    assert xmlbind.parse_xml("<?xml-stylesheet href='x'?><a/>").tag == "a"
    for text in ("", "  ", " <?xml version='1.0'?><a/>", "<a>\ud800</a>", "<?xml version='1.0'?>"):
        with pytest.raises(MalformedXmlError):
            xmlbind.parse_xml(text)


def test_what_holds_bytes_is_bytes() -> None:
    assert xmlbind.parse_xml(bytearray(b"<a/>")).tag == "a"  # type: ignore[arg-type]
    assert xmlbind.parse_xml(memoryview(b"<a/>")).tag == "a"  # type: ignore[arg-type]
    for wrong in (5, None, Path("a.xml"), [60, 97, 47, 62]):
        with pytest.raises(ConfigError, match="bytes or text"):
            xmlbind.decode(wrong)  # type: ignore[call-overload]


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    file.write_bytes(b"<a><b>")
    with pytest.raises(MalformedXmlError) as caught:
        xmlbind.read_xml(file)
    assert caught.value.source == str(file)
    with pytest.raises(FileNotFoundError):
        xmlbind.read_xml(tmp_path / "none.xml")


@pytest.mark.parametrize("compress", [gzip.compress, import_module(ZSTD).compress])
def test_damaged_compressed_files(compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    whole = compress(ENVELOPE)
    damages = [whole[:-1], whole[:30], whole[:-9] + b"\0" * 9, whole[:4] + b"x" * 50, b"",
               whole[:20] + b"\xff" * 10 + whole[30:]]  # fmt: skip
    for number, data in enumerate(damages):
        file = tmp_path / f"{number}.xml.packed"
        file.write_bytes(data)
        with pytest.raises(MalformedXmlError) as caught:
            list(xmlbind.iter_decode(file, Header))
        assert caught.value.source == str(file), number


def test_known_elements_inside_each_other_up_to_the_limit(package: str) -> None:
    for depth, attribute in ((198, ""), (198, " style='s'"), (66, " style='s'")):
        xml = f"<c:paragraph{attribute}>" * depth + "x" + "</c:paragraph>" * depth
        value = _ours(lambda xml=xml: xmlbind.decode(doc(xml)))  # type: ignore[misc]
        assert value is None or len(xmlbind.encode(value)) > 1_000


@pytest.mark.endurance  # more than a gigabyte of memory
def test_more_elements_than_libxml2_can_look_at() -> None:
    with pytest.raises(ForbiddenXmlError, match="ten million elements"):
        xmlbind.parse_xml(b"<a>" + b"<b/>" * 10_000_001 + b"</a>", limits=XmlLimits(max_nodes=20_000_000))


# Documents with very many elements or attributes, and elements with many attributes: refused before they cost much.

MANY = 100
CROWDS = {
    "elements": "<b/>" * 99,
    "elements with texts": "<b>=</b>" * 99,
    "deep": "<c>" * 99 + "</c>" * 99,
    "attributes": '<b x="1"/>' * 49 + "<b/>",
    "attributes with signs": "<b x='=>='/>" * 49 + "<b/>",
    "declarations": '<b xmlns:x="urn:x"/>' * 49 + "<b/>",
    "comments": "<!-- <b/> = -->" * 200 + "<b/>" * 99,
    "sections": "<![CDATA[<b x='1'/>]]>" * 200 + "<b/>" * 99,
    "instructions": "<?b x='1'?>" * 200 + "<b/>" * 99,
    "signs": "=" * 1000 + "<b/>" * 99,
}
"""Contents of a root, which make a hundred elements and attributes with it."""
ENCODINGS = ("utf-8", "utf-16", "iso-8859-1")


def whole(content: str, encoding: str = "utf-8") -> bytes:
    declared = "" if encoding == "utf-16" else f'<?xml version="1.0" encoding="{encoding}"?>'
    return f"{declared}<a>\n{content}</a>".encode(encoding)


def crowd(number: int) -> bytes:
    return b"<a>\n<b " + b" ".join(b'x%d="1"' % index for index in range(number)) + b"/></a>"


def test_an_element_with_too_many_attributes_is_refused_with_its_line() -> None:
    with pytest.raises(ForbiddenXmlError, match="more than 1000 attributes in one element") as caught:
        xmlbind.parse_xml(crowd(40_000), source="crowd.xml")
    assert (caught.value.source, caught.value.line) == ("crowd.xml", 2)


def test_as_many_as_allowed_are_read() -> None:
    assert len(xmlbind.parse_xml(crowd(1000))[0].keys()) == 1000
    assert len(xmlbind.parse_xml(crowd(5), limits=XmlLimits(max_attributes=5))[0].keys()) == 5


def test_many_attributes_on_many_elements_are_no_crowd() -> None:
    assert len(xmlbind.parse_xml(b"<a>" + b'<b x="1"/>' * 5000 + b"</a>")) == 5000


@pytest.mark.obligation("SEC13")
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("kind", CROWDS)
def test_a_document_may_have_so_many_elements_and_attributes_and_no_more(kind: str, encoding: str) -> None:
    content = CROWDS[kind]
    assert xmlbind.parse_xml(whole(content, encoding), limits=XmlLimits(max_nodes=MANY)).tag == "a"
    with pytest.raises(ForbiddenXmlError, match="more than 100 elements and attributes") as caught:
        xmlbind.parse_xml(
            whole(content + "\n<b/>" + " " * 400, encoding), source="crowd.xml", limits=XmlLimits(max_nodes=MANY)
        )
    assert (caught.value.source, caught.value.line) == ("crowd.xml", 3)


@pytest.mark.parametrize("kind", CROWDS)
def test_both_cores_count_alike(kind: str, package: str, cores: ModuleType) -> None:
    data = doc(f"<c:store v:a='1'><c:label>a</c:label>{CROWDS[kind]}</c:store>{' ' * 400}")
    many = MANY + 4  # the root's attribute and declarations, and the label
    assert cores.outcome("python", data, limits=XmlLimits(max_nodes=many))[0] == "value"
    assert cores.outcome("python", data, limits=XmlLimits(max_nodes=many - 1))[0] == "error"
    for most in (many - 1, many):
        assert cores.difference(data, limits=XmlLimits(max_nodes=most)) == ""


def test_what_cannot_be_counted_is_refused() -> None:
    limits = XmlLimits(max_nodes=MANY)
    with pytest.raises(ForbiddenXmlError, match=r"crowd.xml:2"):
        xmlbind.parse_xml(whole("<b/>" * 50 + "=" * 400 + "<b"), source="crowd.xml", limits=limits)
    ebcdic = f"<?xml version='1.0'?><a/>{' ' * 400}".encode("cp037")
    for unknown in (ebcdic, whole(" " * 400).replace(b"utf-8", b"utf-7")):
        with pytest.raises(ForbiddenXmlError, match="in which elements cannot be counted"):
            xmlbind.parse_xml(unknown, limits=limits)


def test_envelopes_are_bounded_too() -> None:
    body = f"<b xmlns='urn:b'>{CROWDS['elements']}</b>"
    envelope = f'<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>{body}</e:Body></e:Envelope>'
    assert soap.parse(envelope, limits=XmlLimits(max_nodes=104), needs_header=False).body is not None
    with pytest.raises(ForbiddenXmlError, match="more than 103"):
        soap.parse(envelope, limits=XmlLimits(max_nodes=103), needs_header=False)


@pytest.mark.parametrize("core", ["native", "python"])
@pytest.mark.parametrize("read", [xmlbind.iter_decode, xmlbind.iter_placed])
def test_a_stream_bounds_each_object_and_not_their_number(
    core: str, read: Callable[..., Iterator[object]], c: ModuleType, cores: ModuleType
) -> None:
    small, limits = "<c:box unit='m'/>", XmlLimits(max_nodes=MANY)
    large = "<c:box>" + "<v:a/>" * MANY + "</c:box>"
    with cores.core(core):
        assert len(list(read(doc(f"<c:store>{small * 500}</c:store>"), c.BoxType, limits=limits))) == 500
        found = read(doc(f"<c:store>{small * 5}{large}</c:store>"), c.BoxType, limits=limits)
        assert len([next(found) for _ in range(5)]) == 5
        with pytest.raises(ForbiddenXmlError, match="more than 100 elements and attributes"):
            next(found)
