"""A notification service for development: JacORB's, with one event channel; it outlives the command that started it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mtosi_jms.broker._process import (
    HOST,
    BrokerProcess,
    Endpoints,
    java_command,
    listening,
    start_on_free_ports,
    write_private,
)
from mtosi_jms.broker._service import STATE, find_service, is_ours, state_folder, stop_process
from mtosi_jms.errors import ConfigError, TransportError
from mtosi_jms.jars import fetch_client

GIOP: Final = "giop"
_MAIN: Final = "org.jacorb.notification.ConsoleMain"
_SHORTCUT: Final = "NotificationService"
_IOR: Final = "channel.ior"
_READY: Final = "corbaloc:"
_QUEUED: Final = 10_000
_PROPERTIES: Final[Mapping[str, object]] = {
    "org.omg.CORBA.ORBClass": "org.jacorb.orb.ORB",
    "org.omg.CORBA.ORBSingletonClass": "org.jacorb.orb.ORBSingleton",
    "OAIAddr": HOST,
    "jacorb.log.default.verbosity": 1,
    "jacorb.native_char_codeset": "UTF8",
    # Only these together keep the order of events.
    "jacorb.notification.order_policy": "FifoOrder",
    "jacorb.notification.filter.thread_pool_size": 1,
    "jacorb.notification.proxysupplier.thread_pool_size": 1,
    "jacorb.notification.proxyconsumer.thread_pool_size": 1,  # pulls one by one; pushed events pass at once
    "jacorb.notification.discard_policy": "FifoOrder",
    "jacorb.notification.max_events_per_consumer": _QUEUED,  # by default 100; more drop the oldest silently
    "jacorb.notification.supplier.poll_intervall": 50,  # milliseconds between two looks at what it pulls from
    "jacorb.notification.consumer.backout_interval": 500,  # milliseconds until a push that failed comes again
    "jacorb.notification.consumer.error_threshold": 100,  # failures of a consumer until its proxy is destroyed
}


def default_channel_folder() -> Path:
    """The default folder of the notification service: `mtosi-jms/channel` below the user's state folder."""
    return state_folder() / "channel"


@dataclass(frozen=True, slots=True)
class DevelopmentChannel:
    """A notification service that was started in a folder, and may still run."""

    folder: Path
    pid: int
    port: int

    @property
    def ior_file(self) -> Path:
        """The file with the reference to its event channel factory."""
        return self.folder / _IOR

    @property
    def corbaloc(self) -> str:
        return f"corbaloc::{HOST}:{self.port}/{_SHORTCUT}"

    def is_running(self) -> bool:
        """Whether the process exists, is ours, and listens."""
        return is_ours(self.pid, self.folder) and listening([self.port])

    def to_json(self) -> dict[str, Any]:
        return {
            "running": self.is_running(),
            "service": "JacORB's notification service",
            "pid": self.pid,
            "dir": str(self.folder),
            "ior_file": str(self.ior_file),
            "corbaloc": self.corbaloc,
        }


def start_channel_process(
    folder: Path, port: int | None = None, settings: Mapping[str, object] | None = None, arguments: Sequence[str] = ()
) -> BrokerProcess:
    """Starts a notification service with one channel, for tests: the caller ends it. It listens when this returns.

    Args:
        port: port on loopback; None: a free one.
        settings: Java properties that are added, or replace ours.
        arguments: arguments for JacORB's `ConsoleMain`, besides ours.

    Raises:
        ConfigError: Java or JacORB is not available, or the folder cannot be written.
        TransportError: it does not start; the message has the end of its log.
    """
    folder = Path(os.path.realpath(folder))
    jars = fetch_client("jacorb").paths
    write_private({}, [folder])

    def start(endpoints: Endpoints) -> BrokerProcess:
        command = java_command(folder, 256, jars, {**_PROPERTIES, **(settings or {})})
        command += [_MAIN, "-port", str(endpoints.ports[GIOP]), "-channels", "1"]
        command += ["-writeIOR", str(folder / _IOR), "-printCorbaloc", *arguments]
        return BrokerProcess(command, folder, endpoints, ready=[_READY], writes=folder / _IOR)

    if port is None:
        return start_on_free_ports(start, [GIOP], "", "")
    process = start(Endpoints({GIOP: port}, "", ""))
    process.wait_until_ready()
    return process


def find_channel(folder: Path) -> DevelopmentChannel | None:
    """The notification service of a folder; None if none was started there. Raises ConfigError: its file cannot be
    read."""
    return find_service(folder, lambda where, state: DevelopmentChannel(where, int(state["pid"]), int(state["port"])))


def start_channel(folder: Path, port: int | None = None) -> DevelopmentChannel:
    """Starts the notification service of a folder unless it runs; returns when it answers.

    A restarted service has its old port, if that is free, and a new, empty channel: JacORB stores nothing. `port`: port
    on loopback; None: the port that the folder had, else a free one. Raises ConfigError: Java or JacORB is not
    available, or the service runs already at another port; TransportError: it does not start; the message has the end
    of its log."""
    folder = Path(os.path.realpath(folder))
    there = find_channel(folder)
    if there is not None and there.is_running():
        if port not in (None, there.port):
            raise ConfigError(f"a notification service runs in {folder} already, at port {there.port}")
        return there
    if port is not None and listening([port]):
        raise TransportError(f"somebody else listens at {HOST}:{port}")
    if port is None and there is not None and not listening([there.port]):
        port = there.port
    process = start_channel_process(folder, port)
    found = DevelopmentChannel(folder, process.pid, process.endpoints.ports[GIOP])
    write_private({folder / STATE: json.dumps({"pid": found.pid, "port": found.port})})
    process.leave_running()
    return found


def stop_channel(folder: Path) -> bool:
    """Stops the notification service of a folder; False if none ran. Its events are lost: JacORB stores nothing. Raises
    ConfigError: it does not end."""
    there = find_channel(folder)
    return there is not None and stop_process(there.pid, there.folder)
