"""Jars of pinned versions, from a Maven repository into a cache of the user's; each is checked against its SHA-256.

`pins.toml` lists them. A jar in Maven's own folder on this machine will do; the others are downloaded from the
repository that Maven is configured for, and only where that fails does the `mvn` command fetch them. The cache gets all
files of a set, or none.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import math
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen
from xml.etree import ElementTree as ET

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import ConfigError
from mtosi_jms.files import FileLock

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
    """Maven's folder on this machine, and the repository from which Maven has what is in Maven Central.

    `MAVEN_REPO_URL` comes before the user's `~/.m2/settings.xml`: of that the mirrors count, the repository `central`
    of an active profile, and logins of servers whose password is not encrypted. Raises ConfigError, which has no login:
    the settings cannot be read, or the URL of the repository is none."""
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


_SECONDS: Final = BOUNDS.download_time
_STALLED_SECONDS: Final = BOUNDS.download_stall
_MOST_BYTES: Final = BOUNDS.download_bytes
_AT_ONCE: Final = 4
_PART: Final = ".part-"
_ELSEWHERE: Final = "set XDG_CACHE_HOME to a folder that can be written"
_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_PROJECT: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>local</groupId>
<artifactId>files</artifactId><version>1</version><dependencies>{}</dependencies></project>
"""
_PARTS: Final = ("groupId", "artifactId", "version", "classifier")
_ALONE: Final = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


@cache
def pins() -> Mapping[str, Mapping[str, str]]:
    """Of each set of jars `group:name:version` or `group:name:version:classifier`, and the SHA-256 of each file."""
    return tomllib.loads(resources.files("mtosi_jms.jars").joinpath("pins.toml").read_text("utf-8"))


def cache_folder() -> Path:
    """Where jars are kept: `mtosi-jms` below the user's cache folder; ConfigError if the user has no home folder."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else home() / ".cache") / "mtosi-jms"


def find(name: str) -> list[Path]:
    """The jars of a set that are in the cache; none unless all are there and whole."""
    folder = cache_folder() / "jars"
    wanted = pins().get(name, {})
    return [] if _missing(folder, wanted) else [folder / _file(pin) for pin in wanted]


def fetch(name: str, what: str) -> list[Path]:
    """The jars of a set, in the cache; what is not there is fetched. `what`: the jars are, for the text of errors.
    Raises ConfigError: some cannot be had, or the cache cannot be written."""
    wanted, folder = pins()[name], cache_folder() / "jars"
    if _missing(folder, wanted):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with FileLock(folder / ".lock") as lock:
                lock.take(seconds=math.inf)  # one fetches, the others find what it fetched
                _complete(folder, wanted, what)
        except OSError as error:
            raise ConfigError(f"{_unwritable(error)}, so {what} cannot be kept in {folder}; {_ELSEWHERE}") from error
    return [folder / _file(pin) for pin in wanted]


def _complete(folder: Path, wanted: Mapping[str, str], what: str) -> None:
    for left in folder.glob(f"{_PART}*"):  # by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    missing = _missing(folder, wanted)
    with tempfile.TemporaryDirectory(prefix=_PART, dir=folder, ignore_cleanup_errors=True) as scratch:
        _bring(missing, Path(scratch), what)
        for pin in missing:
            Path(scratch, _file(pin)).replace(folder / _file(pin))


def fetch_unpinned(artifacts: Sequence[str], folder: Path, what: str, *, alone: bool = False) -> list[Path]:
    """The jars of artifacts and of all that they need at run time, by the `mvn` command; nothing is checked.

    Args:
        artifacts: `group:name:version` of each.
        folder: for them; it is there only when it is complete.
        what: they are, for the text of errors.
        alone: whether what they need is left out.

    Raises:
        ConfigError: they cannot be had, there is no Maven, or the folder cannot be written.
    """
    if jars := sorted(folder.glob("*.jar")):
        return jars
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            reason = _by_maven(artifacts, Path(scratch), alone=alone)
            if reason or not any(Path(scratch, "jars").glob("*.jar")):
                raise ConfigError(f"{what} cannot be had: {reason or 'mvn brought no jar'}")
            try:
                Path(scratch, "jars").rename(folder)
            except OSError:
                if not any(folder.glob("*.jar")):  # another process was faster
                    raise
    except OSError as error:
        raise ConfigError(f"{_unwritable(error)}, so {what} cannot be kept in {folder}; {_ELSEWHERE}") from error
    return sorted(folder.glob("*.jar"))


def _unwritable(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def _file(pin: str) -> str:
    _, name, version, *classifier = pin.split(":")
    return "-".join([name, version, *classifier]) + ".jar"


def _missing(folder: Path, wanted: Mapping[str, str]) -> dict[str, str]:
    return {pin: digest for pin, digest in wanted.items() if digest_of(folder / _file(pin)) != digest}


def digest_of(file: Path) -> str:
    """The SHA-256 of a file in hexadecimal digits; an empty text if it cannot be read."""
    try:
        with file.open("rb") as data:
            return hashlib.file_digest(data, "sha256").hexdigest()
    except OSError:
        return ""


def _bring(wanted: Mapping[str, str], scratch: Path, what: str) -> None:
    """Downloads files into a folder, several at once; in threads that do not hold up the end of the process."""
    places = repositories()
    reasons: dict[str, str] = {}
    lost: dict[str, str] = {}

    def work(pins: Iterable[str]) -> None:
        for pin in pins:
            reasons[pin] = _download(pin, wanted[pin], scratch / _file(pin), places, lost)

    shares = [list(wanted)[first::_AT_ONCE] for first in range(_AT_ONCE)]
    threads = [threading.Thread(target=work, args=(share,), daemon=True) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    left = {pin: reasons.get(pin, "no answer") for pin in wanted if reasons.get(pin) != ""}
    instead = _by_maven(left, scratch, alone=True) if left and shutil.which("mvn") else ""
    by_reason: dict[str, list[str]] = {}
    for pin, reason in left.items():
        copied = scratch / "jars" / _file(pin)
        if digest_of(copied) == wanted[pin]:
            copied.replace(scratch / _file(pin))
        else:
            by_reason.setdefault(f"{reason}; mvn: {instead}" if instead else reason, []).append(_file(pin))
    if by_reason:
        said = "; ".join(f"{', '.join(files)} ({reason})" for reason, files in by_reason.items())
        raise ConfigError(
            f"{what} cannot be had: {said}; set MAVEN_REPO_URL to a Maven repository that has them, or put them into "
            f"{cache_folder() / 'jars'}"
        )


def _download(pin: str, digest: str, target: Path, places: Iterable[Repository], lost: dict[str, str]) -> str:
    """Returns why a file cannot be had, or an empty text: it is there. `places`: where it may be, in this order.
    `lost`: hosts that cannot be reached, and why; they are not asked again."""
    group, name, version, *_ = pin.split(":")
    reason = ""
    for url, login in places:
        request = Request(f"{url}/{group.replace('.', '/')}/{name}/{version}/{_file(pin)}")  # noqa: S310
        if login:
            request.add_unredirected_header("Authorization", login)  # never sent to another host
        end = time.monotonic() + _SECONDS
        if url in lost:
            reason = lost[url]
            continue
        try:
            with urlopen(request, timeout=_STALLED_SECONDS) as answer, target.open("wb") as file:  # noqa: S310
                while (chunk := answer.read1(1 << 20)) and file.tell() < _MOST_BYTES and time.monotonic() < end:
                    file.write(chunk)
        except HTTPError as error:
            reason = f"{url} answers {error.code}"
            error.close()
        except URLError as error:
            reason = f"{url} cannot be reached: {error.reason}"
            if request.host:
                lost[url] = reason
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = f"{url}: {getattr(error, 'strerror', None) or type(error).__name__}"
        else:
            found = digest_of(target)
            if found == digest:
                return ""
            reason = f"{url} gives another file, SHA-256 {found}, or less than the whole; it is not used"
    return " ".join(reason.split())


def _by_maven(artifacts: Iterable[str], scratch: Path, *, alone: bool) -> str:
    """Lets `mvn` copy artifacts into `jars` below a folder; returns why it could not, or an empty text. `artifacts`:
    `group:name:version` or `group:name:version:classifier`. `alone`: whether what they depend on is left out."""
    maven = shutil.which("mvn")
    if maven is None:
        return "install Maven, which finds the jars: there is no mvn on PATH"
    listed = ""
    for artifact in artifacts:
        parts = zip(_PARTS, artifact.split(":"), strict=False)
        inside = "".join(f"<{part}>{text}</{part}>" for part, text in parts)
        listed += f"<dependency>{inside}{_ALONE if alone else ''}</dependency>"
    (scratch / "pom.xml").write_text(_PROJECT.format(listed), encoding="utf-8")
    command = [maven, "-q", "-B", _COPY, "-DincludeScope=runtime", f"-DoutputDirectory={scratch / 'jars'}"]
    try:
        done = subprocess.run(
            command, cwd=scratch, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    said = next((line for line in done.stdout.decode(errors="replace").splitlines() if "ERROR" in line), "no reason")
    return re.sub(r"//[^/@\s]*@", "//", said) if done.returncode else ""
