"""JMSType as IBM's brokers use it: `mcd://DOMAIN/SET/TYPE?format=FORMAT` says how to parse a message (001-I3)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from mtosi_jms.jms import JmsMessage, MessageType

__all__ = ["BY_KIND", "KINDS", "Mcd", "domain_of", "read_mcd"]

KINDS: Final = {
    "BLOB": (MessageType.BYTES, MessageType.TEXT, MessageType.OBJECT),
    "XML": (MessageType.TEXT,),
    "XMLNS": (MessageType.TEXT,),
    "XMLNSC": (MessageType.TEXT,),
    "MRM": (MessageType.BYTES, MessageType.TEXT),
    "JMSMap": (MessageType.MAP,),
    "JMSStream": (MessageType.STREAM,),
    "MIME": (MessageType.BYTES, MessageType.TEXT),
    "IDOC": (MessageType.BYTES, MessageType.TEXT),
}
"""The kinds of message that each domain takes where a node names it (001-I1)."""

BY_KIND: Final = {
    MessageType.TEXT: "XML",
    MessageType.BYTES: "BLOB",
    MessageType.MAP: "JMSMap",
    MessageType.STREAM: "JMSStream",
    MessageType.OBJECT: "BLOB",
}
"""The domain of a message whose JMSType names none (001-I4); a Message without body has none."""

_NAMED: Final = {name.upper(): name for name in ("MRM", "XML", "XMLNS", "XMLNSC", "IDOC", "MIME")}
_MCD: Final = re.compile(r"mcd://([^/?]+)(?:/([^/?]*))?(?:/((?:\{[^}]*\})?[^/?]*))?/?(?:\?format=(.*))?")


@dataclass(frozen=True, slots=True)
class Mcd:
    """How a message is to be parsed.

    Attributes:
        domain: the parser: MRM, XML, XMLNS, XMLNSC, IDOC or MIME.
        set: the message set, may be empty.
        type: the message's type, may be empty: `{namespace}:name` in MRM.
        format: the physical format, may be empty.
    """

    domain: str
    set: str = ""
    type: str = ""
    format: str = ""

    @property
    def uri(self) -> str:
        """The JMSType."""
        path = f"/{self.set}/{self.type}" if self.set or self.type else ""
        return f"mcd://{self.domain}{path}{f'/?format={self.format}' if self.format else ''}"


def read_mcd(jms_type: str | None) -> Mcd | None:
    """What a JMSType says; None where it is no `mcd://` URI, or names a domain that there is not."""
    found = _MCD.fullmatch(jms_type or "")
    if found is None:
        return None
    domain, of_set, kind, layout = (part or "" for part in found.groups())
    known = _NAMED.get(domain.upper())
    return None if known is None else Mcd(known, of_set, kind, layout)


def domain_of(message: JmsMessage) -> str | None:
    """The domain that a broker parses a message in: what its JMSType says, else by its kind (001-I3, 001-I4, 001-E1).
    `BLOB` for an `mcd://` URI that is malformed; None for a Message without body."""
    mcd = read_mcd(message.jms_type)
    if mcd is not None:
        return mcd.domain
    if (message.jms_type or "").startswith("mcd://"):
        return "BLOB"
    return BY_KIND.get(message.message_type)
