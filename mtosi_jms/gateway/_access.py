"""Who may come in over HTTP: logins and tokens, and how often somebody may guess."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import MissingExtraError

try:
    from starlette.requests import HTTPConnection
except ImportError as error:
    raise MissingExtraError("starlette", "http") from error

log = logging.getLogger(__package__)

_FREE: Final = BOUNDS.http_free_guesses
"""Wrong logins in a row of one address that cost nothing."""
_LONGEST: Final = BOUNDS.http_guess_pause
"""Seconds after which the next guess is heard, however many were wrong."""
_FORGET: Final = 900.0
"""Seconds after which wrong logins are forgotten."""
_ADDRESSES: Final = BOUNDS.http_guessers
_SHOWN: Final = 80


class Throttled(Exception):
    """An address has guessed too often. `seconds`: until the next login from there is looked at."""

    def __init__(self, seconds: float) -> None:
        super().__init__("too many wrong logins: wait")
        self.seconds = max(1, math.ceil(seconds))


class Access:
    """Checks logins and tokens. Wrong ones are logged. From the sixth in a row of one address, the next is not looked
    at for 1, 2, 4 and up to 60 seconds.

    Args:
        logins: passwords by user; one that begins with `$2` is a hash of bcrypt.
        tokens: tokens, or tokens by the names of who has them.
        clock: seconds that only grow.

    Raises:
        MissingExtraError: there is a hash, and bcrypt is not installed.
    """

    def __init__(
        self,
        logins: Mapping[str, str] | None = None,
        tokens: Collection[str] | Mapping[str, str] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._logins = dict(logins or {})
        self._tokens = tokens if isinstance(tokens, Mapping) else {f"token {n}": one for n, one in enumerate(tokens, 1)}
        self._clock = clock
        self._wrong: OrderedDict[str, tuple[int, float, float]] = OrderedDict()
        self._right: dict[str, bytes] = {}
        if any(map(_is_hash, self._logins.values())):
            _bcrypt()

    @property
    def names(self) -> Collection[str]:
        """The names of who has a token."""
        return self._tokens.keys()

    @property
    def is_open(self) -> bool:
        """Whether nobody needs a login."""
        return not self._logins and not self._tokens

    @property
    def challenge(self) -> str:
        """The scheme that a client should use."""
        return "Basic" if self._logins else "Bearer"

    def by_header(self, address: str, authorization: str) -> str | None:
        """The name of who sent this header; None if nobody known did. `authorization`: the header; empty if there is
        none, which is not a guess. Raises Throttled: the address has guessed too often."""
        scheme, _, given = authorization.partition(" ")
        if not given:
            return None
        given = given.strip()
        if scheme.lower() == "bearer":
            return self.by_token(address, given)
        user, password = _basic(given) if scheme.lower() == "basic" else ("", "")
        self._admit(address)
        return self._told(address, user if self._is_right(user, password) else None, user)

    def by_token(self, address: str, given: str) -> str | None:
        """The name of who has a token; None if nobody has it. Raises Throttled: the address has guessed too often."""
        self._admit(address)
        found = None
        for name, token in self._tokens.items():  # all are compared, so that the time taken reveals nothing
            if hmac.compare_digest(given.encode(), token.encode()):
                found = name
        return self._told(address, found, "somebody with a token")

    def _is_right(self, user: str, password: str) -> bool:
        wanted = self._logins.get(user, "")
        if not _is_hash(wanted):
            return hmac.compare_digest(password.encode(), wanted.encode()) and bool(wanted)
        digest = hashlib.sha256(password.encode()).digest()
        if hmac.compare_digest(self._right.get(user, b""), digest):  # a hash takes a tenth of a second each time
            return True
        try:
            right = bool(_bcrypt().checkpw(password.encode(), wanted.encode()))
        except ValueError:
            right = False
        if right:
            self._right[user] = digest
        return right

    def _admit(self, address: str) -> None:
        _, until, _ = self._wrong.get(address, (0, 0.0, 0.0))
        if (left := until - self._clock()) > 0:
            raise Throttled(left)

    def _told(self, address: str, found: str | None, who: str) -> str | None:
        if found is not None:
            self._wrong.pop(address, None)
            return found
        now = self._clock()
        count, _, last = self._wrong.pop(address, (0, 0.0, 0.0))
        count = 1 if now - last > _FORGET else count + 1
        pause = min(2.0 ** (count - _FREE - 1), _LONGEST) if count > _FREE else 0.0
        self._wrong[address] = count, now + pause, now
        if len(self._wrong) > _ADDRESSES:
            self._wrong.popitem(last=False)
        log.warning("a login of %s from %s was refused, the %d. in a row", ascii(who[:_SHOWN]), address, count)
        return None


def address_of(request: HTTPConnection) -> str:
    """Where a request comes from: the address of its connection. A client can write anything into X-Forwarded-For."""
    return request.client.host if request.client is not None else ""


def _basic(given: str) -> tuple[str, str]:
    try:
        user, _, password = base64.b64decode(given, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    return user, password


def _is_hash(password: str) -> bool:
    return password.startswith(("$2a$", "$2b$", "$2y$"))


def _bcrypt() -> Any:
    try:
        import bcrypt
    except ImportError as error:
        raise MissingExtraError("bcrypt", "http") from error
    return bcrypt
