"""What the tests of channels share: JacORB's notification service, and the ORB of this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.broker import BrokerProcess, Endpoints, find_java, free_ports, start_channel_process
from mtosi_jms.errors import ConfigError, MissingExtraError
from mtosi_jms.jars import fetch_client

from ..processes import Program
from .bridges import address
from .ems import compiled_ems, with_orb

AT_ONCE = {"jacorb.notification.consumer.backout_interval": 50, "jacorb.retry_interval": 20}
"""Milliseconds until what was refused comes again."""


@pytest.fixture(scope="session")
def jacorb_jars() -> list[Path]:
    """JacORB's jars; skips where they cannot be had."""
    pytest.importorskip("jpype", reason="JPype is not installed")
    try:
        return fetch_client("jacorb").paths
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def jacorb(jacorb_jars: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """JacORB's notification service, one for all tests: who kills it wants one of his own."""
    folder = tmp_path_factory.mktemp("jacorb")
    try:
        process = start_channel_process(folder, settings=AT_ONCE)
    except ConfigError as error:
        pytest.skip(str(error))
    try:
        yield process
    finally:
        process.kill()


@pytest.fixture(scope="session")
def jacorb_address(jacorb: BrokerProcess) -> str:
    """Where its event channel factory is."""
    return address(jacorb)


@pytest.fixture
def service(jacorb_jars: list[Path], tmp_path: Path) -> Iterator[BrokerProcess]:
    """A notification service of the test's own."""
    process = start_channel_process(tmp_path / "service")
    yield process
    process.kill()


@pytest.fixture
def commands() -> Iterator[list[Program]]:
    """Programs that end with the test."""
    made: list[Program] = []
    yield made
    for one in made:
        one.kill()


@pytest.fixture(scope="session")
def channel_ior(jacorb: BrokerProcess, jacorb_address: str, orb: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the reference of its event channel, not of the factory."""
    file = tmp_path_factory.mktemp("channel") / "channel.ior"
    file.write_text(orb.channel(jacorb_address).ior, encoding="ascii")
    return file


@pytest.fixture(scope="session")
def ems_command(java: Any, jacorb_jars: list[Path]) -> list[str]:
    """What starts an element manager; see `Ems`."""
    return compiled_ems(java, jacorb_jars)


@pytest.fixture
def naming(jacorb_jars: list[Path], tmp_path: Path) -> Iterator[int]:
    """The port of JacORB's naming service."""
    port = free_ports(1)[0]
    program = [str(find_java()), "-cp", ":".join(map(str, jacorb_jars)), "org.jacorb.naming.NameServer"]
    command = with_orb(program, f"OAPort={port}", f"jacorb.naming.ior_filename={tmp_path / 'naming.ior'}")
    process = BrokerProcess(command, tmp_path, Endpoints({"giop": port}, "", ""))
    try:
        process.wait_until_ready()
        yield port
    finally:
        process.kill()


@pytest.fixture(scope="session")
def orb(jacorb_jars: list[Path]) -> Iterator[object]:
    """An ORB in this process, one for all tests: who closes it wants one of his own."""
    from mtosi_jms.bridge.corba import Orb, OrbOptions

    try:
        made = Orb(OrbOptions(call_timeout=30.0))
    except (ConfigError, MissingExtraError) as error:
        pytest.skip(str(error))
    with made:
        yield made
