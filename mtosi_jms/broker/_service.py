"""A broker for development that outlives the command that started it; a file in its folder informs the next command."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from mtosi_jms.broker import _activemq as activemq
from mtosi_jms.broker import _artemis as artemis
from mtosi_jms.broker._process import (
    HOST,
    INSTANCE,
    BrokerProcess,
    Endpoints,
    listening,
    start_on_free_ports,
    write_private,
)
from mtosi_jms.compression import read_file
from mtosi_jms.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Kind:
    """A broker that can be started here.

    Attributes:
        start: starts it in a folder, without waiting until it listens; takes `settings`, `tls` and `memory_mb` too.
        jars: returns its jars, including a Java client.
        jndi_factory: class of its client's initial context.
    """

    title: str
    version: str
    protocols: tuple[str, ...]
    start: Callable[..., BrokerProcess]
    jars: Callable[[], list[Path]]
    jndi_factory: str


KINDS: Final = {
    "artemis": Kind(
        "Apache ActiveMQ Artemis",
        artemis.VERSION,
        artemis.PROTOCOLS,
        artemis.start,
        artemis.jars,
        "org.apache.activemq.artemis.jndi.ActiveMQInitialContextFactory",
    ),
    "activemq": Kind(
        "Apache ActiveMQ Classic",
        activemq.VERSION,
        activemq.PROTOCOLS,
        activemq.start,
        activemq.jars,
        "org.apache.activemq.jndi.ActiveMQInitialContextFactory",
    ),
}
T = TypeVar("T")
_USER: Final = "mtosi"
STATE: Final = "service.json"
_LOGIN: Final = "password.txt"
_PATIENCE: Final = 20.0
_LOOK: Final = 0.05


def state_folder() -> Path:
    """The folder in which services keep data between starts: `mtosi-jms` below the user's state folder."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "mtosi-jms"


def default_folder() -> Path:
    """The default folder of the broker: `mtosi-jms/broker` below the user's state folder."""
    return state_folder() / "broker"


@dataclass(frozen=True, slots=True)
class DevelopmentBroker:
    """A broker that was started in a folder, and may still run."""

    folder: Path
    pid: int
    endpoints: Endpoints
    kind: str

    def is_running(self) -> bool:
        """Whether the process exists, is ours, and listens."""
        return is_ours(self.pid, self.folder) and listening(self.endpoints.ports.values())

    def to_json(self) -> dict[str, Any]:
        """The values that `mtosi-jms broker` prints: broker, process, and URLs with the credentials."""
        return {
            "running": self.is_running(),
            "broker": KINDS[self.kind].title,
            "kind": self.kind,
            "pid": self.pid,
            "dir": str(self.folder),
            "urls": {protocol: self.endpoints.url(protocol) for protocol in self.endpoints.ports}
            | {"jvm": self._in_process_url()},
            "for_other_programs": [one for one in self.endpoints.ports if not one.startswith("stomp")],
        }

    def _in_process_url(self) -> str:
        query = {
            "classpath": self.kind,
            "user": self.endpoints.user,
            "password_file": str(self.folder / _LOGIN),
            "jndiInitialContextFactory": KINDS[self.kind].jndi_factory,
            "jndiURL": f"tcp://{HOST}:{self.endpoints.ports['openwire']}",
        }
        return f"jvm:ConnectionFactory?{urlencode(query, safe='/:')}"


def find_broker(folder: Path) -> DevelopmentBroker | None:
    """The broker of a folder; None if none was started there. Raises ConfigError: its file cannot be read."""
    return find_service(folder, _broker_of)


def _broker_of(folder: Path, state: Any) -> DevelopmentBroker:
    kind = state["kind"]
    ports = {name: int(state["ports"][name]) for name in KINDS[kind].protocols}
    return DevelopmentBroker(folder, int(state["pid"]), Endpoints(ports, state["user"], state["password"]), kind)


def find_service(folder: Path, made: Callable[[Path, Any], T]) -> T | None:
    """What is made of the file about the service of a folder; None if none was started there. Raises ConfigError: the
    file cannot be read."""
    folder = Path(os.path.realpath(folder))
    try:
        return made(folder, json.loads(read_file(folder / STATE)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise ConfigError(f"{folder / STATE} cannot be read ({type(error).__name__}): remove it") from error


def start_broker(folder: Path, kind: str | None = None) -> DevelopmentBroker:
    """Start the broker of a folder unless it runs; returns when it answers.

    A restarted broker has its messages, its password and, if they are still free, its ports. `kind`: one of `KINDS`;
    None: the kind of the folder, else Artemis. Raises ConfigError: Java or the broker is not available, or the folder
    is another kind's; the message says what to do; TransportError: it does not start; the message has the end of its
    log."""
    folder = Path(os.path.realpath(folder))
    there = find_broker(folder)
    if there is not None and kind not in (None, there.kind):
        raise ConfigError(f"{folder} belongs to {KINDS[there.kind].title}: choose another folder with --dir")
    if there is not None and there.is_running():
        return there
    kind = there.kind if there is not None else kind or "artemis"
    process = _started(folder, KINDS[kind], there)
    endpoints = process.endpoints
    state = {
        "kind": kind,
        "pid": process.pid,
        "user": endpoints.user,
        "password": endpoints.password,
        "ports": dict(endpoints.ports),
    }
    write_private({folder / STATE: json.dumps(state), folder / _LOGIN: f"{endpoints.password}\n"})
    process.leave_running()
    return DevelopmentBroker(folder, process.pid, endpoints, kind)


def _started(folder: Path, kind: Kind, there: DevelopmentBroker | None) -> BrokerProcess:
    if there is not None and not any(listening([port]) for port in there.endpoints.ports.values()):
        process = kind.start(folder, there.endpoints)
        process.wait_until_ready()
        return process
    password = there.endpoints.password if there is not None else secrets.token_urlsafe(18)
    return start_on_free_ports(lambda endpoints: kind.start(folder, endpoints), kind.protocols, _USER, password)


def stop_broker(folder: Path) -> bool:
    """Stop the broker of a folder gracefully; False if none ran. Its messages stay. Raises ConfigError: it does not
    end."""
    there = find_broker(folder)
    return there is not None and stop_process(there.pid, there.folder)


def stop_process(pid: int, folder: Path) -> bool:
    """Stops the process of a folder gracefully; False if the process is gone, or another one has its id. Raises
    ConfigError: it does not end."""
    if not is_ours(pid, folder):
        return False
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE
    while is_ours(pid, folder):
        if time.monotonic() > deadline:
            raise ConfigError(f"the service, process {pid}, did not end within {_PATIENCE:.0f} s")
        time.sleep(_LOOK)
    return True


def is_ours(pid: int, folder: Path) -> bool:
    """Whether the process runs the instance of the folder: another process may have the id by now."""
    try:
        answer = subprocess.run(
            ["ps", "-ww", "-o", "stat=,args=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise ConfigError("the program ps is missing: install procps") from error
    state = answer.stdout.strip()
    return f"-D{INSTANCE}={folder} " in state and not state.startswith("Z")
