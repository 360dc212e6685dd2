"""Frames to bytes and back, and text on the wire: characters beyond the BMP, what Java sends, what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from mtosi_jms.errors import ConfigError, TransportError
from mtosi_jms.transport.stomp._frames import FrameReader, Received, encode
from mtosi_jms.transport.stomp._messages import check_body, from_wire, is_plain, to_references

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)))
NAMES = TEXT.filter(lambda name: name not in ("", "content-length"))
BODIES = st.binary(max_size=300)
COMMANDS = st.sampled_from(["MESSAGE", "RECEIPT", "ERROR"])
FRAMES = st.lists(st.tuples(COMMANDS, st.dictionaries(NAMES, TEXT, max_size=5), BODIES, st.booleans()), max_size=6)


def read(stream: bytes, *cuts: int) -> list[Received]:
    reader = FrameReader()
    ends = [*sorted(cuts), len(stream)]
    starts = [0, *ends[:-1]]
    return [frame for start, end in zip(starts, ends, strict=True) for frame in reader.feed(stream[start:end])]


@given(FRAMES, st.sampled_from([b"", b"\n", b"\r\n\n"]), st.data())
def test_frames_come_out_as_they_went_in(
    frames: list[tuple[str, dict[str, str], bytes, bool]], between: bytes, data: st.DataObject
) -> None:
    """Bodies with a length, which may hold NUL, and without one; the stream cut anywhere; heart-beats between."""
    sent = [
        (command, {**headers, "content-length": str(len(body))}, body)
        if sized
        else (command, headers, body.replace(b"\0", b""))
        for command, headers, body, sized in frames
    ]
    stream = between.join(encode(*frame) for frame in sent)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8))
    assert read(stream, *cuts) == sent


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_nonsense_gives_frames_or_an_error(pieces: list[bytes]) -> None:
    reader = FrameReader()
    try:
        for piece in pieces:
            reader.feed(piece)
    except TransportError:
        return


def test_the_first_of_several_headers_of_one_name_counts() -> None:
    assert read(b"MESSAGE\na:1\na:2\n\n\0") == [("MESSAGE", {"a": "1"}, b"")]


def test_lines_may_end_as_they_do_on_windows() -> None:
    assert read(b"RECEIPT\r\nreceipt-id:r1\r\n\r\nx\r\n\0\r\n") == [("RECEIPT", {"receipt-id": "r1"}, b"x\r\n")]


def test_who_logs_in_is_told_without_escapes() -> None:
    """For the sake of STOMP 1.0, which has none."""
    assert encode("CONNECT", {"passcode": "a:b\\c"}) == b"CONNECT\npasscode:a:b\\c\n\n\0"
    assert read(b"CONNECTED\nsession:ID:vm\\c1\n\n\0") == [("CONNECTED", {"session": "ID:vm\\c1"}, b"")]


def test_a_header_from_java_holds_characters_beyond_the_bmp() -> None:
    """It comes as CESU-8; what is broken in one header costs the others nothing."""
    raw = b"MESSAGE\np:\xed\xa0\xbd\xed\xb8\x80\\n\nbroken:\xff\xed\n\n\0"
    ((_, headers, _),) = read(raw)
    assert headers["p"] == "\U0001f600\n"
    assert "\ufffd" in headers["broken"]


@pytest.mark.parametrize(
    ("stream", "what"),
    [
        (b"MESSAGE\ncontent-length:two\n\nab\0", "not a number"),
        (b"MESSAGE\ncontent-length:-1\n\nab\0", "not a number"),
        (b"MESSAGE\ncontent-length:1\n\nab\0", "longer than its content-length"),
    ],
)
def test_what_is_no_frame_is_told(stream: bytes, what: str) -> None:
    with pytest.raises(TransportError, match=what):
        read(stream)


def test_a_head_without_an_end_is_given_up() -> None:
    reader = FrameReader()
    for _ in range(16):
        assert reader.feed(b"x" * 1_000_000) == []
    with pytest.raises(TransportError, match="more headers"):
        reader.feed(b"x" * 1_000_000)


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
