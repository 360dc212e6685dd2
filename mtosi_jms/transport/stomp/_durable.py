"""What Artemis does not do for durable subscriptions over STOMP: have a new one replace the old one if topic or
selector changes. The connection keeps a record of each at the broker, a message in a queue of its own."""

from __future__ import annotations

import dataclasses
import logging
import re
import threading
import uuid
from collections.abc import Sequence
from contextlib import closing
from typing import Final

from mtosi_jms.errors import MtosiError
from mtosi_jms.transport._session_core import ConsumerSpec
from mtosi_jms.transport.stomp._frames import Frame, Received
from mtosi_jms.transport.stomp._link import Link
from mtosi_jms.transport.stomp._options import Address, StompOptions
from mtosi_jms.transport.stomp._subscriptions import Answer, Collector

log = logging.getLogger(__package__)

_RECORDS: Final = "mtosi-jms.durable."
"""Prefix of the names of the queues that hold the records."""
_SPACES: Final = re.compile(r"'(?:[^']|'')*'|\s+")
_END: Final = "mtosi-end"
"""Header of the message behind which no older record comes."""


def has_changed(address: Address, options: StompOptions, spec: ConsumerSpec) -> bool:
    """Whether a durable subscription had another topic or selector before; records it as it is, and logs a change, or
    that the broker refuses the record."""
    text = f"{spec.destination.name}\n{spec.text or ''}"
    try:
        before = _exchanged(address, options, spec.durable or "", text)
    except MtosiError as error:
        log.warning(
            "durable subscription %r: whether its selector has changed cannot be told, and the broker keeps the old "
            "one: %s: %s",
            spec.durable,
            type(error).__name__,
            error,
        )
        return False
    if before is None or _spaced(before) == _spaced(text):
        return False
    log.warning(
        "durable subscription %r: topic and selector were %r and are %r: a new subscription replaces it, and what it "
        "kept is lost",
        spec.durable,
        before.replace("\n", " "),
        text.replace("\n", " "),
    )
    return True


def forget(address: Address, options: StompOptions, durable: str) -> None:
    """Removes the record of a subscription that was ended."""
    try:
        _exchanged(address, options, durable, None)
    except MtosiError as error:
        log.debug("the record of the durable subscription %r stays: %s", durable, type(error).__name__)


def _spaced(record: str) -> str:
    """Return a record with white space in its one form, but in literals."""
    return _SPACES.sub(lambda found: found[0] if found[0].startswith("'") else " ", record)


def _exchanged(address: Address, options: StompOptions, durable: str, text: str | None) -> str | None:
    """Puts a record in place of the one that is there, and returns that or None.

    On a connection of its own, because the broker ends one where it refuses anything. Raises MtosiError."""
    answers = Collector(threading.Lock(), options.send_timeout)

    def take(_: Link, frames: Sequence[Received]) -> None:
        for _command, headers, body in frames:
            answers.takes(headers.get("subscription", ""), headers, body)

    queue, end = f"{_RECORDS}{options.client_id}.{durable}", uuid.uuid4().hex
    link = Link(address, dataclasses.replace(options, client_id=""), take, lambda _: answers.end(), lambda _: None)
    link.open()
    try:
        link.send([_message(queue, {_END: end}, b"")], confirmed=True)
        headers = {"subscription-type": "ANYCAST"}
        found: list[Answer] = []
        with closing(answers.collect(link, queue, headers)) as records:
            for record in records:
                if record[0].get(_END) == end:
                    break
                found.append(record)
        if text is not None:
            link.send([_message(queue, {"persistent": "true"}, text.encode())], confirmed=True)
    except MtosiError as error:
        raise link.take_refused() or error from None
    finally:
        link.close(options.goodbye())
    texts = [body.decode() for headers, body in found if _END not in headers]
    return texts[-1] if texts else None


def _message(queue: str, headers: dict[str, str], body: bytes) -> Frame:
    return "SEND", {"destination": queue, "destination-type": "ANYCAST", **headers}, body
