"""Log records: their fields for a message, the wire log, and formatters. Credentials are never shown.

A record's text is for people. Its facts are also fields (`extra`): `operation`, `destination`, `correlation_id`,
`message_id`, `batches`, `seconds`, `outcome` and others. `JsonFormatter` writes them, and structlog's `ExtraAdder`
finds them.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import re
from typing import Any, Final

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.jms import Destination, JmsMessage
from mtosi_jms.masking import MASK, is_secret, without_login

_messages: Final = logging.getLogger("mtosi_jms.messages")
_wire: Final = logging.getLogger("mtosi_jms.wire")

_LARGEST: Final = BOUNDS.log_bytes
"""Most octets of an envelope that the wire log shows."""
_OPENING: Final = re.compile(r"<([\w.:-]+)")
_CLOSING: Final = re.compile(r"</([\w.:-]+)")
# A name holds no white space and none of the quotes, so no attribute is looked at twice.
_ATTRIBUTE: Final = re.compile(r"""(\s(?!xmlns)([\w.:-]+)\s*=\s*)("[^"]*"|'[^']*')""")
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def masked_envelope(body: bytes) -> str:
    """Return a body, which need not be XML, as the wire log shows it: elements and attributes with names of credentials
    are masked, and so are passwords in URLs."""
    encoding = "utf-16" if body[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    text = body[:_LARGEST].decode(encoding, "backslashreplace")
    text = _without_elements(text)
    text = _ATTRIBUTE.sub(lambda found: f'{found[1]}"{MASK}"' if is_secret(found[2]) else found[0], text)
    left = len(body) - _LARGEST
    return without_login(text) + (f"... and {left} bytes" if left > 0 else "")


def _without_elements(text: str) -> str:
    """The text with the contents of elements masked whose names are those of credentials. What has no end is masked to
    the end of the text.

    One pass: each search begins where the one before ended, so that no text of a peer takes long.
    """
    parts, done = [], 0
    while (opening := _OPENING.search(text, done)) is not None:
        begin = opening.end()
        if is_secret(opening[1]):
            begin = text.find(">", begin) + 1
            if not begin:
                break
            if text[begin - 2] != "/":
                parts += [text[done:begin], MASK]
                closings = _CLOSING.finditer(text, begin)
                done = next((one.start() for one in closings if one[1] == opening[1]), len(text))
                continue
        parts.append(text[done:begin])
        done = begin
    return "".join(parts) + text[done:]


def log_message(way: str, destination: Destination | None, message: JmsMessage) -> None:
    """Log a message that was `sent to` or `received from` a destination to `mtosi_jms.messages` (headers and
    properties) and `mtosi_jms.wire` (the envelope)."""
    if not _messages.isEnabledFor(logging.DEBUG):
        if _wire.isEnabledFor(logging.DEBUG):
            _log_wire(way, destination, message)
        return
    headers = {
        "JMSMessageID": message.message_id,
        "JMSCorrelationID": message.correlation_id,
        "JMSReplyTo": message.reply_to and str(message.reply_to),
        "JMSType": message.jms_type,
        "JMSDeliveryMode": message.delivery_mode.name,
        "JMSPriority": message.priority,
        "JMSExpiration": message.expiration_ms or None,
        "JMSRedelivered": message.redelivered or None,
    }
    facts: dict[str, Any] = {name: value for name, value in headers.items() if value is not None}
    facts |= {name: MASK if is_secret(name) else value for name, value in message.properties.items()}
    shown = ", ".join(f"{name}={_one_line(value)}" for name, value in facts.items())
    _messages.debug("%s %s: %s", way, destination, without_login(shown), extra=of_message(message, destination))
    if _wire.isEnabledFor(logging.DEBUG):
        _log_wire(way, destination, message)


def _log_wire(way: str, destination: Destination | None, message: JmsMessage) -> None:
    kind, length = message.message_type.value, len(message.body)
    what = masked_envelope(message.body) if length else f"{len(message.content)} values"
    facts = of_message(message, destination)
    _wire.debug("%s %s, %s of %d bytes:\n%s", way, destination, kind, length, what, extra=facts)


def of_message(message: JmsMessage, destination: Destination | None = None) -> dict[str, object]:
    """Return the fields of a log record about a message: `extra=of_message(message)`; the destination is by default its
    own."""
    return {
        "message_id": message.message_id,
        "correlation_id": message.properties.get("MTOSI_correlationId") or message.correlation_id,
        "destination": str(destination or message.destination or ""),
    }


def _one_line(value: object) -> str:
    """Return a value without line breaks and other characters, so that a peer cannot forge lines of the log."""
    text = str(value)
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class LineFormatter(logging.Formatter):
    """Writes one line for each record, without the passwords of URLs. The traceback of an exception follows; without
    tracebacks the line ends with its text."""

    def __init__(
        self, fmt: str = "%(asctime)s %(levelname)s %(name)s: %(message)s", *, tracebacks: bool = True
    ) -> None:
        super().__init__(fmt)
        self._tracebacks = tracebacks

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the base class's name
        """Return the line. Line breaks are escaped, so that a peer cannot forge lines; the wire log keeps its own."""
        line = super().formatMessage(record)
        return line if record.name == _wire.name else _one_line(line)

    def format(self, record: logging.LogRecord) -> str:
        if not self._tracebacks:
            error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
            record = logging.makeLogRecord({**vars(record), "exc_info": None, "exc_text": None, "stack_info": None})
            if error is not None:
                record.msg, record.args = f"{record.getMessage()}: {type(error).__name__}: {error}", None
        return without_login(super().format(record))


class JsonFormatter(logging.Formatter):
    """Writes each record as a JSON object on one line: `time`, `level`, `logger`, `message`, the record's fields, and
    `error` and `traceback` of an exception. Fields with names of credentials and passwords in URLs are masked.

        handler = logging.StreamHandler()
        handler.setFormatter(JsonFormatter())
        logging.getLogger("mtosi_jms").addHandler(handler)
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        facts: dict[str, Any] = {
            "time": dt.datetime.fromtimestamp(record.created, dt.UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": without_login(record.getMessage()),
        }
        for name, value in vars(record).items():
            if name not in _STANDARD and name not in facts and value is not None:
                facts[name] = MASK if is_secret(name) else _plain(value)
        if isinstance(record.exc_info, tuple) and record.exc_info[1] is not None:
            error = record.exc_info[1]
            facts["error"] = without_login(f"{type(error).__name__}: {error}")
            facts["traceback"] = without_login(self.formatException(record.exc_info))
        return json.dumps(facts, ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, bool | int | float):
        return value
    return without_login(str(value))
