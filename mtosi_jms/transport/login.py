"""Provider and login from the environment. Only this module reads these variables.

`MTOSI_JMS_URL` is for commands. The others give values that neither a call nor its URL sets.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mtosi_jms.compression import read_file
from mtosi_jms.errors import ConfigError

__all__ = [
    "CA_FILE",
    "PASSWORD",
    "PASSWORD_FILE",
    "URL",
    "USER",
    "VARIABLES",
    "first_line",
    "password_in",
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


def url_from_environment() -> str | None:
    """The provider's URL; None where the environment names none."""
    return os.environ.get(URL) or None


def with_login(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a connection, completed by the environment: `user`, `password` and `ca_file`.

    A password comes from `password`, else from `password_file`, else from the environment, where the variable with the
    password goes before that with its file.

    Args:
        given: what the call and the URL say.

    Raises:
        ConfigError: a password file that cannot be read, or whose first line is empty.
    """
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
