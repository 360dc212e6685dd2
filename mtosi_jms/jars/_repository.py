"""From where Maven fetches on this machine: its own folder, and the repository that its settings name.

The variable `MAVEN_REPO_URL` comes before the user's settings, `~/.m2/settings.xml`: of those the mirrors count, the
repository `central` of an active profile, and logins of servers whose password is not encrypted. No error has a login.
"""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET

from mtosi_jms.errors import ConfigError

_CENTRAL: Final = "https://repo.maven.apache.org/maven2"
_SCHEMES: Final = ("https", "http", "file")


class Repository(NamedTuple):
    """A Maven repository: its URL without a login, and the value of the header `Authorization`."""

    url: str
    login: str = ""


def home() -> Path:
    """The user's home folder; ConfigError if there is none."""
    try:
        return Path.home()
    except RuntimeError:
        raise ConfigError("the user has no home folder: set HOME") from None


def repositories() -> list[Repository]:
    """Maven's folder on this machine, and the repository from which Maven has what is in Maven Central. Raises
    ConfigError: Maven's settings cannot be read, or the URL of the repository is none."""
    file = home() / ".m2" / "settings.xml"
    settings = ET.Element("settings")
    try:
        if file.exists():
            settings = ET.parse(file).getroot()  # noqa: S314 - a file of the user's own
    except (OSError, ValueError, LookupError, ET.ParseError) as error:
        raise ConfigError(f"{file} cannot be read: {error}; mend it") from error
    given = os.environ.get("MAVEN_REPO_URL")
    local = _text(settings, "localRepository") or home() / ".m2" / "repository"
    remote = _repository(given, "MAVEN_REPO_URL") if given else _configured(settings, str(file))
    return [Repository(Path(local).absolute().as_uri()), remote]


def _configured(settings: ET.Element, where: str) -> Repository:
    """The mirror of Maven Central in Maven's settings, else what an active profile calls `central`."""
    active = {(name.text or "").strip() for name in settings.iterfind("{*}activeProfiles/{*}activeProfile")}
    found = []
    for mirror in settings.iterfind("{*}mirrors/{*}mirror"):
        mirrored = [name.strip() for name in _text(mirror, "mirrorOf").split(",")]
        if {"central", "*", "external:*"}.intersection(mirrored) and "!central" not in mirrored:
            found.append((mirrored != ["central"], mirror))
    for profile in settings.iterfind("{*}profiles/{*}profile"):
        if _text(profile, "id") in active or _text(profile, "activation/{*}activeByDefault") == "true":
            repositories = profile.iterfind("{*}repositories/{*}repository")
            found += [(True, one) for one in repositories if _text(one, "id") == "central"]
    if not found:
        return Repository(_CENTRAL)
    chosen = min(found, key=lambda one: one[0])[1]
    url, login = _repository(_text(chosen, "url"), where)
    for server in settings.iterfind("{*}servers/{*}server"):
        user, password = _text(server, "username"), _text(server, "password")
        if _text(server, "id") == _text(chosen, "id") and user and not re.fullmatch(r"\{.*\}", password):
            login = _basic(user, password)
    return Repository(url, login)


def _repository(text: str, where: str) -> Repository:
    url = urlsplit("")
    try:
        url = urlsplit(text.strip())
        is_fine = url.scheme in _SCHEMES and (url.scheme == "file" or bool(url.hostname)) and url.port != 0
    except ValueError:
        is_fine = False
    if not is_fine:  # its text may hold a password
        raise ConfigError(f"{where}: the URL of the repository is none of {', '.join(_SCHEMES)}")
    login = _basic(unquote(url.username), unquote(url.password or "")) if url.username else ""
    return Repository(f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path.rstrip('/')}", login)


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode(errors='surrogateescape')).decode()}"


def _text(element: ET.Element, name: str) -> str:
    """The text of a child, with what Maven puts in for variables of the environment and for the home folder."""
    text = (element.findtext("{*}" + name) or "").strip().replace("${user.home}", str(home()))
    return re.sub(r"\$\{env\.(\w+)\}", lambda found: os.environ.get(found[1], ""), text)
