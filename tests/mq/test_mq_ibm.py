"""Octets that IBM's classes read as we write them, and write as we read them."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtosi_jms.jms import DeliveryMode, JmsMessage, Queue
from mtosi_jms.jms.message import Byte, Float, Long, PropertyValue, Short, jms_type_name
from mtosi_jms.mq import read_mq, write_mq

from ..processes import Program

CLIENT = "com.ibm.mq:com.ibm.mq.allclient:9.4.5.0"
ENCODINGS = {"big": 273, "little": 546}
Ask = Callable[[str], list[str]]

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("C",)), max_size=20)
SINGLE = st.floats(2.0**-100, 2.0**100, width=32).map(Float)
VALUES = st.one_of(
    TEXT,
    st.booleans(),
    st.integers(-128, 127).map(Byte),
    st.integers(-(2**15), 2**15 - 1).map(Short),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1).map(Long),
    SINGLE,
    st.floats(1e-300, 1e300) | st.just(0.0),
)
NAMES = st.from_regex(r"[a-z][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: (
        name.upper() not in {"NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"}
    )
)
MESSAGES = st.builds(
    JmsMessage,
    body=TEXT.map(str.encode),
    properties=st.dictionaries(NAMES, VALUES, max_size=6),
    priority=st.integers(0, 9),
    delivery_mode=st.sampled_from(DeliveryMode),
    correlation_id=st.none() | st.text("abcdef-0123456789", min_size=1, max_size=30),
    reply_to=st.none() | st.just(Queue("INV.OS")),
    message_id=st.none() | st.binary(min_size=24, max_size=24).filter(any).map(lambda octets: f"ID:{octets.hex()}"),
)
EXAMPLES = [50, pytest.param(1_000, marks=pytest.mark.endurance)]


@pytest.fixture(scope="module")
def ask(java: Any) -> Iterator[Ask]:
    """Asks IBM's classes, in one process for all tests."""
    command = java.compiled(Path(__file__).with_name("MqPeer.java"), java.jars(CLIENT))
    with Program(command) as peer:

        def answer(text: str) -> list[str]:
            peer.say(text.removesuffix("\n"))
            return list(iter(peer.line, "."))

        yield answer


def values_of(lines: list[str]) -> dict[tuple[str, str], tuple[str, bytes]]:
    found = (line.split("\t") for line in lines)
    return {(folder, name): (kind, base64.b64decode(value)) for folder, name, kind, value in found}


def same(kind: str, told: bytes, value: PropertyValue) -> bool:
    text = told.decode()
    if isinstance(value, bool):
        return kind == "Boolean" and text == str(value).lower()
    if isinstance(value, Float):
        return kind == "Float" and struct.pack(">f", float(text)) == struct.pack(">f", value)
    if isinstance(value, float):
        return kind == "Double" and float(text) == value
    return kind == jms_type_name(value) and text == str(plain(value))


@pytest.mark.obligation("001-X3")
@pytest.mark.parametrize("examples", EXAMPLES)
@pytest.mark.parametrize("order", ENCODINGS)
def test_ibm_reads_what_we_write(ask: Ask, order: Any, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, database=None)
    @given(MESSAGES)
    def reads(message: JmsMessage) -> None:
        data = write_mq(message, with_mqmd=True, byte_order=order)
        told = values_of(ask(f"read\t{ENCODINGS[order]}\t{data.hex()}\n"))
        for name, value in message.properties.items():
            assert same(*told["usr", name], value), name
        assert told["body", "octets"][1] == message.body
        assert told["MQMD", "Priority"][1] == b"%d" % message.priority
        assert told["MQMD", "Persistence"][1] == (b"1" if message.delivery_mode is DeliveryMode.PERSISTENT else b"0")
        assert told["MQMD", "MsgId"][1].decode() == (message.message_id or "ID:" + "00" * 24).removeprefix("ID:")
        assert told["MQMD", "ReplyToQ"][1] == (b"INV.OS" if message.reply_to else b"")
        assert told.get(("jms", "Cid"), ("", b""))[1].decode() == (message.correlation_id or "")
        assert read_mq(data) == message

    reads()


def line(folder: str, name: str, kind: str, value: object) -> str:
    octets = value if isinstance(value, bytes) else (str(value).lower() if kind == "Boolean" else str(value)).encode()
    return f"{folder}\t{name}\t{kind}\t{base64.b64encode(octets).decode()}\n"


def plain(value: PropertyValue) -> PropertyValue:
    return value if isinstance(value, (str, bool)) else int(value) if isinstance(value, int) else float(value)


@pytest.mark.obligation("001-X3")
@pytest.mark.parametrize("examples", EXAMPLES)
def test_we_read_what_ibm_writes(ask: Ask, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, database=None)
    @given(MESSAGES)
    def reads(message: JmsMessage) -> None:
        asked = [
            line("mcd", "Msd", "String", "jms_text"),
            line("jms", "Pri", "String", message.priority),
            line("jms", "Dlv", "String", int(message.delivery_mode)),
            *(
                line("usr", name, jms_type_name(value), plain(value))
                for name, value in message.properties.items()
            ),
            line("body", "octets", "bytes", message.body),
        ]  # fmt: skip
        (written,) = ask("".join(["write\t273\n", *asked, ".\n"]))
        read = read_mq(bytes.fromhex(written))
        assert read.properties == message.properties
        assert [type(read.properties[name]) for name in message.properties] == [
            type(value) for value in message.properties.values()
        ]
        assert (read.body, read.priority, read.delivery_mode) == (message.body, message.priority, message.delivery_mode)

    reads()


@pytest.mark.obligation("001-X2")
def test_equal_octets_for_equal_folders(ask: Ask) -> None:
    """What IBM's classes write of our folders is what we write."""
    message = JmsMessage(body=b"<a/>", properties={"text": "x<y", "count": 7, "long": Long(9), "flag": True})
    asked = [
        line("mcd", "Msd", "String", "jms_text"),
        line("jms", "Pri", "String", 4),
        line("jms", "Dlv", "String", 1),
        *(line("usr", name, jms_type_name(value), plain(value)) for name, value in message.properties.items()),
        line("body", "octets", "bytes", message.body),
    ]
    (written,) = ask("".join(["write\t273\n", *asked, ".\n"]))
    assert bytes.fromhex(written)[364:] == write_mq(message)
