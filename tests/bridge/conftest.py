"""What the tests of channels share: JacORB's notification service, and the ORB of this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mtosi_jms.broker import BrokerProcess, start_channel_process
from mtosi_jms.errors import ConfigError, MissingExtraError
from mtosi_jms.jars import fetch_client


@pytest.fixture(scope="session")
def jacorb_jars() -> Path:
    """The folder of JacORB's jars; skips where they cannot be had."""
    pytest.importorskip("jpype", reason="JPype is not installed")
    try:
        return fetch_client("jacorb").folder
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def jacorb(jacorb_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """JacORB's notification service, one for all tests: who kills it wants one of his own."""
    folder = tmp_path_factory.mktemp("jacorb")
    try:
        process = start_channel_process(folder)
    except ConfigError as error:
        pytest.skip(str(error))
    try:
        yield process
    finally:
        process.kill()


@pytest.fixture(scope="session")
def jacorb_address(jacorb: BrokerProcess) -> str:
    """Where its event channel factory is."""
    return f"corbaloc::127.0.0.1:{jacorb.endpoints.ports['giop']}/NotificationService"


@pytest.fixture(scope="session")
def orb(jacorb_jars: Path) -> Iterator[object]:
    """An ORB in this process, one for all tests: who closes it wants one of his own."""
    from mtosi_jms.bridge.corba import Orb, OrbOptions

    try:
        made = Orb(OrbOptions(call_timeout=30.0))
    except (ConfigError, MissingExtraError) as error:
        pytest.skip(str(error))
    with made:
        yield made
