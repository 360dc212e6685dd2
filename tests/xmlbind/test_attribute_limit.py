"""Elements with very many attributes: refused, since reading them costs the square of their number."""

from __future__ import annotations

import pytest

from mtosi_jms import xmlbind
from mtosi_jms.errors import ForbiddenXmlError
from mtosi_jms.xmlbind import XmlLimits


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
