"""Text on the wire: characters beyond the BMP, what Java sends, and what is refused before it is sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from mtosi_jms.errors import ConfigError
from mtosi_jms.transport.stomp._messages import check_body, from_wire, is_plain, to_references

SMILE = "\U0001f600"


def cesu8(text: str) -> bytes:
    """What Java writes: each surrogate by itself."""
    units = text.encode("utf-16-be")
    return b"".join(
        chr(int.from_bytes(units[i : i + 2], "big")).encode("utf-8", "surrogatepass") for i in range(0, len(units), 2)
    )


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        ("<a>größe</a>", "<a>größe</a>"),
        (f"<a>{SMILE}</a>", "<a>&#x1F600;</a>"),
        (f"<a b='{SMILE}'/>", "<a b='&#x1F600;'/>"),
        (f"<a b='>' c=\"'{SMILE}\"/>", "<a b='>' c=\"'&#x1F600;\"/>"),
        (f"<a><![CDATA[x{SMILE}&y]]></a>", "<a><![CDATA[x]]>&#x1F600;<![CDATA[&y]]></a>"),
        (f"<!--{SMILE}--><a/>", "<!--\ufffd--><a/>"),
        (f"<a>{SMILE} = 'b'</a>", "<a>&#x1F600; = 'b'</a>"),
    ],
)
def test_references_for_what_java_cannot_read(body: str, sent: str) -> None:
    assert to_references(body.encode()) == sent.encode()


@pytest.mark.parametrize(
    "body",
    ["<\U00010000/>", "<a:\U00010000/>", "<a \U00010000='1'/>", "<a b='>' \U00010000=\"x\"/>", "<a></\U00010000>"],
)
def test_a_name_has_no_references(body: str) -> None:
    with pytest.raises(ConfigError, match="name"):
        to_references(body.encode())


def test_cesu_8_comes_in_as_utf_8() -> None:
    assert from_wire(cesu8(f"<a>ü{SMILE}</a>"), references=True) == f"<a>ü{SMILE}</a>".encode()


@pytest.mark.parametrize("body", [b"<a>\xed\xa0\xbd</a>", b"\xff\xed\xa0\xbd"])
def test_what_is_neither_is_left_for_its_reader(body: bytes) -> None:
    assert from_wire(body, references=True) == body


def test_references_of_others_are_left() -> None:
    body = b"<a>&#128512;&#x1f600;&#x41;<![CDATA[&#x1F600;]]></a>"
    assert from_wire(body, references=True) == body


XML_TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="<>&\r", min_codepoint=32))


@given(XML_TEXT)
def test_there_and_back(text: str) -> None:
    body = f"<a>{text}</a>".encode()
    sent = to_references(body)
    assert max(sent.decode()) <= "\uffff"
    assert from_wire(sent, references=True) == body
    assert from_wire(cesu8(body.decode()), references=False) == body


@given(XML_TEXT)
def test_readers_of_xml_see_no_difference(text: str) -> None:
    try:
        before = etree.fromstring(f"<a>{text}</a>".encode())
    except etree.XMLSyntaxError:
        return
    assert etree.fromstring(to_references(f"<a>{text}</a>".encode())).text == before.text


@given(st.binary())
def test_any_bytes_come_in(data: bytes) -> None:
    assert isinstance(from_wire(data, references=True), bytes)


@pytest.mark.parametrize("body", [b"a\0b", b"\x01", b"\x1f", b"\x0b"])
def test_control_characters_are_refused(body: bytes) -> None:
    with pytest.raises(ConfigError, match="control character"):
        check_body(body)


def test_other_bytes_than_utf_8_are_refused() -> None:
    with pytest.raises(ConfigError, match="byte 3"):
        check_body(b"<a>\xff</a>")


def test_ends_of_lines_and_tabulators_are_allowed() -> None:
    check_body(b"<a>\t\r\n</a>")


@pytest.mark.parametrize("around", [0, 20_000])
@given(place=st.integers(0, 40), what=st.binary(max_size=6))
def test_what_goes_out_as_it_is(around: int, place: int, what: bytes) -> None:
    """Small texts and large ones, which are looked at in pieces: the same is found, wherever it stands."""
    text = b"\xc3\xa9" * ((around + place) // 2) + b"x" * (place % 2)
    body = text + what + b"<a/>"
    try:
        check_body(body)
    except ConfigError:
        expected = False
    else:
        expected = to_references(b"<a>%b</a>" % what) == b"<a>%b</a>" % what
    assert is_plain(body) == expected


@pytest.mark.parametrize("at", [16_382, 16_383, 16_384, 16_385])
@pytest.mark.parametrize(
    ("what", "plain"), [("\u20ac".encode(), True), (b"\xe2\x82", False), (b"\x01", False), (SMILE.encode(), False)]
)
def test_what_stands_between_two_pieces(at: int, what: bytes, plain: bool) -> None:
    assert is_plain(b"x" * at + what + b"x" * 100) is plain
    assert is_plain(b"x" * at + what) is plain
