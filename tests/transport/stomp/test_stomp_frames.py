"""Frames to bytes, and out of a stream that comes in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import TransportError
from mtosi_jms.transport.stomp._frames import FrameReader, Received, encode

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


@given(FRAMES)
def test_one_byte_at_a_time(frames: list[tuple[str, dict[str, str], bytes, bool]]) -> None:
    sent = [(command, headers, body.replace(b"\0", b"")) for command, headers, body, _ in frames]
    stream = b"".join(encode(*frame) for frame in sent)
    assert read(stream, *range(len(stream))) == sent


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
