"""Files from Maven Central through the `mvn` command: fetched once into a cache of the user's.

Files are checked against pinned hashes. A cached folder is there only when it is complete, whoever else fetches.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from mtosi_jms.errors import ConfigError

_COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_FETCH_SECONDS: Final = 300
_PROJECT: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>local</groupId>
<artifactId>files</artifactId>
<version>1</version>
<dependencies>
{}
</dependencies>
</project>
"""
_PARTS: Final = ("groupId", "artifactId", "version", "type", "classifier")
_NOTHING_ELSE: Final = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


def cache_folder() -> Path:
    """Where it is kept: `mtosi-jms` below the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "mtosi-jms"


def cached(name: str, make: Callable[[Path], Path]) -> Path:
    """A folder of the cache; made at the first call.

    Args:
        name: of the folder.
        make: makes it somewhere below the folder that it is given, and returns it.

    Raises:
        ConfigError: the cache cannot be written, or what `make` raises.
    """
    cache = cache_folder()
    home = cache / name
    if home.is_dir():
        return home
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / f"{name}.lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # one fetches, the others find what it fetched
            if not home.is_dir():
                with tempfile.TemporaryDirectory(dir=cache) as scratch:
                    make(Path(scratch)).rename(home)
    except OSError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}") from error
    return home


def fetch(
    artifacts: Iterable[str], hashes: Mapping[str, str] | None, scratch: Path, instead: str, what: str = "the broker"
) -> Path:
    """Fetches artifacts.

    Args:
        artifacts: `group:name:version`, or `group:name:version:type:classifier`.
        hashes: name of each file that is wanted, and its SHA-256 in hexadecimal digits; nothing else is fetched. None:
            nothing is checked, and what the artifacts depend on at run time comes too.
        scratch: a folder to work in.
        instead: what will do where they cannot be had, for the text of errors.
        what: is fetched, for the text of errors.

    Returns:
        The folder with the files.

    Raises:
        ConfigError: they cannot be had, or are others than those that are pinned.
    """
    maven = shutil.which("mvn")
    if maven is None:
        raise ConfigError(f"{what} is fetched with Maven, and there is no mvn on PATH; {instead}")
    listed = "\n".join(_dependency(artifact, alone=hashes is not None) for artifact in artifacts)
    (scratch / "pom.xml").write_text(_PROJECT.format(listed), encoding="utf-8")
    target = scratch / "fetched"
    command = [maven, "-q", "-B", _COPY, "-DincludeScope=runtime", f"-DoutputDirectory={target}"]
    try:
        done = subprocess.run(
            command,
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_FETCH_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"mvn could not fetch {what}: {type(error).__name__}; {instead}") from error
    missing = [name for name in hashes or () if not (target / name).is_file()]
    if done.returncode or missing:
        reason = next((line for line in done.stdout.splitlines() if "ERROR" in line), "no reason given")
        raise ConfigError(f"mvn could not fetch {what}: {reason}; {instead}")
    for name, expected in (hashes or {}).items():
        with (target / name).open("rb") as data:
            found = hashlib.file_digest(data, "sha256").hexdigest()
        if found != expected:
            raise ConfigError(f"{name}: the file that came is another one (SHA-256 {found}); it is not used")
    return target


def _dependency(artifact: str, *, alone: bool) -> str:
    parts = "".join(f"<{part}>{text}</{part}>" for part, text in zip(_PARTS, artifact.split(":"), strict=False))
    return f"<dependency>{parts}{_NOTHING_ELSE if alone else ''}</dependency>"
