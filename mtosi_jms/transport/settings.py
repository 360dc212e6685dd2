"""The configuration file: the provider of each environment, and the login; docs/configuration.md has an example.

Arguments of a call come first, then environment variables, which only this module reads, then the file. A login in the
file belongs to the URL in the file, and is never sent to another provider. The file must not hold secrets: it names a
file with the password. Paths in it are relative to its folder.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from mtosi_jms.compression import read_file
from mtosi_jms.errors import ConfigError
from mtosi_jms.masking import passwords_in

__all__ = [
    "CA_FILE",
    "CONFIG",
    "ENVIRONMENT",
    "FILE",
    "PASSWORD",
    "PASSWORD_FILE",
    "URL",
    "USER",
    "VARIABLES",
    "Provider",
    "find_file",
    "first_line",
    "password_in",
    "provider",
    "url_from_environment",
    "warn_if_others_may_read",
    "with_login",
]

log = logging.getLogger(__package__)

URL: Final = "MTOSI_JMS_URL"
USER: Final = "MTOSI_JMS_USER"
PASSWORD: Final = "MTOSI_JMS_PASSWORD"  # noqa: S105 - the name of a variable
PASSWORD_FILE: Final = "MTOSI_JMS_PASSWORD_FILE"  # noqa: S105
CA_FILE: Final = "MTOSI_JMS_CA_FILE"
VARIABLES: Final = (URL, USER, PASSWORD, PASSWORD_FILE, CA_FILE)
"""All of them; an empty one counts as absent."""
ENVIRONMENT: Final = "MTOSI_JMS_ENVIRONMENT"
CONFIG: Final = "MTOSI_JMS_CONFIG"
FILE: Final = "mtosi-jms.toml"

_KEYS: Final[Mapping[str, type]] = {
    "url": str,
    "names": str,
    "user": str,
    "password_file": str,
    "ca_file": str,
    "client_id": str,
    "options": dict,
}
_PATHS: Final = ("names", "password_file", "ca_file")
_VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "url": (URL,),
    "user": (USER,),
    "password_file": (PASSWORD_FILE, PASSWORD),
    "ca_file": (CA_FILE,),
}
"""What variables give, too, the stronger one last. In the file these belong together: no login without its URL."""
_SECRETS: Final = frozenset({"password", "key_password"})
_ELSEWHERE: Final = "put it into a file of its own, and name that as password_file"
_CALL: Final = "the call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """The provider, and the options for connecting to it.

    Attributes:
        url: the provider's URL; None if none is given.
        names: file of the naming context; None if none is given.
        options: of the connection, beyond those of the call.
        sources: where each value comes from, by name; those that only a variable gives to the connection included.
    """

    url: str | None = None
    names: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)


def provider(
    url: str | None = None,
    *,
    environment: str | None = None,
    names: Any = None,
    given: Mapping[str, object] | None = None,
) -> Provider:
    """Combine the arguments of a call, the environment variables and the configuration file.

    The file is read if neither the call nor MTOSI_JMS_URL gives a URL, or if an environment is given. `environment`: of
    the call; by default that of MTOSI_JMS_ENVIRONMENT, else the one that the file names. Raises ConfigError: a file
    that cannot be read, an environment that it does not have, an unknown or misplaced value."""
    arguments: dict[str, Any] = {"url": url, "names": names, **(given or {})}
    call = {name: value for name, value in arguments.items() if value is not None}
    if "password" in call:
        call["password_file"] = None  # takes its place
    variables = {name: found for name, those in _VARIABLES.items() for found in those if os.environ.get(found)}
    requested = environment or os.environ.get(ENVIRONMENT) or None
    own_url = "url" not in call and "url" not in variables
    section, place = _section(requested) if own_url or requested is not None else ({}, "")
    file = {name: value for name, value in section.items() if own_url or name not in _VARIABLES}
    sources = {**dict.fromkeys(file, place), **variables, **dict.fromkeys(call, _CALL)}
    taken = {name: value for name, value in file.items() if sources[name] == place}
    own = {name: value for name, value in taken.items() if name not in ("url", "names", "options")}
    more = {name: value for name, value in file.get("options", {}).items() if name not in call}
    return Provider(
        url=call.get("url", url_from_environment() or taken.get("url")),
        names=call.get("names", taken.get("names")),
        options={**more, **own},
        sources={name: source for name, source in sources.items() if name != "password"},
    )


def find_file() -> Path | None:
    """The configuration file: that of MTOSI_JMS_CONFIG, else the nearest one in the folder or above it. Raises
    ConfigError: MTOSI_JMS_CONFIG names no file, or a pyproject.toml on the way is damaged."""
    named = os.environ.get(CONFIG)
    if named:
        if not Path(named).is_file():
            raise ConfigError(f"{CONFIG}: there is no file {named}")
        return Path(named).absolute()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / FILE).is_file():
            return folder / FILE
        project = folder / "pyproject.toml"
        if project.is_file() and _own(_document(project), project):
            return project
    return None


def _document(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_file(path).decode())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"{path}: {reason}") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: {error}") from None


def _own(document: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """What of a document is ours; in pyproject.toml that may be nothing."""
    if path.name != "pyproject.toml":
        return document
    tools = document.get("tool", {})
    own = tools.get("mtosi-jms", {}) if isinstance(tools, dict) else {}
    return own if isinstance(own, dict) else {}


def _section(requested: str | None) -> tuple[dict[str, Any], str]:
    """The values of the file for an environment, and what to call their place; none where there is no file."""
    path = find_file()
    if path is None:
        if requested is not None:
            raise ConfigError(f"environment {requested!r}: there is no {FILE} here or above, and {CONFIG} names none")
        return {}, ""
    own = dict(_own(_document(path), path))
    environments, default = own.pop("environments", {}), own.pop("environment", None)
    if not isinstance(environments, dict) or not all(isinstance(one, dict) for one in environments.values()):
        raise ConfigError(f"{path}: environments must be tables, [environments.NAME]")
    _check(own, f"{path}: ")
    for name, values in environments.items():
        _check(values, f"{path}: environments.{name}: ")
    chosen = requested or default
    if chosen is not None and chosen not in environments:
        raise ConfigError(f"{path}: there is no environment {chosen!r}; there are {', '.join(environments) or 'none'}")
    values = environments[chosen] if chosen is not None else {}
    merged = {**own, **values}
    if "options" in merged:
        merged["options"] = {**own.get("options", {}), **values.get("options", {})}
    for key in _PATHS:
        if key in merged:
            merged[key] = str(path.parent / Path(merged[key]).expanduser())
    if "client_id" in merged:
        merged["client_id"] = _own_id(merged["client_id"], path)
    return merged, f"{path}, environment {chosen}" if chosen is not None else str(path)


def _own_id(client_id: str, path: Path) -> str:
    """The client id of this process: several may share the file."""
    known = {"{host}": socket.gethostname(), "{pid}": str(os.getpid())}
    try:
        return re.sub(r"\{[^}]*\}?", lambda found: known[found[0]], client_id)
    except KeyError as error:
        raise ConfigError(f"{path}: client_id: there is no {error.args[0]}; there are {{host}} and {{pid}}") from None


def _check(section: Mapping[str, Any], place: str) -> None:
    """Raises where a section has what does not belong there; no text quotes a value, which may be a secret."""
    for name, value in section.items():
        if name in _SECRETS or (name == "options" and isinstance(value, dict) and _SECRETS & set(value)):
            raise ConfigError(f"{place}a password has no place here: {_ELSEWHERE}")
        if name not in _KEYS:
            near = get_close_matches(name, _KEYS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(_KEYS)}"
            raise ConfigError(f"{place}unknown key {name!r}; {hint}")
        if not isinstance(value, _KEYS[name]):
            raise ConfigError(f"{place}{name} must be {'a table' if _KEYS[name] is dict else 'text'}")
        if name == "url" and passwords_in(str(value)):
            raise ConfigError(f"{place}the URL has a password in it: {_ELSEWHERE}")


# The login.


def url_from_environment() -> str | None:
    """The provider's URL; None where the environment names none."""
    return os.environ.get(URL) or None


def with_login(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a connection, completed by the environment: `user`, `password` and `ca_file`.

    A password comes from `password`, else from `password_file`, else from the environment, where the variable with the
    password goes before that with its file. `given`: what the call and the URL say. Raises ConfigError: a password file
    that cannot be read, or whose first line is empty."""
    complete = dict(given)
    complete.setdefault("user", os.environ.get(USER, ""))
    complete.setdefault("ca_file", os.environ.get(CA_FILE, ""))
    if "password" not in complete:
        file = complete.get("password_file")
        word = "" if file else os.environ.get(PASSWORD, "")
        file = file or ("" if word else os.environ.get(PASSWORD_FILE, ""))
        complete["password"] = password_in(file) if file else word
    return complete


def warn_if_others_may_read(file: str | os.PathLike[str]) -> None:
    """Log a warning if other users of the machine may read a file of secrets."""
    mode = Path(file).stat().st_mode
    if os.name == "posix" and stat.S_ISREG(mode) and mode & (stat.S_IRGRP | stat.S_IROTH):
        log.warning("%s: others may read it: chmod 600", os.fspath(file))


def password_in(file: str | os.PathLike[str]) -> str:
    """The password in the first line of a file, whose other lines do not count. Raises ConfigError: the file cannot be
    read, or its first line is empty."""
    try:
        text = read_file(file).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        # Without the cause: an error of decoding holds the bytes of the file.
        raise ConfigError(f"password file {os.fspath(file)}: {reason}") from None
    warn_if_others_may_read(file)
    return first_line(text, os.fspath(file))


def first_line(text: str, source: str) -> str:
    """The first line of a text, which is a password. Raises ConfigError: the text has no first line, or it is empty."""
    lines = text.splitlines()
    if not lines or not lines[0]:
        raise ConfigError(f"password file {source}: its first line is empty; it must be the password")
    return lines[0]
