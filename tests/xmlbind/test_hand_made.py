"""What no schema of ours brings about: elements of packages that came later, tables made by hand, damaged packages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any
from unittest.mock import ANY

import pytest
from lxml import etree

from mtosi_jms import xmlbind as x
from mtosi_jms.errors import ConfigError, EncodeError, ForbiddenXmlError
from mtosi_jms.xmlbind import RawXml, modules_of, registered_packages, resolve_class
from mtosi_jms.xmlbind._reader import without_comments

from .conftest import doc


@pytest.fixture(scope="module")
def vendor(package: str, c: ModuleType) -> Iterator[Any]:
    """A package of a vendor's, with an element for a substitution group that was generated without knowing it."""
    module = ModuleType("bindvendor.types")
    table = x.Module("bindvendor.types", "urn:test:vendor-events", prefix="ve", root=package)

    @dataclass(slots=True, kw_only=True)
    class Restarted(c.EventType):  # type: ignore[name-defined,misc]
        """A vendor's event."""

        times: int | None = None

        __xml__ = table.element(
            "restarted", (x.E("times", "times", x.INT),), substitutes="urn_test.constructs:Event"
        )  # fmt: skip

    module.Restarted = Restarted  # type: ignore[attr-defined]
    module.__elements__ = {"restarted": "Restarted"}  # type: ignore[attr-defined]
    module.__types__ = {}  # type: ignore[attr-defined]
    sys.modules["bindvendor"] = ModuleType("bindvendor")
    sys.modules["bindvendor.types"] = module
    sys.modules["bindvendor"].types = module  # type: ignore[attr-defined]
    x.register_package("bindvendor", {"urn:test:vendor-events": "types"})
    yield module
    x.register_package("bindvendor", {})


def test_a_later_member_of_a_substitution_group(vendor: Any, c: ModuleType) -> None:
    xml = doc("<c:history><c:started/><w:restarted><c:at>1</c:at><w:times>3</w:times></w:restarted></c:history>")
    xml = xml.replace(b"<c:history", b'<c:history xmlns:w="urn:test:vendor-events"', 1)
    history = x.decode(xml, strict=True)
    assert history == c.History(event=[c.Started(), vendor.Restarted(at=1, times=3)])
    root = etree.fromstring(x.encode(history))
    assert root[1].tag == "{urn:test:vendor-events}restarted"
    warnings: list[x.XmlWarning] = []
    four = xml.replace(b"</c:history>", b"<c:started/><w:restarted/></c:history>")
    assert len(x.decode(four, warnings=warnings).event) == 4
    assert [warning.rule for warning in warnings] == ["repeated"]
    assert "bindvendor" in registered_packages()
    assert modules_of("bindvendor") == {"urn:test:vendor-events": "types"}
    assert modules_of("nowhere") == {}


_M = x.Module(__name__, "urn:test:hand", prefix="hand", root="nowhere")


@dataclass(slots=True, kw_only=True)
class Free(x.XmlObject):
    any_: list[Any] = field(default_factory=list)

    __xml__ = _M.element("free", (x.ANY("any_", min=1, namespace="##targetNamespace ##local"),))


@dataclass(slots=True, kw_only=True)
class Odds(x.XmlObject):
    texts: list[list[str]] = field(default_factory=list)
    name: str | None = None
    small: str | None = None

    __xml__ = _M.element(
        "odds",
        (
            x.E("texts", "texts", x.list_of(x.STRING), max=None),
            x.E("name", "name", x.QNAME),
            x.E("small", "small", x.simple(x.QNAME, max_length=3)),
        ),
    )


@dataclass(slots=True, kw_only=True)
class Marked(x.XmlObject):
    value: str
    mark: int

    __xml__ = _M.element("marked", (x.TEXT("value", x.STRING), x.A("mark", "mark", x.INT, required=True)))


def _read(cls: Any, inner: str, attributes: str = "") -> tuple[Any, list[str]]:
    warnings: list[x.XmlWarning] = []
    name = cls.__xml__.element
    xml = f'<h:{name} xmlns:h="urn:test:hand" xmlns:v="urn:v"{attributes}>{inner}</h:{name}>'
    value = x.decode(xml, cls, warnings=warnings)
    assert len(etree.fromstring(x.encode(value))) == len(etree.fromstring(xml))
    return value, [warning.rule for warning in warnings]


def test_a_wildcard_that_wants_something() -> None:
    assert _read(Free, "") == (Free(extras=x.Extras(excused=frozenset({"any_"}))), ["missing-element"])
    assert _read(Free, "<h:a/><b/>")[1] == []
    assert _read(Free, "<v:a/>")[1] == ["unknown-element", "missing-element"]
    with pytest.raises(EncodeError, match=r"Free\.any_: 0 where 1 to many"):
        x.encode(Free())
    assert len(x.to_element(Free(any_=[RawXml(b"<a/>")]))) == 1


def test_lists_of_texts_and_qualified_names() -> None:
    value, rules = _read(Odds, "<h:texts>a b</h:texts><h:texts/><h:name k='1'>v:n</h:name><h:small>v:long</h:small>")
    assert (value.texts, value.name, value.small) == ([["a", "b"], []], "{urn:v}n", "{urn:v}long")
    assert rules == ["unknown-attribute", "bad-value"]
    written = etree.fromstring(x.encode(value))
    prefix, _, local = str(written[2].text).partition(":")
    assert (written[2].nsmap[prefix], local, written[2].get("k")) == ("urn:v", "n", "1")
    assert x.to_element(Odds(name="bare"))[0].text == "bare"
    assert _read(Odds, "<h:texts>a  b\nc </h:texts>") == (Odds(texts=[["a", "b", "c"]], extras=ANY), [])
    for item in ("a b", "a\nb", "a\t", ""):
        with pytest.raises(EncodeError, match=r"Odds\.texts\[0\]"):
            x.encode(Odds(texts=[[item]]))


def test_simple_content_with_a_required_attribute() -> None:
    assert _read(Marked, "text", " mark='5'") == (Marked(value="text", mark=5), [])
    value, rules = _read(Marked, "text")
    assert (value.value, value.mark, rules) == ("text", None, ["missing-attribute"])


def test_an_anonymous_extension_cannot_stand_for_its_base(c: ModuleType, package: str) -> None:
    table = x.Module("bindhand", "urn:test:hand2", prefix="hand2", root=package)

    @dataclass(slots=True, kw_only=True)
    class Cone(c.CircleType):  # type: ignore[name-defined,misc]
        """An element of an anonymous type that extends CircleType."""

        tip: int | None = None

        __xml__ = table.element("cone", (x.E("tip", "tip", x.INT),))

    with pytest.raises(EncodeError, match="Cone has no type name and cannot stand for"):
        x.encode(c.Drawing(part=[Cone(id="1", radius=1)]))
    assert len(x.to_element(Cone(id="1", radius=1, tip=2))) == 2


def test_entities_in_a_tree_of_the_callers() -> None:
    parser = etree.XMLParser(resolve_entities=False)
    element = etree.fromstring("<!DOCTYPE a [<!ENTITY e 'x'>]><a><b>&e;</b></a>", parser)
    with pytest.raises(ForbiddenXmlError, match="entity references"):
        x.decode(element)
    plain = etree.fromstring("<a><b/></a>")
    assert without_comments(plain) is plain


def test_damaged_references() -> None:
    with pytest.raises(ConfigError, match=r"'no\.such:Thing' of package 'nowhere' cannot be loaded"):
        resolve_class("no.such:Thing", "nowhere")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        resolve_class("errors:NoSuchError", "mtosi_jms")


def test_tables_tell_of_themselves(c: ModuleType) -> None:
    table = c.RingType.__xml__
    assert repr(table) == "<table of RingType>"
    assert [item.name for item in table.fields] == ["colour", "id", "radius", "hole"]
    assert table.field("hole").local == "hole"
    assert (table.tag, table.type_qname) == (None, "{urn:test:constructs}RingType")
    assert (c.Circle.__xml__.tag, c.Circle.__xml__.declared) == ("{urn:test:constructs}circle", c.CircleType.__xml__)
    assert repr(x.RAW) == "RAW"
    with pytest.raises(KeyError):
        table.field("none")
