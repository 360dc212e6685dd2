"""The receiver fills a spool while a stream reads it. It writes and syncs each message, then acknowledges it.

This module needs no Spark.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mtosi_jms.errors import (
    AuthenticationError,
    ConfigError,
    IllegalStateError,
    MtosiError,
    TransportError,
)
from mtosi_jms.masking import is_secret, passwords_in
from mtosi_jms.spool import DurableLanding, scan
from mtosi_jms.transport import AckMode, Backoff, Consumer, connect

_log = logging.getLogger(__package__)

_LOOK: Final = 0.1
"""Seconds between checks whether to stop and whether the spool has room again."""
_CLOSE_SECONDS: Final = 30.0
_BACKOFF: Final = Backoff(initial=0.5, maximum=15.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverOptions:
    """The source of messages and the limits of receiving.

    Attributes:
        url: of the provider, without a password.
        destination: `queue:NAME`, `topic:NAME` or a name of `names`.
        selector: selects messages; empty for all.
        durable: name of a durable subscription; empty for none.
        shared: whether the subscription is shared.
        names: file with a naming context; empty for none.
        consumers: number of consumers, each with a connection of its own.
        most: receiving pauses when the spool has this many entries.
        connection: further options of `mtosi_jms.connect`.

    Raises:
        ConfigError: an option that would show a secret, or options that exclude each other.
    """

    url: str
    destination: str
    selector: str = ""
    durable: str = ""
    shared: bool = False
    names: str = ""
    consumers: int = 1
    most: int = 10_000
    connection: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        secret = next((name for name in self.connection if is_secret(name) and not name.endswith("_file")), None)
        if passwords_in(self.url) or secret is not None:
            raise ConfigError(
                f"{'url holds a password' if secret is None else f'connect.{secret} is a secret'}, and Spark shows "
                "options: give connect.password_file, or set MTOSI_JMS_PASSWORD_FILE where the driver runs"
            )
        if self.consumers > 1 and (self.connection.get("client_id") or (self.durable and not self.shared)):
            raise ConfigError("several consumers have no client_id in common, and only a shared durable subscription")


class Receiver:
    """Threads that receive into a spool until `stop`.

    They reconnect a lost connection without end. All threads stop if a first connection fails, a login is refused,
    options do not fit, or the spool cannot be written; `check` then raises the error.
    """

    def __init__(self, options: ReceiverOptions, landing: DurableLanding) -> None:
        self._options = options
        self._landing = landing
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._room = 0
        self._is_bounded = True
        self._failure: MtosiError | None = None
        self._quiet: dict[int, float] = {}
        """The seconds that each connected thread has waited without a message."""
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name=f"mtosi-receiver-{number}", daemon=True)
            for number in range(options.consumers)
        ]

    def start(self) -> None:
        """Begin to receive."""
        for thread in self._threads:
            thread.start()

    def check(self) -> None:
        """Check that the receiver still works. Raises MtosiError: the error that ended it."""
        if self._failure is not None:
            raise self._failure

    def drain(self, quiet: float, *, bounded: bool = True) -> None:
        """Wait until no message has arrived for `quiet` seconds or, if `bounded`, the spool is full."""
        self._is_bounded = bounded
        while not (self._is_quiet(quiet) or (bounded and self._is_full())):
            self.check()
            if self._stop.wait(_LOOK / 2):
                break
        self._is_bounded = True
        self.check()

    def _is_quiet(self, quiet: float) -> bool:
        with self._lock:
            waited = list(self._quiet.values())
        return len(waited) == len(self._threads) and 0 < min(waited) >= quiet

    def stop(self) -> None:
        """Stop all threads; the provider redelivers messages that were not acknowledged. May be called again."""
        self._stop.set()
        deadline = time.monotonic() + _CLOSE_SECONDS
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self, number: int) -> None:
        failures = 0
        was_connected = False
        while not self._stop.is_set():
            try:
                self._receive_on(number)
            except (TransportError, IllegalStateError) as error:
                is_connected = number in self._quiet
                was_connected = was_connected or is_connected
                if isinstance(error, AuthenticationError) or not was_connected:
                    self._fail(error)
                    return
                failures = 1 if is_connected else failures + 1
                _log.warning("receiving from %s: %s", self._options.destination, error)
                self._stop.wait(_BACKOFF.seconds(failures))
            except MtosiError as error:
                self._fail(error)
                return
            finally:
                with self._lock:
                    self._quiet.pop(number, None)

    def _fail(self, error: MtosiError) -> None:
        self._failure = self._failure or error
        self._stop.set()

    def _receive_on(self, number: int) -> None:
        options = self._options
        opened = connect(options.url, names=options.names or None, **options.connection)
        with opened as connection, connection.session(ack_mode=AckMode.CLIENT) as session:
            consumer = session.consumer(
                options.destination, options.selector or None, durable=options.durable or None, shared=options.shared
            )
            connection.start()
            self._waited(number, None)
            self._receive(consumer, number)

    def _receive(self, consumer: Consumer, number: int) -> None:
        while not self._stop.is_set():
            if self._is_bounded and not self._take_room():
                self._stop.wait(_LOOK)
                self._waited(number, _LOOK)
                continue
            delivery = consumer.receive(_LOOK)
            self._waited(number, _LOOK if delivery is None else None)
            if delivery is None:
                continue
            self._landing.land(delivery.message)
            try:
                delivery.acknowledge()
            except (TransportError, IllegalStateError) as error:  # the index recognizes the redelivery
                _log.debug("a message in the spool was not acknowledged: %s", error)

    def _waited(self, number: int, seconds: float | None) -> None:
        """Note that a thread has waited some seconds without a message; None if it has one, or has just connected."""
        with self._lock:
            self._quiet[number] = 0.0 if seconds is None else self._quiet.get(number, 0.0) + seconds

    def _take_room(self) -> bool:
        with self._lock:
            if self._room > 0:
                self._room -= 1
                return True
        room = self._options.most - len(scan(self._landing.spool.folder).envelopes)
        with self._lock:
            self._room = min(room, 100) - 1
        return room > 0

    def _is_full(self) -> bool:
        return len(scan(self._landing.spool.folder).envelopes) >= self._options.most
