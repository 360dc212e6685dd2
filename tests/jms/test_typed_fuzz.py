"""Typed text of any kind: a value of the type that it names, or the typed error; what is written is read."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import DecodeError, EncodeError, XmlError
from mtosi_jms.jms import Byte, Char, Float, JmsMessage, Long, MessageType, Short
from mtosi_jms.jms.typed import BODY_TYPE, from_text, read_content, read_value, write_content, write_value

DTS = ["i1", "i2", "i4", "i8", "int", "r1", "r4", "r8", "boolean", "bin.hex", "char", "string", ""]
KINDS: dict[str, type] = {
    "i1": Byte, "i2": Short, "i4": int, "i8": Long, "int": Long, "r1": Byte, "r4": Float, "r8": float,
    "boolean": bool, "bin.hex": bytes, "char": Char, "string": str, "": str,
}  # fmt: skip
NUMBERS = st.from_regex(r"[ ]?[+-]?[0-9]{0,25}[.]?[0-9]{0,5}([eE][+-]?[0-9]{1,5})?", fullmatch=True)
ODD = st.sampled_from(["NaN", "INF", "-0", "0x1", "1_0", "９", "true", "1e999", "9" * 5_000, "\U0001f600", "1\n", "٣"])
ANY_TEXT = st.text(max_size=20) | NUMBERS | ODD
ANY_VALUE: st.SearchStrategy[Any] = st.one_of(
    st.text(max_size=8),
    st.floats(),
    st.floats(width=32).map(Float),
    st.integers(-(2**31), 2**31 - 1),
    st.booleans(),
    st.binary(max_size=4),
    st.none(),
)
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


@given(
    st.dictionaries(st.text(min_size=1, max_size=8), ANY_VALUE, max_size=4) | st.lists(ANY_VALUE, max_size=4).map(tuple)
)
def test_content_is_read_again_or_has_no_text(content: Any) -> None:
    try:
        document = write_content(content)
    except EncodeError:
        return
    assert read_content(document) == content


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
