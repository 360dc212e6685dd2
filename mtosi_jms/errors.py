"""Every error that the SDK raises, in one tree below `MtosiError`.

Each error carries its facts as attributes and builds its own sentence. No text holds a credential. An error is a value:
it can be pickled and copied, and equals another one of its class with the same text and the same facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from mtosi_jms.masking import without_login

__all__ = [
    "ArchiveError",
    "AuthenticationError",
    "BridgeAlreadyStarted",
    "BridgeError",
    "BridgeInactive",
    "BridgeNotFound",
    "ClientIdInUseError",
    "ConfigError",
    "DecodeError",
    "EncodeError",
    "EnvelopeError",
    "EventError",
    "ExchangeError",
    "FileLocationError",
    "ForbiddenXmlError",
    "HandlerTimeoutError",
    "HeaderError",
    "IllegalStateError",
    "IncompleteBatchError",
    "InvalidDestinationError",
    "InvalidExternalEndPoints",
    "JournalDamageError",
    "LoginRefusedError",
    "MalformedXmlError",
    "MessageRefusedError",
    "MissingExtraError",
    "MqFormatError",
    "MtosiError",
    "MtosiFault",
    "NamingError",
    "ProcessingFailureError",
    "ProtocolError",
    "ReferenceRefusedError",
    "ReplyTimeoutError",
    "ResourceLimitError",
    "SchemaError",
    "SelectorError",
    "SendTimeoutError",
    "SoapJmsFault",
    "SpoolError",
    "SpoolFullError",
    "SpoolInUseError",
    "TransactionActive",
    "TransactionAlreadyActive",
    "TransportError",
    "UnansweredError",
    "UnknownOutcomeError",
    "UnsupportedQoS",
    "UnsupportedTransaction",
    "WriteError",
    "XmlError",
]


class MtosiError(Exception):
    """Root of all errors of the SDK."""

    def __reduce__(self) -> tuple[Any, ...]:
        # What `__init__` takes is not what it hands to Exception, so a copy is made without it.
        return _restored, (type(self), self.args), vars(self) or None

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self) or not isinstance(other, MtosiError):
            return NotImplemented
        return self is other or (self.args == other.args and vars(self) == vars(other))

    def __hash__(self) -> int:
        return hash((type(self), str(self.args)))


def _restored(cls: type[MtosiError], args: tuple[Any, ...]) -> MtosiError:
    """An error that was pickled or copied, as yet without its attributes."""
    error = cls.__new__(cls, *args)
    error.args = args
    return error


class ConfigError(MtosiError, ValueError):
    """The SDK was set up or called wrongly; nothing was sent."""


class NamingError(ConfigError, LookupError):
    """A destination name that cannot be resolved.

    Attributes:
        name: the name that was looked up.
        near: known names that resemble it.
    """

    def __init__(
        self, name: str, reason: str = "no destination is known by this name", near: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.near = tuple(near)
        hint = f"; did you mean {', '.join(self.near)}?" if self.near else ""
        # Who takes a URL for a name may have a password in it.
        super().__init__(f"{without_login(name)!r}: {without_login(reason)}{hint}")


class HeaderError(ConfigError):
    """An MTOSI header that a sender must not send as it is.

    Attributes:
        field: XML name of the header field at fault.
    """

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        super().__init__(f"header field {field}: {reason}")


class ClientIdInUseError(ConfigError):
    """Another connection has the client id, or had it until a moment ago."""


class MissingExtraError(ConfigError, ImportError):
    """An optional dependency is not installed.

    Attributes:
        extra: the extra of the distribution that brings it; empty: none does.
    """

    def __init__(self, module: str, extra: str = "") -> None:
        self.extra = extra
        source = f"'mtosi-jms[{extra}]'" if extra else module
        super().__init__(f"{module} is not installed: pip install {source}")


class XmlError(MtosiError, ValueError):
    """A document at fault.

    Attributes:
        source: file name or other origin, None where unknown.
        line: line of the document, counted from 1, None where unknown.
        path: path of the element at fault, None where unknown.
    """

    def __init__(
        self, message: str, *, source: str | None = None, line: int | None = None, path: str | None = None
    ) -> None:
        self.message = message
        self.source = source
        self.line = line
        self.path = path
        super().__init__(message)

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.source, self.line) if part is not None)
        if self.path:
            place = f"{place} {self.path}".strip()
        if place and self.source is None and self.line is not None:
            place = f"line {place}"
        return f"{place}: {self.message}" if place else self.message


class MalformedXmlError(XmlError):
    """Not well-formed, or it ends early."""


class ForbiddenXmlError(XmlError):
    """A document type, an entity, or more depth or size than allowed."""


class DecodeError(XmlError):
    """Content that does not fit its type; raised in strict mode or by `validate="fail"`, otherwise a warning."""


class EnvelopeError(XmlError):
    """Well-formed XML that is not a SOAP envelope, or an envelope without an MTOSI message."""


class _AtPath(Exception):
    """What the two errors below have in common."""

    def __init__(self, message: str, path: str = "") -> None:
        self.message = message
        self.path = path
        super().__init__(f"{path}: {message}" if path else message)

    def inside(self, step: str) -> Self:
        """The same error seen from what holds the one at fault. `step`: the name of the part, with `[index]` for an
        item of a list."""
        return type(self)(self.message, f"{step}.{self.path}" if self.path else step)


class EncodeError(_AtPath, MtosiError, ValueError):
    """An object that cannot become valid XML.

    Attributes:
        message: what is wrong, without the place.
        path: where in the object, as attribute names joined by dots, empty where it is the object itself.
    """


class MtosiFault(MtosiError):
    """The peer answered with a SOAP fault, or a supplier's handler wants to.

    Generated packages derive one class for each kind of exception that their services declare.

    Attributes:
        kind: XML local name of the exception kind (`entityNotFound`), empty where the fault has no MTOSI detail.
        reason: the peer's words: the `reason` of the detail where it has one, else the fault string. A change made here
            is written there.
        detail: the decoded exception element, None where there is none.
        header: the MTOSI header found in the detail or in the SOAP header (C17), or None.
        fault_code: SOAP fault code without prefix (`Server`).
        fault_string: SOAP fault string.
        raw: the fault element as XML bytes, None for a fault that was made here.
    """

    __detail__: ClassVar[type[Any] | None] = None
    __kind__: ClassVar[str] = ""
    """The exception kind where it is not the name of the element in `__detail__`; set by generated classes."""

    def __init__(
        self,
        reason: str = "",
        *,
        kind: str = "",
        detail: Any = None,
        header: Any = None,
        fault_code: str = "Server",
        fault_string: str = "",
        raw: bytes | None = None,
    ) -> None:
        self.reason = reason
        self.kind = kind
        self.detail = detail
        self.header = header
        self.fault_code = fault_code
        self.fault_string = fault_string or reason
        self.raw = raw
        super().__init__(f"{kind or fault_code}: {self.fault_string}" if self.fault_string else kind or fault_code)


class SoapJmsFault(MtosiFault):
    """A fault of W3C's SOAP over JMS: the message breaks a rule of that binding.

    Attributes:
        fault_code: the W3C's name for it, such as `missingContentType`.
    """


class ExchangeError(MtosiError):
    """A request whose replies do not add up.

    Attributes:
        correlation_id: the request's correlationId.
    """

    def __init__(self, message: str, correlation_id: str = "") -> None:
        self.correlation_id = correlation_id
        super().__init__(f"{message} (correlationId {correlation_id!r})" if correlation_id else message)


class ReplyTimeoutError(ExchangeError, TimeoutError):
    """No reply in time; whether the supplier got the request is unknown, unless the text says that it was not sent.

    Attributes:
        reason: how long was waited, and what came.
        clock: which time-out fired ("first reply", "gap", "total"); empty where none did: no reply could come any more.
        asked: operation and destination, empty where unknown.
        advice: what to look at, empty where nothing is known of that.
    """

    def __init__(
        self, reason: str, correlation_id: str = "", *, clock: str = "", asked: str = "", advice: str = ""
    ) -> None:
        self.reason = reason
        self.clock = clock
        self.asked = asked
        self.advice = advice
        super().__init__(_sentence(asked, reason, advice), correlation_id)


class IncompleteBatchError(ExchangeError):
    """A MultipleBatchResponse ended, or its time ran out, with batches missing (P32, C60).

    Attributes:
        missing: the sequence numbers that are known to be missing.
        end_seen: whether the batch with the end-of-reply mark arrived.
        batches: what did arrive and was not yet handed out, by sequence number.
        clock: which time-out fired ("gap", "total", "grace"); empty where none did: no reply could come any more.
        reason: how long was waited, and what came; empty where nothing is known of that.
        asked: operation and destination, empty where unknown.
        advice: what to look at, empty where nothing is known of that.
    """

    def __init__(
        self,
        correlation_id: str,
        missing: Sequence[int],
        *,
        end_seen: bool,
        batches: dict[int, Any] | None = None,
        clock: str = "",
        reason: str = "",
        asked: str = "",
        advice: str = "",
    ) -> None:
        self.missing = tuple(missing)
        self.end_seen = end_seen
        self.batches = dict(batches or {})
        self.clock = clock
        self.reason = reason
        self.asked = asked
        self.advice = advice
        fired = f"the {clock} time-out fired" if clock else ""
        gaps = f"missing batches {_ranges(self.missing)}" if self.missing else ""
        end = "" if end_seen else "the end of the reply never came"
        text = "; ".join(filter(None, (fired, reason, gaps, end)))
        super().__init__(_sentence(asked, f"incomplete reply: {text}", advice), correlation_id)


def _sentence(asked: str, reason: str, advice: str) -> str:
    text = f"{asked}: {reason}" if asked else reason
    return f"{text}; {advice}" if advice else text


def _ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers as text, neighbours joined: `2, 5-9`; a long gap must not make a long message."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


class ProtocolError(ExchangeError):
    """The peer broke the communication pattern."""


class SelectorError(MtosiError, ValueError):
    """A selector that does not parse or may not be used.

    Attributes:
        message: what is wrong, without the place.
        position: offset in the selector text, from 0.
    """

    def __init__(self, message: str, position: int = 0) -> None:
        self.message = message
        self.position = position
        super().__init__(f"{message} at position {position}")


class TransportError(MtosiError, ConnectionError):
    """The provider failed, or the way to it did."""


class InvalidDestinationError(TransportError):
    """No such destination, or not ours to use (R2c)."""


class ResourceLimitError(TransportError):
    """A bounded destination is full."""


class AuthenticationError(TransportError):
    """The provider refused the login, or what was asked for with it."""


class LoginRefusedError(AuthenticationError):
    """The provider refused the login itself: nothing can be asked of it until user and password are right."""


class MessageRefusedError(TransportError):
    """The provider refused one message for its own sake: it is too large, say, or malformed. Others may pass."""


class UnansweredError(TransportError):
    """The provider closed a connection that was being made, and said nothing."""


class WriteError(TransportError):
    """What was to be sent was not, or not to its end: the provider has not got it.

    Attributes:
        written: bytes that went out before.
    """

    written = 0


class UnknownOutcomeError(TransportError):
    """The connection was lost, or the time ran out, before the provider confirmed what it was sent.

    It may have the message or not, and the SDK does not send it again: the application decides. A message that was sent
    PERSISTENT carries `MTOSIX_messageId`, by which a receiver tells a second copy.

    Attributes:
        messages: what may or may not have arrived, each a `JmsMessage` with its destination: to send one again,
            `session.send(message.destination, message)`. Empty where nothing was sent but an acknowledgement.
    """

    def __init__(self, message: str, messages: Sequence[Any] = ()) -> None:
        self.messages: tuple[Any, ...] = tuple(messages)
        super().__init__(message)


class SendTimeoutError(TransportError, TimeoutError):
    """The outcome of an asynchronous send did not come in time; whether the provider has the message is unknown.

    Attributes:
        seconds: how long it was waited for.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"the send was not confirmed within {seconds:g} s; whether the provider has it is unknown")


class IllegalStateError(MtosiError, RuntimeError):
    """The object is closed, in use by another thread, or not made for what it was asked for.

    The caller is at fault and not the provider: trying again does not help, so it is not a TransportError.
    """


class HandlerTimeoutError(MtosiError, TimeoutError):
    """A handler of the consumer runtime ran past its deadline; whether it did its work is unknown.

    Attributes:
        seconds: how long it had.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"the handler did not return within {seconds:g} s")


class SpoolError(MtosiError, OSError):
    """A landing that cannot be written or read.

    Attributes:
        path: the file or folder.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: {reason}")

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class ArchiveError(SpoolError):
    """A packed file that is damaged, or that may not be unpacked: unsafe names, links, more than its bounds allow."""


class JournalDamageError(SpoolError):
    """The database of an outbox or inbox, or a message in it, is not as it was written; the reason says where."""


class SpoolInUseError(SpoolError):
    """A folder that another process has open, or another object of this one."""


class SpoolFullError(SpoolError):
    """An outbox or inbox that has reached a limit, or whose disk is full; nothing new was stored."""


class FileLocationError(MtosiError, ValueError):
    """A fileLocationURI that may not be followed, or that leads to nothing (C18).

    Attributes:
        scheme: of the URI, in small letters, empty where it has none. The rest of an address elsewhere is not kept: it
            may hold a password.
        path: the file or folder on this machine, empty where the URI names none.
    """

    def __init__(self, reason: str, *, scheme: str = "", path: str = "") -> None:
        self.scheme = scheme
        self.path = path
        super().__init__(f"fileLocationURI: {path}: {reason}" if path else f"fileLocationURI: {reason}")


class SchemaError(MtosiError, ValueError):
    """WSDL or XSD that cannot be used.

    Attributes:
        message: what is wrong, without the place.
        file: the file at fault.
        line: its line, from 1, or None.
        rule: id of the finding rule, empty where there is none.
    """

    def __init__(self, message: str, *, file: str = "", line: int | None = None, rule: str = "") -> None:
        self.message = message
        self.file = file
        self.line = line
        self.rule = rule
        place = ":".join(str(part) for part in (file or None, line) if part is not None)
        super().__init__(f"{place}: {message}" if place else message)


class MqFormatError(MtosiError, ValueError):
    """Octets that are not a message of IBM MQ, or a message that has no such octets.

    Attributes:
        message: what is wrong, without the place.
        offset: where in the octets the structure at fault begins; 0 where a message is written.
    """

    def __init__(self, message: str, offset: int) -> None:
        self.message = message
        self.offset = offset
        super().__init__(f"offset {offset}: {message}" if offset else message)


class BridgeError(MtosiError):
    """The bridge between JMS and the Notification Service failed, or was asked for what it cannot do."""


class EventError(_AtPath, BridgeError, ValueError):
    """An event, a TypeCode or a message that cannot become what it should.

    Attributes:
        message: what is wrong, without the place.
        path: where in the event or message, empty where it is the whole.
    """


class UnsupportedQoS(BridgeError, ValueError):
    """Quality of service that the mapping or the channel does not have; nothing was sent (000-C3).

    Attributes:
        names: the properties of CosNotification at fault.
    """

    def __init__(self, reason: str, names: Sequence[str] = ()) -> None:
        self.reason = reason
        self.names = tuple(names)
        super().__init__(f"{', '.join(self.names)}: {reason}" if self.names else reason)


class ReferenceRefusedError(BridgeError):
    """A reference of a peer's that leads to a host which is not allowed; it was not followed.

    Attributes:
        host: where it leads.
        port: there.
    """

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        super().__init__(f"a reference leads to {host}, port {port}, which is not allowed; it is not followed")


class ProcessingFailureError(BridgeError):
    """An element manager of MTNM did not do what it was asked for: its ProcessingFailureException.

    Attributes:
        exception_type: MTNM's, such as `EXCPT_NOT_IMPLEMENTED`; its number where it is none of MTNM's.
        reason: where, and what the element manager says of it.
    """

    def __init__(self, exception_type: str, reason: str) -> None:
        self.exception_type = exception_type
        self.reason = reason
        super().__init__(f"{exception_type}: {reason}" if reason else exception_type)


class InvalidExternalEndPoints(BridgeError, ValueError):
    """Endpoints of which no bridge can be made; all that is wrong is told together (000-B9).

    Attributes:
        errors: pairs of role (`SOURCE`, `SINK`) and code (`INVALID_CHANNELID`, `INVALID_JMSDESTINATION`,
            `MISMATCH_ENDPOINTROLE_NOTIFSTYLE`).
        reasons: a sentence for each pair.
    """

    def __init__(self, errors: Sequence[tuple[str, str]], reasons: Sequence[str] = ()) -> None:
        self.errors = tuple(errors)
        self.reasons = tuple(reasons)
        texts = self.reasons or [""] * len(self.errors)
        super().__init__(
            "; ".join(
                f"{role}: {code}{f' ({reason})' if reason else ''}"
                for (role, code), reason in zip(self.errors, texts, strict=False)
            )
        )


class BridgeNotFound(BridgeError, LookupError):
    """The factory has no bridge with this id (000-B12).

    Attributes:
        bridge_id: the id that was asked for.
    """

    def __init__(self, bridge_id: int) -> None:
        self.bridge_id = bridge_id
        super().__init__(f"no bridge has the id {bridge_id}")


class BridgeAlreadyStarted(BridgeError):
    """The bridge is active (000-B16)."""


class BridgeInactive(BridgeError):
    """The bridge is not active (000-B17)."""


class UnsupportedTransaction(BridgeError):
    """These endpoints cannot take part in a transaction (000-T3)."""


class TransactionAlreadyActive(BridgeError):
    """A routing transaction is in progress (000-T6)."""


class TransactionActive(BridgeError):
    """A routing transaction is in progress: transactions end with it (000-T7)."""
