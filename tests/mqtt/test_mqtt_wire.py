"""Packets of MQTT 3 as octets, to both brokers and back."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from .pages import COLUMNS, table
from .wire import (
    CONNACK_ACCEPTED,
    LARGEST,
    PATIENCE,
    Wire,
    connect_packet,
    packet,
    publish_packet,
    remaining_length,
    subscribe_packet,
    text,
)

pytestmark = pytest.mark.broker


@pytest.fixture
def wire(bench: Any) -> Iterator[Wire]:
    """Connected, and accepted."""
    with Wire(bench.broker) as made:
        made.send(connect_packet(bench, bench.name(), protocol=(b"MQIsdp", 3)))
        assert made.packet() == CONNACK_ACCEPTED
        yield made


def number(value: int) -> bytes:
    return struct.pack(">H", value)


@pytest.mark.obligation("001-M9", "001-E8")
@pytest.mark.parametrize(
    ("length", "octets"),
    [
        (0, "00"), (127, "7f"), (128, "8001"), (321, "c102"), (16_383, "ff7f"), (16_384, "808001"),
        (2_097_151, "ffff7f"), (2_097_152, "80808001"), (LARGEST, "ffffff7f"),
    ],
)  # fmt: skip
def test_remaining_lengths(length: int, octets: str) -> None:
    assert remaining_length(length).hex() == octets


@pytest.mark.obligation("001-M9")
@pytest.mark.parametrize("length", [127, 128, 321, 16_383, 16_384, 2_097_151, 2_097_152])
def test_payloads_at_the_borders_of_the_length_arrive(bench: Any, wire: Wire, length: int) -> None:
    in_mqtt, topic = bench.topic()
    payload = b"x" * (length - 2 - len(in_mqtt))
    with bench.session.consumer(topic) as consumer:
        wire.send(publish_packet(in_mqtt, payload))
        delivery = consumer.receive(PATIENCE)
    assert delivery is not None
    assert delivery.message.body == payload


def test_a_length_of_five_octets_ends_the_connection(wire: Wire) -> None:
    wire.send(b"\x30\xff\xff\xff\xff\x01")
    assert wire.packet() == b""


@pytest.mark.obligation("001-M1", "001-M10", "001-M11")
def test_connect_is_as_the_protocol_has_it(bench: Any) -> None:
    login = bench.broker.endpoints
    rest = text("device") + text("MTOSI/Will") + text(b"gone") + text(login.user) + text(login.password)
    variable = bytes.fromhex("0006 4d5149736470 03 ce 003c")
    made = connect_packet(bench, "device", protocol=(b"MQIsdp", 3), will=("MTOSI/Will", b"gone", 1))
    assert made == b"\x10" + remaining_length(len(variable) + len(rest)) + variable + rest
    assert len(variable) == 12


@pytest.mark.obligation("001-M1", "001-M2", "001-M19", "001-E9")
def test_each_packet_has_its_answer(bench: Any, wire: Wire) -> None:
    a, _ = bench.topic()
    b, _ = bench.topic()
    wire.send(packet(0xC0))
    assert wire.packet() == bytes.fromhex("d000")
    wire.send(packet(0x82, number(10) + text(a) + b"\1" + text(b) + b"\2" + text(f"{b}/x") + b"\0"))
    assert wire.packet() == bytes.fromhex("9005 000a 010200")
    wire.send(packet(0xA2, number(11) + text(a) + text(b)))
    assert wire.packet() == bytes.fromhex("b002 000b")
    wire.send(publish_packet(a, b"once", 1, 12))
    assert wire.packet() == bytes.fromhex("4002 000c")
    wire.send(packet(0xE0))
    assert wire.packet() == b""


def received(consumer: Any, until: bytes) -> list[bytes]:
    """What JMS receives, until something comes."""
    found: list[bytes] = []
    while until not in found:
        delivery = consumer.receive(PATIENCE)
        assert delivery is not None
        found.append(delivery.message.body)
    return found


def says(kind: str, row: str) -> str:
    """What the page says."""
    (found,) = (one for one in table("repetition") if one[0] == row)
    return found[COLUMNS[kind]]


TIMES = {1: "published once", 2: "published twice"}


@pytest.mark.obligation("001-M5")
def test_qos_1_publishes_what_is_repeated(bench: Any, wire: Wire) -> None:
    in_mqtt, topic = bench.topic()
    with bench.session.consumer(topic) as consumer:
        for again in (False, True):
            wire.send(publish_packet(in_mqtt, b"alarm", 1, 7, again=again))
            assert wire.packet() == bytes.fromhex("4002 0007")
        wire.send(publish_packet(in_mqtt, b"the end", 1, 8))
        times = received(consumer, b"the end").count(b"alarm")
    assert TIMES[times] == says(bench.kind, "QoS 1, the device repeats a PUBLISH")


@pytest.mark.obligation("001-M6", "001-M19")
def test_qos_2_publishes_at_the_first_step(bench: Any, wire: Wire) -> None:
    """PUBLISH, PUBREC, PUBREL, PUBCOMP; each step can be repeated."""
    in_mqtt, topic = bench.topic()
    with bench.session.consumer(topic) as consumer:
        wire.send(publish_packet(in_mqtt, b"alarm", 2, 7))
        assert wire.packet() == bytes.fromhex("5002 0007")
        assert received(consumer, b"alarm") == [b"alarm"], "before PUBREL"
        wire.send(publish_packet(in_mqtt, b"alarm", 2, 7, again=True))
        assert wire.packet() == bytes.fromhex("5002 0007")
        for _ in range(2):
            wire.send(packet(0x62, number(7)))
            assert wire.packet() == bytes.fromhex("7002 0007")
        wire.send(publish_packet(in_mqtt, b"the end", 1, 8))
        times = 1 + received(consumer, b"the end").count(b"alarm")
    assert TIMES[times] == says(bench.kind, "QoS 2, the device repeats a PUBLISH")


@pytest.mark.obligation("001-M4")
def test_qos_0_has_no_answer(bench: Any, wire: Wire) -> None:
    in_mqtt, topic = bench.topic()
    with bench.session.consumer(topic) as consumer:
        wire.send(publish_packet(in_mqtt, b"alarm") + packet(0xC0))
        assert wire.packet() == bytes.fromhex("d000")
        assert received(consumer, b"alarm") == [b"alarm"]


@pytest.mark.obligation("001-M5")
def test_what_a_device_does_not_acknowledge_comes_again(bench: Any) -> None:
    """After the connection broke."""
    in_mqtt, _ = bench.topic()
    own = bench.name()
    with Wire(bench.broker) as wire:
        wire.send(connect_packet(bench, own, flags=0))
        assert wire.packet() == CONNACK_ACCEPTED
        wire.send(subscribe_packet(in_mqtt, 1))
        assert wire.packet() == bytes.fromhex("9003 0001 01")
        bench.device().publish(in_mqtt, b"alarm", 1)
        first = wire.packet()
        assert first[0] == 0x32
    with Wire(bench.broker) as wire:
        wire.send(connect_packet(bench, own, flags=0))
        assert wire.packet()[::3] == CONNACK_ACCEPTED[::3]
        again = wire.packet()
        assert again.endswith(b"alarm")
        marks = {0x32: "without the mark DUP", 0x3A: "with the mark DUP"}
        assert marks[again[0]] == says(bench.kind, "QoS 1, a message that the device did not acknowledge comes again")
    bench.device(own).close()


@pytest.mark.obligation("001-M2", "001-M3")
@pytest.mark.parametrize("first", [0x00, 0xF0, 0x36], ids=["type 0", "type 15", "QoS 3"])
def test_what_is_reserved_ends_the_connection(bench: Any, wire: Wire, first: int) -> None:
    in_mqtt, _ = bench.topic()
    wire.send(packet(first, text(in_mqtt) + number(1) + b"x"))
    assert wire.packet() == b""


@pytest.mark.obligation("001-M17")
def test_numbers_of_messages_up_to_the_last(bench: Any, wire: Wire) -> None:
    in_mqtt, _ = bench.topic()
    for value in (1, 65_535):
        wire.send(publish_packet(in_mqtt, b"x", 1, value))
        assert wire.packet() == b"\x40\x02" + number(value)


@pytest.mark.obligation("001-M16", "001-M21", "001-M22")
def test_names_of_topics_are_utf_8(bench: Any) -> None:
    in_mqtt, _ = bench.topic()
    device = bench.device()
    device.subscribe(f"{in_mqtt}/größe€")
    bench.device().publish(f"{in_mqtt}/größe€", b"\x00\xff\x01")
    message = device.receive()
    assert (message.topic, message.payload) == (f"{in_mqtt}/größe€", b"\x00\xff\x01")
