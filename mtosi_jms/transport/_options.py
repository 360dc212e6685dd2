"""Options of `connect`: typed fields of a dataclass, each with a check of its value."""

from __future__ import annotations

import difflib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Final, NamedTuple

from mtosi_jms.binding.table2 import restore
from mtosi_jms.errors import ConfigError
from mtosi_jms.transport._completion import COMPLETION_TIMEOUT, CompletionErrorHook, SendRules
from mtosi_jms.transport._descriptor import check_jms_version
from mtosi_jms.transport.settings import with_login


class Check(NamedTuple):
    """The check of an option's value.

    Attributes:
        wanted: what the option takes, in words: "it must be ...".
        read: makes a value of a text in a URL's query; raises ValueError or KeyError if it cannot.
        convert: converts a valid value to the stored one.
    """

    wanted: str
    fits: Callable[[Any], object]
    read: Callable[[str], object]
    convert: Callable[[Any], object]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check(
    wanted: str,
    fits: Callable[[Any], object],
    read: Callable[[str], object] = str,
    convert: Callable[[Any], object] = lambda value: value,
) -> Mapping[str, Check]:
    """Return a check as the metadata of a field. A field without `repr` is a secret, not allowed in a URL's query."""
    return {"check": Check(wanted, fits, read, convert)}


_FLAGS: Final = {"true": True, "false": False}
TEXT: Final = check("text", lambda value: isinstance(value, str))
PATH: Final = check("the path of a file", lambda value: isinstance(value, str | os.PathLike), convert=os.fspath)
FLAG: Final = check("True or False", lambda value: isinstance(value, bool), lambda text: _FLAGS[text.lower()])
COUNT: Final = check("a whole number of at least 1", lambda value: type(value) is int and value >= 1, int)
SECONDS: Final = check("a number of seconds greater than 0", lambda value: _is_number(value) and value > 0, float)
PATIENCE: Final = check("a number of seconds of at least 0", lambda value: _is_number(value) and value >= 0, float)
FUNCTION: Final = check("a callable", callable)
VERSION: Final = check("a version such as 2.0", check_jms_version)


@dataclass(frozen=True, kw_only=True)
class ConnectOptions:
    """The options that every transport takes.

    Attributes:
        jms_version: level of the provider's JMS API, 1.1 or later (R1).
        completion_timeout: seconds that the outcome of an asynchronous send may take; None: no limit.
        on_completion_error: called with the exception of a completion listener, and the message.
        strict_2012: whether a message that was sent asynchronously must not be sent again.
    """

    client_id: str = field(default="", metadata=TEXT)
    jms_version: str = field(default="1.1", metadata=VERSION)
    completion_timeout: float | None = field(default=COMPLETION_TIMEOUT, metadata=SECONDS)
    on_completion_error: CompletionErrorHook | None = field(default=None, metadata=FUNCTION)
    strict_2012: bool = field(default=False, metadata=FLAG)

    # Not an option of users: it gives a property its type by its name where the wire carries text alone (C62).
    retype = staticmethod(restore)

    @property
    def send_rules(self) -> SendRules:
        return SendRules(self.completion_timeout, self.strict_2012, self.on_completion_error)


@dataclass(frozen=True, kw_only=True)
class NetworkOptions(ConnectOptions):
    """What transports to a provider elsewhere take besides; each may stand in the URL's query, secrets excepted.

    Attributes:
        user: login; else from the URL, else from MTOSI_JMS_USER.
        password: of the login; else from the URL, else from `password_file`, else from MTOSI_JMS_PASSWORD or the file
            that MTOSI_JMS_PASSWORD_FILE names.
        password_file: file whose first line is the password.
        connect_timeout: seconds for one attempt at one provider, TLS and login included.
        send_timeout: seconds that a send may take, a receipt and a reconnect included.
        close_timeout: seconds that closing gives to a provider which does not answer; at most `send_timeout`.
        reconnect: whether to reconnect when the connection is lost.
        reconnect_timeout: seconds after which reconnecting is given up; None: never.
    """

    user: str = field(default="", metadata=TEXT)
    password: str = field(default="", repr=False, metadata=TEXT)
    password_file: str = field(default="", metadata=PATH)
    connect_timeout: float = field(default=10.0, metadata=SECONDS)
    send_timeout: float = field(default=30.0, metadata=SECONDS)
    close_timeout: float = field(default=5.0, metadata=SECONDS)
    reconnect: bool = field(default=True, metadata=FLAG)
    reconnect_timeout: float | None = field(default=None, metadata=SECONDS)

    def goodbye(self) -> float:
        """Return the time, by the monotonic clock, until which closing that begins now waits for the provider."""
        return time.monotonic() + min(self.close_timeout, self.send_timeout)


def completed(
    kind: type[NetworkOptions],
    scheme: str,
    query: Mapping[str, str],
    login: Mapping[str, str],
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """Combine a URL's query and login with the options of the call, which win, and the environment. Raises
    ConfigError."""
    of_url: dict[str, object] = {**{name: from_query(kind, name, text) for name, text in query.items()}, **login}
    of_call = {name: value for name, value in given.items() if value is not None or name not in of_url}
    if of_call.get("password_file"):  # of the call, so it goes before the URL's password
        of_url.pop("password", None)
    return with_login(checked(kind, scheme, of_url | of_call))


def checked(kind: type[Any], scheme: str, given: Mapping[str, object]) -> dict[str, Any]:
    """Check and convert the given options. None means the default, unless it is a value of the option. Raises
    ConfigError."""
    known = _fields(kind)
    if unknown := sorted(set(given) - set(known)):
        near = difflib.get_close_matches(unknown[0], known, 1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise ConfigError(f"{scheme}: takes no option {', '.join(unknown)}; {meant}it takes {', '.join(sorted(known))}")
    found: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            if known[name].default is not None and "None" in str(known[name].type):
                found[name] = None
            continue
        check = _check_of(known[name])
        if not check.fits(value):
            plain = isinstance(value, str | int | float) and known[name].repr
            shown = repr(value) if plain else type(value).__name__
            raise ConfigError(f"option {name}: it must be {check.wanted}, not {shown}")
        found[name] = check.convert(value)
    return found


def from_query(kind: type[Any], name: str, text: str) -> object:
    """Return the value of an option in the query of a URL; an unknown one as it is, for `checked` to refuse. Raises
    ConfigError: it is a secret, or has the wrong form."""
    known = _fields(kind)
    if name not in known:
        return text
    if not known[name].repr:
        raise ConfigError(f"option {name}: it must not stand in the query of a URL, but in a file or variable")
    check = _check_of(known[name])
    try:
        return check.read(text)
    except (ValueError, KeyError):
        raise ConfigError(f"option {name}: it must be {check.wanted}, not {text!r}") from None


def _fields(kind: type[Any]) -> dict[str, Field[Any]]:
    return {one.name: one for one in fields(kind)}


def _check_of(one: Field[Any]) -> Check:
    found: Check = one.metadata["check"]
    return found
