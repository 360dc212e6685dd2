"""A broker for development that outlives the command that started it: its folder tells the next command about it."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mtosi_jms.broker import artemis
from mtosi_jms.broker.process import Endpoints, free_ports, listening
from mtosi_jms.errors import ConfigError

PROTOCOLS: Final = ("stomp", "amqp", "openwire")
USER: Final = "mtosi"
_STATE: Final = "service.json"
_PATIENCE: Final = 20.0
_LOOK: Final = 0.05


def default_folder() -> Path:
    """Where the broker lives if nothing else is said: `mtosi-jms/broker` below the user's state folder."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "mtosi-jms" / "broker"


@dataclass(frozen=True, slots=True)
class Service:
    """A broker that was started, and may run still.

    Attributes:
        folder: of its instance.
        pid: its process id.
        endpoints: where it listens.
    """

    folder: Path
    pid: int
    endpoints: Endpoints

    def is_running(self) -> bool:
        """Whether the process is there, is ours, and listens."""
        return _is_ours(self.pid, self.folder) and listening(self.endpoints.ports.values())

    def to_json(self) -> dict[str, Any]:
        """What `mtosi-jms broker` tells: version, process, and URLs with the credentials."""
        return {
            "running": self.is_running(),
            "broker": f"Apache ActiveMQ Artemis {artemis.VERSION}",
            "pid": self.pid,
            "dir": str(self.folder),
            "urls": {protocol: self.endpoints.url(protocol) for protocol in self.endpoints.ports},
        }


def find(folder: Path) -> Service | None:
    """The broker of a folder; None where none was started there.

    Raises:
        ConfigError: its file cannot be read.
    """
    folder = folder.resolve()
    try:
        state = json.loads((folder / _STATE).read_text(encoding="utf-8"))
        endpoints = Endpoints(state["ports"], state["user"], state["password"])
        return Service(folder, int(state["pid"]), endpoints)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{folder / _STATE}: it cannot be read ({type(error).__name__}); remove it") from error


def up(folder: Path) -> Service:
    """Starts a broker, or finds the one that runs; returns when it listens.

    Started again it has its messages, its password and, if nobody took them meanwhile, its ports.

    Raises:
        ConfigError: Java or the distribution cannot be had; what to do is in the text.
        TransportError: it does not start; the end of its log is in the text.
    """
    folder = folder.resolve()
    there = find(folder)
    if there is not None and there.is_running():
        return there
    if there is not None and not any(listening([port]) for port in there.endpoints.ports.values()):
        endpoints = there.endpoints
    else:
        password = there.endpoints.password if there is not None else secrets.token_urlsafe(18)
        endpoints = Endpoints(dict(zip(PROTOCOLS, free_ports(len(PROTOCOLS)), strict=True)), USER, password)
    process = artemis.start(folder, endpoints)
    process.wait_until_ready()
    process.leave_running()
    state = {
        "pid": process.pid,
        "user": endpoints.user,
        "password": endpoints.password,
        "ports": dict(endpoints.ports),
    }
    (folder / _STATE).touch(mode=0o600)
    (folder / _STATE).write_text(json.dumps(state), encoding="utf-8")
    return Service(folder, process.pid, endpoints)


def down(folder: Path) -> bool:
    """Ends the broker of a folder in good order; False where none ran. Its messages stay.

    Raises:
        ConfigError: it does not end.
    """
    there = find(folder)
    if there is None or not _is_ours(there.pid, there.folder):
        return False
    os.kill(there.pid, signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE
    while _is_ours(there.pid, there.folder):
        if time.monotonic() > deadline:
            raise ConfigError(f"the broker, process {there.pid}, does not end within {_PATIENCE:.0f} s")
        time.sleep(_LOOK)
    return True


def _is_ours(pid: int, folder: Path) -> bool:
    """Whether the process runs the instance of the folder: its number may be another's by now."""
    try:
        answer = subprocess.run(
            ["ps", "-ww", "-o", "stat=,args=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise ConfigError("ps, which tells processes, is missing") from error
    state = answer.stdout.strip()
    return f"-Dartemis.instance={folder} " in state and not state.startswith("Z")
