"""A file that keeps a process's ORB port and its channel proxies, for the next process."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

from mtosi_jms.errors import ConfigError
from mtosi_jms.files import FileLock


@dataclass(frozen=True, slots=True)
class KeptProxy:
    """A proxy supplier of a channel that pushes to an object of ours. `object_id`: id of our object, hexadecimal.
    `filter`: reference of its filter; empty for none."""

    proxy: str
    object_id: str
    filter: str = ""


class KeptConnections:
    """A file with the connections of one process; the next process takes them over. `name`: name of the ORB, part of
    the keys of its objects. `port`: port at which it listened; 0 if not known yet. `left`: whether the connections are
    left to the next process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = FileLock(path.with_name(f"{path.name}.lock"))
        self.left = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            taken = self._lock.take()
        except OSError as error:
            raise ConfigError(f"{error.filename}: {error.strerror}") from error
        if not taken:
            raise ConfigError(f"{path}: another process has these connections")
        try:
            self.name, self.port, self._proxies = self._read()
        except BaseException:
            self._lock.close()
            raise
        self._earlier = dict(self._proxies)

    def _read(self) -> tuple[str, int, dict[str, KeptProxy]]:
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            proxies = {key: KeptProxy(**one) for key, one in found["proxies"].items()}
            return str(found["name"]), int(found["port"]), proxies
        except FileNotFoundError:
            return f"mtosi-{uuid4().hex}", 0, {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"{self._path} cannot be read ({type(error).__name__}): remove it") from error

    def _write(self) -> None:
        proxies = {key: asdict(one) for key, one in self._proxies.items()}
        text = json.dumps({"name": self.name, "port": self.port, "proxies": proxies})
        new = self._path.with_name(f"{self._path.name}.new")
        try:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
        except OSError as error:
            raise ConfigError(f"{error.filename}: {error.strerror}") from error

    def take(self, key: str) -> KeptProxy | None:
        """Takes over the connection that an earlier process had under a key; works once per key."""
        return self._earlier.pop(key, None)

    def put(self, key: str, proxy: KeptProxy, port: int) -> None:
        """Stores a connection."""
        self._proxies[key] = proxy
        self.port = port
        self._write()

    def drop(self, key: str, proxy: KeptProxy) -> None:
        """Removes a connection that has ended."""
        if self._proxies.get(key) == proxy:
            del self._proxies[key]
            with contextlib.suppress(ConfigError):  # the next process will find that the proxy is gone
                self._write()

    def close(self) -> None:
        """Releases the file for another process."""
        self._lock.close()
