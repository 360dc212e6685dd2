"""What an object carries beside its fields, filled by anybody: written as what it is, or a typed error."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from mtosi_jms.errors import EncodeError
from mtosi_jms.soap import Envelope
from mtosi_jms.stubs.nrf.me import Me
from mtosi_jms.xmlbind import Extras, Kept, Leaf, Nil, RawXml, encode

XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
SPACE = "{http://www.tmforum.org/mtop/nrf/xsd/me/v1}"
RAW = RawXml(b"<v/>")
BAD_NAMES = (
    "bad name",
    "",
    "1a",
    "a:b",
    'a="1"',
    'a="1"/><me:owned>yes</me:owned><me:location b',
    "{urn:a b}c",
    "{urn:<}c",
    "{urn:a",
    "{urn:a}",
    "{urn:a}b}c",
    "a\0",
    "\ud800",
    "xmlns",
    "{http://www.w3.org/2000/xmlns/}me",
    5,
    None,
    b"a",
)
BAD_TEXTS = (5, None, b"x", "\0", "\ud800", "\uffff", [], 1.5)


def attribute(name: Any, value: Any) -> list[Any]:
    """Objects with an attribute, in each place that has one."""
    leaf = Leaf("x", "x", ((name, value),))
    return [
        Me(location=Nil({name: value})),
        Me(extras=Extras(attributes={name: value})),
        Me(location="x", extras=Extras(leaves={("location", 0): leaf})),
    ]


@pytest.mark.parametrize("name", BAD_NAMES, ids=repr)
def test_what_is_no_name_is_refused(name: Any) -> None:
    for odd in (*attribute(name, "x"), Me(extras=Extras(attributes={XSI + "type": f"{{{name}"}))):
        with pytest.raises(EncodeError):
            encode(odd)
    with pytest.raises(EncodeError):
        Envelope(attributes={"Body": {name: "x"}}).to_bytes()


@pytest.mark.parametrize("text", BAD_TEXTS, ids=repr)
def test_what_is_no_text_is_refused(text: Any) -> None:
    odd: list[Any] = attribute("a", text)
    odd += [Me(location=Nil(text=text)), Me(extras=Extras(texts={None: text}))]
    odd += [Me(extras=Extras(elements=[Kept(RAW, None, text)]))]
    odd += [Me(location="x", extras=Extras(leaves={("location", 0): Leaf("x", text)}))]
    for one in odd:
        with pytest.raises(EncodeError):
            encode(one)


@pytest.mark.parametrize(
    "extras",
    [
        5,
        {},
        "x",
        Extras(elements=5),  # type: ignore[arg-type]
        Extras(elements=[RAW]),  # type: ignore[list-item]
        Extras(elements=[Kept(b"<a/>")]),  # type: ignore[arg-type]
        Extras(elements=[Kept(RAW, ("a", []))]),  # type: ignore[arg-type]
        Extras(attributes=None),  # type: ignore[arg-type]
        Extras(leaves={("location", 0): "x"}),  # type: ignore[dict-item]
        Extras(leaves={("location", 0): Leaf("x", "x", (("a",),))}),  # type: ignore[arg-type]
        Extras(texts=[]),  # type: ignore[arg-type]
        Extras(order=5),  # type: ignore[arg-type]
        Extras(excused=None),  # type: ignore[arg-type]
        Extras(element=5),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_extras_of_other_types_are_refused(extras: Any) -> None:
    with pytest.raises(EncodeError):
        encode(Me(location="x", extras=extras))


@pytest.mark.parametrize(
    "odd",
    [
        Me(location=Nil({XSI + "nil": "false"})),
        Me(location=Nil(text="false")),
        Me(location=Nil(text='true" a="1')),
        Me(extras=Extras(attributes={XSI + "nil": "true"})),
        Me(extras=Extras(attributes={"a": "1", "{}a": "2"})),
    ],
    ids=repr,
)
def test_what_would_say_something_else_is_refused(odd: Me) -> None:
    with pytest.raises(EncodeError):
        encode(odd)


NAMES = st.text(max_size=4) | st.builds("{{{}}}{}".format, st.text(max_size=6), st.text(max_size=3))


@given(NAMES, st.text(max_size=6))
def test_any_name_and_value_comes_back_or_is_refused(name: str, value: str) -> None:
    for odd, path in zip(attribute(name, value), (f"{SPACE}location", ".", f"{SPACE}location"), strict=True):
        try:
            written = encode(odd)
        except EncodeError:
            continue
        element = etree.fromstring(written).find(path)
        assert element is not None
        given = {key: text for key, text in element.items() if key != XSI + "nil"}
        assert given == {name.removeprefix("{}"): value}
