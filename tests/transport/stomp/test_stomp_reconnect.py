"""Connections that are made again: whole or not at all, with pauses between, and patiently."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from mtosi_jms.errors import TransportError, WriteError
from mtosi_jms.jms import JmsMessage, Queue, Topic
from mtosi_jms.transport.stomp._link import Link

from ...waiting import background, until
from .conftest import LONG, persistent, take

pytestmark = pytest.mark.broker


def plain(number: int) -> JmsMessage:
    return JmsMessage(body=b"<n>%d</n>" % number)


def test_what_is_half_made_takes_no_messages(
    by_proxy: Any, proxy: Any, queue: Queue, open_stomp: Any, broker: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A connection on which the subscriptions were not confirmed in time is ended, or the broker would feed it."""
    caplog.set_level(logging.INFO, "mtosi_jms.transport")
    consumer = by_proxy(send_timeout=1.0).session().consumer(queue)
    proxy.stall_at_answer(b"RECEIPT")
    proxy.cut()
    assert proxy.stalled.wait(LONG)
    until(lambda: "not yet connected again" in caplog.text)
    proxy.flow()
    until(lambda: "connected again" in caplog.text.replace("not yet connected again", ""))
    sender = open_stomp(broker.endpoints.url("stomp")).session()
    for number in range(6):
        sender.send(queue, persistent(number))
    assert [take(consumer) for _ in range(6)] == [b"<n>%d</n>" % number for number in range(6)]


def test_what_was_left_and_not_written_goes_out_on_the_next_link(
    by_proxy: Any, proxy: Any, queue: Queue, open_stomp: Any, broker: Any
) -> None:
    """In its place: before what is sent later. What needs no confirmation would otherwise be lost without a word."""
    session = by_proxy().session()
    link = session.connection.channel.link
    with link.writer.turn:  # nothing is written meanwhile
        for number in range(5):
            assert session.send_soon(queue, plain(number)) is not None
        proxy.cut()
        until(lambda: not link.is_up)
    session.send(queue, plain(5))
    consumer = open_stomp(broker.endpoints.url("stomp")).session().consumer(queue)
    assert [take(consumer) for _ in range(6)] == [b"<n>%d</n>" % number for number in range(6)]


def test_what_was_left_to_a_broker_that_says_nothing_any_more(
    by_proxy: Any, proxy: Any, queue: Queue, open_stomp: Any, broker: Any
) -> None:
    session = by_proxy(heart_beat=1.0).session()
    link = session.connection.channel.link
    proxy.stall(to_broker=True, to_client=True)
    with link.writer.turn:  # nothing is written meanwhile
        for number in range(5):
            assert session.send_soon(queue, plain(number)) is not None
        until(lambda: not link.is_up)
    proxy.flow()
    consumer = open_stomp(broker.endpoints.url("stomp")).session().consumer(queue)
    assert [take(consumer) for _ in range(5)] == [b"<n>%d</n>" % number for number in range(5)]


def test_what_is_large_is_not_left(broker: Any, open_stomp: Any, queue: Queue) -> None:
    """It would be copied to go out in one write with others, which is no gain for it."""
    session = open_stomp(broker.endpoints.url("stomp")).session()
    assert session.send_soon(queue, plain(0)) is not None
    assert session.send_soon(queue, JmsMessage(body=b"x" * 100_000)) is None


def test_a_client_id_that_the_broker_has_not_let_go(by_proxy: Any, proxy: Any, open_stomp: Any, broker: Any) -> None:
    """The network broke where only we see it: for the broker, the client of this name is still there for a while."""
    topic = Topic("stomp.half.open")
    connection = by_proxy(client_id="half-open", heart_beat=1.0)
    consumer = connection.session().consumer(topic, durable="kept")
    proxy.leave_half_open()
    open_stomp(broker.endpoints.url("stomp")).session().send(topic, persistent(1))
    assert take(consumer) == b"<n>1</n>"


def test_a_loss_that_is_not_yet_known(by_proxy: Any, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sender that finds out as it writes waits for the next connection, as any other does."""
    session = by_proxy().session()
    losses, send = [WriteError("lost meanwhile")], Link.send

    def send_or_fail(link: Link, *frames: Any, **options: Any) -> None:
        if losses:
            raise losses.pop()
        send(link, *frames, **options)

    monkeypatch.setattr(Link, "send", send_or_fail)
    session.send(queue, persistent(1))
    assert not losses
    assert take(session.consumer(queue)) == b"<n>1</n>"


def test_what_cannot_be_mended_is_told(
    by_proxy: Any, proxy: Any, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of our own in the thread that reconnects leaves nobody waiting for ever."""
    connection = by_proxy()

    def restore(link: Any) -> None:
        raise KeyError("a fault of our own")

    monkeypatch.setattr(connection.channel, "restore", restore)
    receiving = background(connection.session().consumer(queue).receive)
    proxy.cut()
    with pytest.raises(TransportError, match="KeyError"):
        receiving.result(LONG)
