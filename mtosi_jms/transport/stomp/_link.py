"""One STOMP connection from CONNECT to its loss: login, receipts, heart-beats. The reading thread only passes on and
settles."""

from __future__ import annotations

import itertools
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from mtosi_jms.errors import (
    AuthenticationError,
    ClientIdInUseError,
    ConfigError,
    IllegalStateError,
    InvalidDestinationError,
    LoginRefusedError,
    MessageRefusedError,
    MtosiError,
    ResourceLimitError,
    SelectorError,
    TransportError,
    UnansweredError,
    UnknownOutcomeError,
    WriteError,
)
from mtosi_jms.masking import without
from mtosi_jms.transport.stomp._frames import HEART_BEAT, Frame, Received, encode
from mtosi_jms.transport.stomp._options import Address, StompOptions
from mtosi_jms.transport.stomp._wire import FrameWriter, Wire

OnMessages: TypeAlias = Callable[["Link", Sequence[Received]], None]
OnUnsent: TypeAlias = Callable[[Sequence[bytes]], object]
OnSettled: TypeAlias = Callable[[MtosiError | None], object]

_SILENCE: Final = 2.0
"""A broker counts as dead after a silence of so many heart-beat intervals."""

_EARLY: Final = 3
"""Heart-beats are sent so many times as often as promised, because ActiveMQ has no tolerance."""
_SOON: Final = 5.0
"""Seconds within which the reading thread reports to waiting threads why the link ended."""
_LOOKS: Final = 8
"""Number of checks during the shortest heart-beat interval."""


# TLS alerts of a broker that refuses our certificate, or misses one.
_CERTIFICATE_REFUSED: Final = ("CERTIFICATE", "ALERT_UNKNOWN_CA", "ALERT_ACCESS_DENIED", "ALERT_DECRYPT_ERROR")

_COMPARED: Final = 100
"""Characters of a selector that identify it in the broker's text."""
_SHOWN: Final = 300
"""Maximum number of characters from the broker's text in errors."""


# What brokers say in ERROR frames, most specific first.
_WORDS: Final[tuple[tuple[tuple[str, ...], type[MtosiError]], ...]] = (
    (("InvalidClientID", "already connected from"), ClientIdInUseError),
    (("InvalidSelector", "Invalid selector"), SelectorError),
    (("password is invalid", "AMQ229031"), LoginRefusedError),
    (("is not authorized", "Security", "AMQ229032"), AuthenticationError),
    (("DestinationDoesNotExist", "InvalidDestination", "No durable subscription exists"), InvalidDestinationError),
    (("Durable consumer is in use",), IllegalStateError),
    (("maximum data length", "maximum header size", "maximum number of headers"), MessageRefusedError),
    (("ResourceAllocation", "Usage Manager", "is full"), ResourceLimitError),
)


class Receipt:
    """A frame that the broker has to confirm. `on_settled` is called in the reading thread with the error or None, and
    must not block. `error`: it was refused, or no answer will come."""

    __slots__ = ("_done", "_on_settled", "error")

    def __init__(self, on_settled: OnSettled | None = None) -> None:
        self._on_settled = on_settled
        self._done = threading.Event()
        self.error: MtosiError | None = None

    def settle(self, error: MtosiError | None = None) -> None:
        self.error = error
        self._done.set()
        if self._on_settled is not None:
            self._on_settled(error)

    def wait(self, seconds: float) -> bool:
        """Waits for the answer; returns whether the receipt was settled in time."""
        return self._done.wait(max(seconds, 0))


class Link:
    """One connection, from its opening to its loss. `on_messages` is called in the reading thread with the MESSAGE
    frames that came together, `on_lost` once, `on_unsent` with the frames of `send_soon` that were not written."""

    def __init__(
        self,
        address: Address,
        options: StompOptions,
        on_messages: OnMessages,
        on_lost: Callable[[Link], None],
        on_unsent: OnUnsent,
    ) -> None:
        self.address = address
        self.headers: dict[str, str] = {}
        self.lost: TransportError | None = None
        self._refused_last: MtosiError | None = None
        self._was_refused = threading.Event()
        self._options = options
        self._on_messages = on_messages
        self._on_lost = on_lost
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._receipts: dict[str, Receipt] = {}
        self._connected = Receipt()
        self._reason: TransportError | None = None
        self._expected = self._promised = 0.0
        self._wire = Wire(
            address,
            options.tls() if address.tls else None,
            connect_timeout=options.connect_timeout,
            send_timeout=options.send_timeout,
            on_frames=self._frames,
            on_garbage=self._garbage,
            on_lost=self._ended,
            awaits=lambda: bool(self._receipts),
        )
        self.writer = FrameWriter(self._wire, f"writer-{address.host}", on_unsent)

    @property
    def is_up(self) -> bool:
        return self.lost is None and self._wire.is_connected()

    def open(self) -> None:
        """Connects and logs in. Raises LoginRefusedError; ConfigError: the client id is in use; UnansweredError: the
        broker closed the connection without an answer; TransportError: it cannot be reached, is not a STOMP broker, or
        does not answer."""
        deadline = time.monotonic() + self._options.connect_timeout
        try:
            self._wire.start()
        except OSError as error:
            raise unreachable(self.address, error, self._options) from error
        try:
            unsent: WriteError | None = None
            try:
                self._wire.send(encode("CONNECT", self._login()), deadline)
            except WriteError as error:  # the broker may have sent the reason before it closed
                unsent = error
            if not self._connected.wait(deadline - time.monotonic()):
                waited = f"{self._options.connect_timeout:g} s"
                raise TransportError(f"{self.address}: no answer within {waited}; is it a STOMP port?")
            refused = self._connected.error
            if isinstance(refused, AuthenticationError):
                hint = "" if self._options.user else "; no user was given: name one in the URL or in MTOSI_JMS_USER"
                raise LoginRefusedError(f"{refused}{hint}")
            if isinstance(refused, UnknownOutcomeError):  # no answer came
                if self._wire.failure is not None:
                    raise unreachable(self.address, self._wire.failure, self._options)
                hint = ", and does it want a certificate (cert_file)" if self.address.tls else ""
                raise UnansweredError(
                    f"{self.address}: it closed the connection unanswered; is it a STOMP port, with or without TLS"
                    f"{hint}?"
                ) from unsent
            if refused is not None:
                raise refused
        except BaseException:
            self._wire.disconnect_socket()
            raise
        self._agree_on_heart_beats()

    def send(
        self,
        frames: Iterable[Frame],
        deadline: float | None = None,
        *,
        before: Iterable[Frame] = (),
        confirmed: bool = False,
        on_settled: OnSettled | None = None,
        coalesced: bool = False,
    ) -> None:
        """Sends frames in one write, after those of `before`, and returns when they are written, or with `confirmed`
        when the broker has confirmed each of `frames`.

        `on_settled` is called once, unless this raises: with None or the error, in the reading thread, so it must not
        block. `coalesced` frames go out with the next frame of the link, within 5 ms. `deadline`: None is the send
        time-out.

        Raises WriteError: the broker does not have the last frame; UnknownOutcomeError: a frame was sent and not
        confirmed; MtosiError: it was refused."""
        self._check()
        began = time.monotonic() if confirmed else 0.0
        if confirmed and deadline is None:
            deadline = began + self._options.send_timeout
        written = [encode(*frame) for frame in before]
        receipts: dict[str, Receipt] = {}
        for command, headers, body in frames:
            if confirmed or on_settled is not None:
                number = f"r{next(self._numbers)}"
                receipts[number] = Receipt(on_settled)
                headers = {**headers, "receipt": number}
            written.append(encode(command, headers, body))
        if receipts:
            with self._lock:
                self._check()
                self._receipts.update(receipts)
        try:
            self.writer.send(b"".join(written), deadline, coalesced=coalesced)
            if confirmed and deadline is not None:
                self._await(receipts.values(), deadline, began)
        except WriteError:
            if confirmed:
                self._raise_refusal(receipts.values())
            elif receipts and not self._withdraw(receipts):  # the outcome was reported already
                return
            raise
        finally:
            if confirmed:
                self._withdraw(receipts)

    def send_soon(self, *frames: bytes, can_wait: bool = False) -> bool:
        """Has frames sent as soon as working threads leave time for it, or within 5 ms if they `can_wait` for others.
        False at the end of the link, or if too much waits already."""
        return self.lost is None and self.writer.send_soon(*frames, can_wait=can_wait)

    def take_refused(self) -> MtosiError | None:
        """Returns and clears the broker's last refusal that named no frame."""
        refused, self._refused_last = self._refused_last, None
        self._was_refused.clear()
        return refused

    def refusal_of(self, subscription: str, selector: str) -> MtosiError | None:
        """Returns the error if the broker's last refusal that named no frame is that of a subscription."""
        refused = self._refused_last
        named = f"subscription {subscription}" in str(refused)
        # Artemis shows the selector without its prefix, or without colons.
        shown = selector.rpartition("expressions:")[2].replace(":", "")[:_COMPARED]
        is_shown = isinstance(refused, SelectorError) and shown in str(refused).replace(":", "")
        return refused if named or is_shown else None

    def await_refused(self, seconds: float) -> MtosiError | None:
        """Waits for such a refusal, because ActiveMQ sends it from another thread, which may be late."""
        self._was_refused.wait(seconds)
        return self.take_refused()

    def watch(self, now: float) -> float:
        """Sends a heart-beat if one is due, and ends a connection that was silent too long. Returns seconds until the
        next check."""
        if self._promised and now - self._wire.last_written >= self._promised / _EARLY:
            self._wire.beat(HEART_BEAT)
        if self._expected and now - self._wire.last_read > self._expected * _SILENCE:
            self.end(TransportError(f"{self.address}: no sign of life for {now - self._wire.last_read:.1f} s"))
        return min(filter(None, (self._promised, self._expected)), default=self._options.heart_beat) / _LOOKS

    def close(self, deadline: float) -> None:
        try:
            self.send([("DISCONNECT", {}, b"")], deadline, confirmed=True)
        except MtosiError:
            pass
        finally:
            self.end(TransportError("the connection is closed"))

    def end(self, reason: TransportError) -> None:
        """Ends the link at once; the reading thread does the rest."""
        with self._lock:
            self._reason = self._reason or reason
        self._wire.disconnect_socket()

    def _check(self) -> None:
        if self.lost is not None:  # a new error each time: one raised again and again would gather tracebacks
            raise WriteError(str(self.lost))

    def _await(self, receipts: Iterable[Receipt], deadline: float, began: float) -> None:
        for receipt in receipts:
            if not receipt.wait(deadline - time.monotonic()):
                waited = max(deadline - began, 0.0)
                raise UnknownOutcomeError(
                    f"{self.address}: no receipt within {waited:.1f} s: the outcome is unknown; the broker may be full "
                    "or busy"
                )
            if receipt.error is not None:
                raise receipt.error

    def _raise_refusal(self, receipts: Iterable[Receipt]) -> None:
        """Raises the reason why the broker closed the connection, if it refused one of the frames."""
        for receipt in receipts:
            known = isinstance(self._reason, MessageRefusedError) and receipt.wait(_SOON)
            if known and not isinstance(receipt.error, UnknownOutcomeError | None):
                raise receipt.error from None

    def _withdraw(self, receipts: Iterable[str]) -> bool:
        """Removes receipts; returns whether any was open."""
        with self._lock:
            open_ones = [self._receipts.pop(number, None) for number in receipts]
        return any(open_ones)

    def _login(self) -> dict[str, str]:
        options = self._options
        beats = int(options.heart_beat * 1000)
        login = {
            "accept-version": "1.2",
            "host": options.virtual_host or self.address.host,
            "heart-beat": f"{beats},{beats}",
        }
        optional = {"login": options.user, "passcode": options.password, "client-id": options.client_id}
        for name, value in optional.items():
            if any(character in value for character in "\0\r\n"):
                raise ConfigError(f"{name}: it must not contain line ends or NUL")
            if value:
                login[name] = value
        return login

    def _agree_on_heart_beats(self) -> None:
        mine = self._options.heart_beat
        theirs = [int(part) / 1000 for part in self.headers.get("heart-beat", "0,0").split(",")]
        self._expected = max(mine, theirs[0]) if theirs[0] else 0.0
        self._promised = max(mine, theirs[1]) if theirs[1] else 0.0

    # The methods below run in the reading thread.

    def _frames(self, frames: list[Received]) -> None:
        for is_message, some in itertools.groupby(frames, _is_message):
            if is_message:
                self._on_messages(self, list(some))
                continue
            for command, headers, body in some:
                match command:
                    case "RECEIPT":
                        self._settle(headers.get("receipt-id"), None)
                    case "CONNECTED":
                        self.headers = headers
                        self._connected.settle()
                    case "ERROR":
                        self._refused(headers, body)

    def _garbage(self, error: TransportError) -> None:
        self.end(TransportError(f"{self.address}: {error}; is it a STOMP port?"))

    def _refused(self, headers: Mapping[str, str], body: bytes) -> None:
        refused = _refusal(self.address, headers, body, secret=self._options.password)
        if self._settle(headers.get("receipt-id"), refused):
            return
        self._refused_last = refused
        self._was_refused.set()
        reason = refused if isinstance(refused, TransportError) else TransportError(str(refused))
        with self._lock:  # nobody waits for it: should the broker hang up now, this is why
            self._reason = reason
        if isinstance(reason, MessageRefusedError):  # its frame may still be on its way out
            self.end(reason)
        if not self.headers:
            self._connected.settle(refused)

    def _settle(self, number: str | None, refused: MtosiError | None) -> bool:
        with self._lock:
            receipt = self._receipts.pop(number or "", None)
        if receipt is not None:
            receipt.settle(refused)
        return receipt is not None

    def _ended(self) -> None:
        self.writer.end()
        with self._lock:
            self.lost = self._reason or TransportError(f"{self.address}: the connection was lost")
            # Of several frames nobody knows which one was too large; sent again one by one, it is found.
            refused = self.lost if isinstance(self.lost, MessageRefusedError) and len(self._receipts) == 1 else None
            waiting = [self._connected, *self._receipts.values()]
            self._receipts.clear()
        for receipt in waiting:
            unknown = UnknownOutcomeError(f"{self.lost}; no receipt came: the outcome is unknown")
            receipt.settle(receipt.error or refused or unknown)
        self._on_lost(self)


def _is_message(frame: Received) -> bool:
    return frame[0] == "MESSAGE"


def _refusal(address: Address, headers: Mapping[str, str], body: bytes, *, secret: str) -> MtosiError:
    """Returns the error for an ERROR frame, without `secret`."""
    line = body.decode("utf-8", "replace").partition("\n")[0].strip()
    line = line if ": " in line or len(line) > len(headers.get("message", "")) else headers.get("message", line)
    line = line.partition(" CoreMessage[")[0]  # Artemis shows the message, with all that its properties hold
    other = MessageRefusedError if "receipt-id" in headers else TransportError  # it says to which frame it answers
    kind = next((kind for words, kind in _WORDS if any(word in line for word in words)), other)
    text = f"{address}: {without(line, secret)[:_SHOWN]}"
    if issubclass(kind, AuthenticationError):
        text = f"{text}; check user and password, and what this user may do"
    return kind(text)


def unreachable(address: Address, error: OSError, options: StompOptions) -> TransportError:
    if isinstance(error, ssl.SSLCertVerificationError):
        return TransportError(
            f"{address}: its certificate is refused ({error.verify_message}); check ca_file, and that the certificate "
            "is made out to this host"
        )
    if isinstance(error, ssl.SSLError) and any(word in (error.reason or "") for word in _CERTIFICATE_REFUSED):
        problem = "refuses our certificate" if options.has_certificate else "wants a certificate, and got none"
        return AuthenticationError(f"{address}: it {problem} ({error.reason}); check cert_file and key_file")
    if isinstance(error, ssl.SSLError):
        return TransportError(f"{address}: TLS failed ({error.reason}); check port, ca_file and cert_file")
    reason = error.strerror or str(error) or type(error).__name__
    return TransportError(f"{address}: {reason}; check host, port and firewall, and that the broker runs")
