"""Kept XML where a namespace is a relative URI, which libxml2 gives no canonical form: samples declare `vendor.v1`."""

from __future__ import annotations

import pytest

from mtosi_jms.xmlbind import RawXml, parse_xml

XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
DOCUMENT = f'<a xmlns="urn:a" xmlns:v="vendor.v1" {XSI}><b xsi:type="v:T">x</b> tail<c><v:d/></c><e k="1"/></a>'


@pytest.mark.parametrize(
    ("position", "xml"),
    [
        (0, f'<b xmlns="urn:a" xmlns:v="vendor.v1" {XSI} xsi:type="v:T">x</b>'),
        (1, '<c xmlns="urn:a"><v:d xmlns:v="vendor.v1"></v:d></c>'),
        (2, '<e xmlns="urn:a" k="1"></e>'),
    ],
)
def test_the_element_is_kept_with_what_it_needs(position: int, xml: str) -> None:
    kept = RawXml.from_element(parse_xml(DOCUMENT)[position])
    assert kept.xml.decode() == xml
    assert RawXml(kept.xml) == kept
