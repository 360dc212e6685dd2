"""The process and files of a broker: starts it on loopback, waits, stops it by its id, keeps passwords private."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mtosi_jms.closing import with_the_process
from mtosi_jms.errors import ConfigError, TransportError
from mtosi_jms.masking import MASK, shown_half_made

HOST: Final = "127.0.0.1"
_PORTS: Final = range(20_000, 32_768)
"""Below the range from which systems take ports for outgoing connections, which would sometimes collide."""
INSTANCE: Final = "mtosi.jms.broker"
"""The Java property that names a broker's folder, as its real path, in its command line. `is_ours` knows the process by
that text and the blank before the next option."""
_TAKEN: Final = "Address already in use"
_ATTEMPTS: Final = 5
_LOOK: Final = 0.05
_TAIL: Final = 12


def free_ports(count: int) -> list[int]:
    """Ports of loopback at which nobody listens now. Raises TransportError: there are not enough."""
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        if len(found) == count:
            return found
        with socket.socket() as trial:
            try:
                trial.bind((HOST, port))
            except OSError:
                continue
        found.append(port)
    raise TransportError(f"no {count} free ports at {HOST}")


def find_java() -> Path:
    """The Java of JAVA_HOME, else that of PATH. Raises ConfigError: there is none."""
    home = os.environ.get("JAVA_HOME")
    found = (shutil.which("java", path=f"{home}/bin") if home else None) or shutil.which("java")
    if found is None:
        raise ConfigError("there is no Java in JAVA_HOME or on PATH: install a JDK 17 or later, or set JAVA_HOME")
    return Path(found)


def java_command(
    folder: Path, memory_mb: int, classpath: Iterable[Path], properties: Mapping[str, object] | None = None
) -> list[str]:
    """The command line of a broker without its main class; it names the broker's folder. Raises ConfigError: there is
    no Java."""
    defined = [f"-D{name}={value}" for name, value in {INSTANCE: folder, **(properties or {})}.items()]
    options = [f"-Xmx{memory_mb}m", "-XX:TieredStopAtLevel=1", *defined]
    return [str(find_java()), *options, "-classpath", os.pathsep.join(map(str, classpath))]


def write_private(files: Mapping[Path, str], folders: Iterable[Path] = ()) -> None:
    """Writes files that only their owner can read, in folders that only their owner can enter.

    Existing files lose other rights; existing folders stay as they are. Raises ConfigError: something cannot be
    written."""
    try:
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path, text in files.items():
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                path.chmod(0o600)
                file.truncate()
                file.write(text)
    except OSError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The ports at which a broker listens, and its login. `ports`: port by protocol: `stomp`, `stomp+ssl`, `amqp`,
    `openwire`, `mqtt`, `giop`; only those that are offered. `password`: of the login; never shown by `repr`."""

    ports: Mapping[str, int]
    user: str
    password: str

    @shown_half_made
    def __repr__(self) -> str:
        return f"Endpoints(ports={dict(self.ports)}, user={self.user!r}, password={MASK})"

    def url(self, protocol: str) -> str:
        """A URL with credentials, ready to use; for `openwire` the URL of a Java client."""
        port = self.ports[protocol]
        if protocol == "openwire":
            return f"tcp://{HOST}:{port}?jms.userName={self.user}&jms.password={self.password}"
        return f"{protocol}://{self.user}:{self.password}@{HOST}:{port}"


@dataclass(frozen=True, slots=True)
class KeyStores:
    """The key stores of a TLS port, as PKCS#12 files.

    Attributes:
        key_store: its own certificate with the key.
        trust_store: certificates that clients' certificates must be signed by; None: clients need no certificate.
        password: of both files.
    """

    key_store: Path
    trust_store: Path | None
    password: str


class BrokerProcess:
    """A broker, or the notification service of JacORB, that this process started.

    Args:
        folder: its working folder; standard output and error go to `broker.log` there.
        endpoints: ports at which it will listen, and the login.
        ready: texts in its log that show that it answers.
        writes: a file that it writes before it answers; one of an earlier start is removed.

    Raises:
        ConfigError: the command cannot be run.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        endpoints: Endpoints,
        *,
        ready: Sequence[str] = (),
        writes: Path | None = None,
    ) -> None:
        self.endpoints = endpoints
        self.log = folder / "broker.log"
        self._ready = ready
        self._writes = writes
        if writes is not None:
            writes.unlink(missing_ok=True)
        with self.log.open("ab") as output:
            self._begun = output.tell()  # text before this is from an earlier start
            try:
                self._process = subprocess.Popen(
                    list(command),
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise ConfigError(f"{command[0]} does not run: {error.strerror}") from error
        self.pid = self._process.pid
        self._bound = ExitStack()
        self._bound.enter_context(with_the_process(self._process.kill))

    def wait_until_ready(self, seconds: float = 120.0) -> None:
        """Waits until it answers at all its ports. If that fails or is interrupted, it does not run any longer. Raises
        TransportError: a port was taken, it ended, or the time ran out; the message has the end of its log."""
        try:
            self._wait_until_ready(seconds)
        except BaseException:
            self.kill()
            raise

    def _wait_until_ready(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self._is_ready():
            what = ""
            if self.port_was_taken():
                what = "found a port taken"
            elif self._process.poll() is not None:
                what = "ended"
            elif time.monotonic() > deadline:
                what = f"did not listen after {seconds:.0f} s"
            if what:
                raise TransportError(f"the broker {what}; the end of {self.log}:\n{self._tail()}")
            time.sleep(_LOOK)

    def port_was_taken(self) -> bool:
        """Whether another process listens at one of its ports, so that it cannot start."""
        return _TAKEN in self._written()

    def _is_ready(self) -> bool:
        # The ports alone prove nothing: another process may listen there, and a broker listens before it answers.
        written = self._written()
        is_told = all(text in written for text in self._ready) and listening(self.endpoints.ports.values())
        return is_told and (self._writes is None or self._has_written(self._writes))

    @staticmethod
    def _has_written(file: Path) -> bool:
        try:
            return file.read_bytes().endswith(b"\n")  # JacORB says that it is ready before the file has its text
        except FileNotFoundError:
            return False

    def _written(self) -> str:
        with self.log.open("rb") as log:
            log.seek(self._begun)
            return log.read().decode("utf-8", "replace")

    def leave_running(self) -> None:
        """Lets it run after this process ends; from now on only its id identifies it."""
        self._bound.close()
        self._process.returncode = 0  # else Popen warns that it was not waited for

    def stop(self, seconds: float = 20.0) -> None:
        """Ends it gracefully; by force if that takes longer than `seconds`."""
        self._process.terminate()
        try:
            self._process.wait(seconds)
            self._bound.close()
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._bound.close()

    def pause(self) -> None:
        """Pauses it: its connections stay open, and nothing answers, from the moment when this returns.

        The signal alone stops the threads of a Java machine one by one: on Linux it waits until the last one stands.
        Raises ConfigError: Windows, which cannot do that."""
        if not hasattr(signal, "SIGSTOP"):
            raise ConfigError("Windows cannot pause a process")
        self._process.send_signal(signal.SIGSTOP)
        if sys.platform == "linux":
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        if hasattr(signal, "SIGCONT"):
            self._process.send_signal(signal.SIGCONT)

    def _tail(self) -> str:
        lines = [line for line in self._written().splitlines() if not line.startswith("\tat ")]
        return "\n".join(lines[-_TAIL:])


def start_on_free_ports(
    start: Callable[[Endpoints], BrokerProcess], protocols: Sequence[str], user: str, password: str
) -> BrokerProcess:
    """Starts a broker on free ports, again on others if one was taken meanwhile; returns when it answers. `protocols`:
    the protocols to offer, each at its own port. Raises ConfigError: it is not available; TransportError: it does not
    start; the message has the end of its log."""
    attempts = 0
    while True:
        attempts += 1
        process = start(Endpoints(dict(zip(protocols, free_ports(len(protocols)), strict=True)), user, password))
        try:
            process.wait_until_ready()
        except TransportError:
            if attempts == _ATTEMPTS or not process.port_was_taken():
                raise
        else:
            return process


def listening(ports: Iterable[int]) -> bool:
    """Whether connections are accepted at all of these ports of loopback."""
    for port in ports:
        try:
            socket.create_connection((HOST, port), timeout=1.0).close()
        except OSError:
            return False
    return True
