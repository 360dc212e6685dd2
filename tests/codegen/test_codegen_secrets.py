"""Credentials stay out of the `repr` of generated classes (C55)."""

from __future__ import annotations

from pathlib import Path

from mtosi_codegen import generate

SCHEMA = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"
    targetNamespace="urn:s" elementFormDefault="qualified">
  <xs:element name="login"><xs:complexType><xs:sequence>
    <xs:element name="user" type="xs:string"/>
    <xs:element name="Password" type="xs:string"/>
    <xs:element name="security" type="xs:string" minOccurs="0"/>
    <xs:element name="securityType" type="xs:string" minOccurs="0"/>
  </xs:sequence><xs:attribute name="password" type="xs:string"/></xs:complexType></xs:element>
</xs:schema>"""


def test_credentials_are_not_in_the_repr(tmp_path: Path) -> None:
    (tmp_path / "s.xsd").write_text(SCHEMA)
    (text,) = (text for text in generate([tmp_path]).files.values() if "class Login" in text)
    lines = [line.strip() for line in text.splitlines()]
    assert "user: str" in lines
    assert "password: str = field(repr=False)" in lines
    assert "security: str | None = field(default=None, repr=False)" in lines
    assert "security_type: str | None = None" in lines
    assert sum("repr=False" in line for line in lines) == 3
