"""JMS URIs by RFC 6167: `jms:jndi:NAME`, `jms:queue:NAME`, `jms:topic:NAME`, with parameters (C42).

    jms:queue:MTOSI.EMS?deliveryMode=PERSISTENT&timeToLive=60000&priority=6&replyToName=MTOSI.OS

In the variant `jndi` the name is one of the naming context, and so is `replyToName`. In the variants `queue` and
`topic` the name is a physical name; `replyToName` is that of a queue, `topicReplyToName` that of a topic. Unknown
parameters are kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote

from mtosi_jms.errors import NamingError
from mtosi_jms.jms._destinations import ADMINISTERED, Destination
from mtosi_jms.jms.message import LONG_MAX, DeliveryMode, FrozenMap
from mtosi_jms.masking import shown_half_made

_VARIANTS: Final = ("jndi", *ADMINISTERED)
_NAME_SAFE: Final = "/:@!$&'()*+,;=~"
_VARIANT: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=@-]+")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True, repr=False)
class JmsUri:
    """The parts of a URI of the scheme `jms`; `str` gives the whole URI, escaped.

    Only `str` shows the values of parameters, because `jndiURL` and vendors' parameters may hold credentials.

    Attributes:
        variant: `jndi`, `queue`, `topic`, or a vendor's.
        name: the destination's name, unescaped, not empty.
        parameters: by name, both unescaped, in the order given.

    Raises:
        NamingError: the variant or the name is missing, or a known parameter has an invalid value.
    """

    variant: str
    name: str
    parameters: FrozenMap[str, str] = field(default=FrozenMap())

    def __post_init__(self) -> None:
        if not isinstance(self.parameters, Mapping):
            raise NamingError(str(self.variant), "parameters are a mapping of names to values")
        texts: tuple[object, ...] = (self.variant, self.name, *self.parameters, *self.parameters.values())
        for text in texts:
            if not isinstance(text, str) or _SURROGATE.search(text):
                raise NamingError(f"jms:{self.variant!r}", "names and values are text, of characters that UTF-8 has")
        if not _VARIANT.fullmatch(self.variant):
            raise NamingError(self.address, "a JMS URI reads jms:queue:X, jms:topic:X or jms:jndi:NAME")
        if not self.name:
            raise NamingError(self.address, "a JMS URI names a destination")
        if "" in self.parameters:
            raise NamingError(self.address, "a parameter without a name")
        self._check("deliveryMode", DeliveryMode.__members__, "PERSISTENT or NON_PERSISTENT")
        self._check("priority", [str(priority) for priority in range(10)], "0 to 9")
        life = self.parameters.get("timeToLive", "0")
        if not (life.isascii() and life.isdigit()) or len(life.lstrip("0")) > 19 or int(life) > LONG_MAX:
            raise NamingError(self.address, "parameter timeToLive: whole milliseconds, 0 for ever")
        if self.variant in ADMINISTERED and {"replyToName", "topicReplyToName"} <= set(self.parameters):
            raise NamingError(self.address, "replyToName and topicReplyToName exclude each other")

    def _check(self, parameter: str, allowed: object, words: str) -> None:
        value = self.parameters.get(parameter)
        if value is not None and value not in allowed:  # type: ignore[operator]
            raise NamingError(self.address, f"parameter {parameter}: {words}")

    @classmethod
    def parse(cls, text: str) -> JmsUri:
        """Parse a URI. The letter case of the scheme and of the three known variants does not matter. If a parameter
        comes twice, its last value counts. Raises NamingError: the text is not a JMS URI, or a parameter has a wrong
        value. The error does not show the parameters."""
        if not isinstance(text, str):
            raise NamingError(type(text).__name__, "a JMS URI is text")
        path, mark, query = text.strip().partition("?")
        scheme, _, rest = path.partition(":")
        variant, colon, name = rest.partition(":")
        if scheme.lower() != "jms" or not colon or not _VARIANT.fullmatch(variant):
            raise NamingError(path, "a JMS URI reads jms:queue:X, jms:topic:X or jms:jndi:NAME")
        parameters: dict[str, str] = {}
        for pair in query.split("&") if mark else ():
            key, equals, value = pair.partition("=")
            if not equals:
                raise NamingError(path, "a parameter reads name=value")
            parameters[_unescaped(key, path)] = _unescaped(value, path)
        folded = variant.lower()
        return cls(folded if folded in _VARIANTS else variant, _unescaped(name, path), FrozenMap(parameters))

    def __str__(self) -> str:
        pairs = "&".join(f"{quote(key, safe='~')}={quote(value, safe='~')}" for key, value in self.parameters.items())
        return f"{self.address}?{pairs}" if pairs else self.address

    @property
    def address(self) -> str:
        name = quote(self.name, safe=_NAME_SAFE)
        return f"jms:{self.variant}:{'%2F' + name[1:] if name.startswith('/') else name}"

    @property
    def destination(self) -> Destination | None:
        """The destination of the variants `queue` and `topic`; None for the others. Raises ConfigError: the name holds
        a control character."""
        kind = ADMINISTERED.get(self.variant)
        return None if kind is None else kind(self.name)

    @property
    def delivery_mode(self) -> DeliveryMode | None:
        mode = self.parameters.get("deliveryMode")
        return None if mode is None else DeliveryMode[mode]

    @property
    def time_to_live_ms(self) -> int | None:
        """The parameter `timeToLive`, in milliseconds; 0: never expires."""
        life = self.parameters.get("timeToLive")
        return None if life is None else int(life)

    @property
    def priority(self) -> int | None:
        priority = self.parameters.get("priority")
        return None if priority is None else int(priority)

    @property
    def reply_to(self) -> str | None:
        """The name of the reply destination, to be looked up: a name, `queue:X` or `topic:X`; None if there is none."""
        name = self.parameters.get("replyToName")
        if self.variant not in ADMINISTERED:
            return name
        if name is not None:
            return f"queue:{name}"
        topic = self.parameters.get("topicReplyToName")
        return None if topic is None else f"topic:{topic}"

    @property
    def connection_factory(self) -> str | None:
        """The parameter `jndiConnectionFactoryName`: a name for `NamingContext.factory`."""
        return self.parameters.get("jndiConnectionFactoryName")

    @shown_half_made
    def __repr__(self) -> str:
        more = f" with {', '.join(self.parameters)}" if self.parameters else ""
        return f"<JmsUri {self.address}{more}>"


def is_jms_uri(text: str) -> bool:
    """Whether a text has the form of RFC 6167. Names such as `jms://host/mtosi/X` or `jms/X` do not."""
    scheme, _, rest = text.strip().partition(":")
    return scheme.lower() == "jms" and not rest.startswith("/") and ":" in rest.partition("?")[0]


def shown(text: str) -> str:
    """Return a name as errors, logs and headers may show it: a JMS URI without its parameters."""
    return text.partition("?")[0] if is_jms_uri(text) else text


def _unescaped(text: str, path: str) -> str:
    if _BAD_ESCAPE.search(text):
        raise NamingError(path, "a percent sign that begins no escape; write %25")
    try:
        return unquote(text, errors="strict")
    except UnicodeError:
        raise NamingError(path, "characters or escapes that are not UTF-8") from None
