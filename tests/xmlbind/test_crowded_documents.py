"""Documents with very many elements or attributes, and elements with many attributes: refused before they cost much."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from mtosi_jms import soap, xmlbind
from mtosi_jms.errors import ForbiddenXmlError
from mtosi_jms.xmlbind import XmlLimits

from .conftest import doc

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
