"""Maps and streams: their values and types, and the text that keeps them."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import ConfigError, DecodeError, EncodeError, XmlError
from mtosi_jms.jms import Byte, Char, Float, JmsMessage, Long, MessageType, Short
from mtosi_jms.jms.typed import BODY_TYPE, as_text, from_text, read_content, read_value, write_content, write_value

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"))
VALUES: st.SearchStrategy[Any] = st.one_of(
    TEXTS,
    st.sampled_from(["\r", "\n", "\t", " x ", "]]>", "<&"]),
    st.booleans(),
    st.binary(max_size=9),
    st.none(),
    st.integers(-128, 127).map(Byte),
    st.integers(-(2**15), 2**15 - 1).map(Short),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1).map(Long),
    st.floats(0.5, 2.0**100, width=32).map(Float),
    st.floats(-1e300, -1e-300) | st.just(0.0),
    st.sampled_from("aÄ€<").map(Char),
)


def exact(value: Any) -> Any:
    return type(value), value


def kinds(content: Any) -> list[type]:
    return [type(one) for one in (content.values() if isinstance(content, Mapping) else content)]


@pytest.mark.obligation("001-J10", "001-E2", "001-E4")
@pytest.mark.parametrize(
    ("value", "dt", "text"),
    [
        ("a<b", "", "a<b"),
        (True, "boolean", "1"),
        (False, "boolean", "0"),
        (b"\x00\xff", "bin.hex", "00ff"),
        (Byte(-128), "i1", "-128"),
        (Short(32767), "i2", "32767"),
        (-(2**31), "i4", "-2147483648"),
        (Long(2**63 - 1), "i8", "9223372036854775807"),
        (Float(0.5), "r4", "0.5"),
        (2.5e-300, "r8", "2.5e-300"),
        (Char("A"), "char", "A"),
    ],
)
def test_each_type_has_its_mark(value: Any, dt: str, text: str) -> None:
    assert write_value(value) == (dt, text)
    assert exact(read_value(dt, text)) == exact(value)
    assert exact(read_value(dt.upper(), text)) == exact(value)


@pytest.mark.obligation("001-E3")
@pytest.mark.parametrize(
    ("dt", "text", "value"),
    [
        ("int", "+7", Long(7)),
        ("r1", "9", Byte(9)),
        ("String", "x", "x"),
        ("R4", "2.24", Float(struct.unpack(">f", struct.pack(">f", 2.24))[0])),
    ],
)
def test_what_is_read_and_not_written(dt: str, text: str, value: Any) -> None:
    assert exact(read_value(dt, text)) == exact(value)


@pytest.mark.obligation("001-J10", "001-E3", "001-E4")
@pytest.mark.parametrize(
    ("dt", "text"),
    [
        ("i1", "128"), ("i1", "-129"), ("i2", "99999"), ("i4", str(2**31)), ("i8", str(2**63)), ("int", "1.0"),
        ("i4", "1_0"), ("i4", ""), ("i4", "９"), ("boolean", "true"), ("bin.hex", "f"), ("bin.hex", "gg"),
        ("char", "ab"),
        ("char", ""), ("char", "\U0001f600"), ("r4", "3.5e38"), ("r4", "1e-37"), ("r8", "1e-307"), ("r8", "1e309"),
        ("r8", "nan"), ("r8", "inf"), ("r8", "0x1"), ("date", "2004-10-01"), ("i4", "9" * 5000),
    ],
)  # fmt: skip
def test_what_a_type_does_not_have_is_refused(dt: str, text: str) -> None:
    with pytest.raises(DecodeError):
        read_value(dt, text)


@pytest.mark.obligation("001-J10")
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e-308, Float(1e-38), None])
def test_numbers_without_text_are_refused(value: Any) -> None:
    with pytest.raises(EncodeError):
        write_value(value)


@pytest.mark.obligation("001-J9")
@given(st.dictionaries(TEXTS.filter(bool), VALUES) | st.lists(VALUES).map(tuple))
def test_content_comes_back_through_text(content: Any) -> None:
    kind = MessageType.STREAM if isinstance(content, tuple) else MessageType.MAP
    message = JmsMessage(message_type=kind, content=content, properties={"a": Byte(1)})
    text = as_text(message)
    assert (text.message_type, text.content, text.properties[BODY_TYPE]) == (MessageType.TEXT, (), kind.value)
    back = from_text(text)
    assert back == message
    assert kinds(back.content) == kinds(content)


@pytest.mark.obligation("001-J12", "001-J13")
def test_the_text_is_as_others_write_it() -> None:
    assert write_content({"n": Long(1), "odd name": "x", "elt": None}) == (
        b'<map><n dt="i8">1</n><elt name="odd name">x</elt>'
        b'<elt xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/></map>'
    )
    theirs = b"<stream><elt>P2P</elt><elt dt='I4'>999</elt><elt dt='r1'>9</elt><elt dt='char'>A</elt></stream>"
    assert read_content(theirs) == ("P2P", 999, 9, "A")


@pytest.mark.parametrize(
    "document",
    [
        b"<map><a>1</a><a>2</a></map>",
        b"<other/>",
        b"<map><a><b/></a></map>",
        b"<map><a dt='i1'>999</a></map>",
        b"<map>",
    ],
)
def test_texts_that_are_no_content(document: bytes) -> None:
    with pytest.raises(XmlError):
        read_content(document)
    text = JmsMessage(body=document, properties={BODY_TYPE: "MapMessage"})
    assert from_text(text) is text


@pytest.mark.parametrize("name", ["MapMessage", "Message", "TextMessage"])
def test_a_text_that_says_it_is_another(name: str) -> None:
    text = JmsMessage(body=b"<stream/>", properties={BODY_TYPE: name})
    assert from_text(text) is text


def test_a_character_that_xml_does_not_have() -> None:
    with pytest.raises(EncodeError, match="n"):
        write_content({"n": "\0"})
    with pytest.raises(EncodeError, match="value 2"):
        write_content(("a", "\x01"))


@pytest.mark.obligation("001-J4")
@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (MessageType.MAP, ["a"]), (MessageType.MAP, {"": 1}), (MessageType.MAP, {"a": []}), (MessageType.MAP, {1: 1}),
        (MessageType.STREAM, {"a": 1}), (MessageType.STREAM, "text"), (MessageType.STREAM, [2**31]),
        (MessageType.STREAM, [Char("ab")]), (MessageType.TEXT, ["a"]), (MessageType.MESSAGE, {"a": 1}),
    ],
)  # fmt: skip
def test_content_is_checked(kind: MessageType, content: Any) -> None:
    with pytest.raises(ConfigError):
        JmsMessage(message_type=kind, content=content)


@pytest.mark.parametrize("kind", [MessageType.MAP, MessageType.STREAM])
def test_a_map_has_no_body(kind: MessageType) -> None:
    with pytest.raises(ConfigError):
        JmsMessage(message_type=kind, body=b"x")


def test_content_cannot_change() -> None:
    values: list[Any] = [1, bytearray(b"x")]
    message = JmsMessage(message_type=MessageType.STREAM, content=values)
    values.append(2)
    assert message.content == (1, b"x")
    assert hash(message) == hash(JmsMessage(message_type=MessageType.STREAM, content=(1, b"x")))
    assert "secret" not in repr(JmsMessage(message_type=MessageType.MAP, content={"password": "secret"}))


# Typed text of any kind: a value of the type that it names, or the typed error; what is written is read.

DTS = ["i1", "i2", "i4", "i8", "int", "r1", "r4", "r8", "boolean", "bin.hex", "char", "string", ""]
KINDS: dict[str, type] = {
    "i1": Byte, "i2": Short, "i4": int, "i8": Long, "int": Long, "r1": Byte, "r4": Float, "r8": float,
    "boolean": bool, "bin.hex": bytes, "char": Char, "string": str, "": str,
}  # fmt: skip
NUMBERS = st.from_regex(r"[ ]?[+-]?[0-9]{0,25}[.]?[0-9]{0,5}([eE][+-]?[0-9]{1,5})?", fullmatch=True)
ODD = st.sampled_from(["NaN", "INF", "-0", "0x1", "1_0", "９", "true", "1e999", "9" * 5_000, "\U0001f600", "1\n", "٣"])
ANY_TEXT = st.text(max_size=20) | NUMBERS | ODD
PIECES = st.sampled_from(
    [
        "<map>", "</map>", "<stream>", "</stream>", "<elt>", "</elt>", "<a>", "</a>", "<a/>", '<elt name="a">',
        '<elt dt="i4">', '<elt dt="R8">', '<a dt="bin.hex">', "&lt;", "&x;", "]]>", "<!DOCTYPE map>", "12", "ff",
        "<!-- -->", "<?p?>",
        '<a xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true">', "\x00", "größe", '<elt dt="date">',
    ]
)  # fmt: skip


def casings(dt: str) -> st.SearchStrategy[str]:
    return st.sampled_from([dt, dt.upper(), dt.title()])


@given(st.sampled_from(DTS).flatmap(lambda dt: st.tuples(st.just(dt), casings(dt))), ANY_TEXT)
def test_a_text_is_a_value_of_its_type_or_refused(dt: tuple[str, str], text: str) -> None:
    name, spelled = dt
    try:
        value = read_value(spelled, text)
    except DecodeError:
        return
    assert type(value) is KINDS[name]
    if isinstance(value, float):
        assert math.isfinite(value)
    told, again = write_value(value)
    assert read_value(told, again) == value
    assert type(read_value(told, again)) is KINDS[name]


@given(st.text(max_size=12), ANY_TEXT)
def test_a_type_that_there_is_not_is_refused(dt: str, text: str) -> None:
    try:
        read_value(dt, text)
    except DecodeError:
        return
    assert dt.lower() in DTS


@given(st.lists(PIECES, max_size=8).map("".join), st.sampled_from(["map", "stream", ""]), st.sampled_from(MessageType))
def test_any_document_is_content_or_refused(inner: str, root: str, kind: MessageType) -> None:
    document = (f"<{root}>{inner}</{root}>" if root else inner).encode()
    content = None
    try:
        content = read_content(document)
    except XmlError:
        pass
    message = JmsMessage(body=document, properties={BODY_TYPE: kind.value})
    read = from_text(message)
    if read is not message and content is not None:
        assert (read.message_type, read.content) == (kind, content)
    if content is None and document:
        assert read is message
