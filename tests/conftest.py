"""What every area of the suite may ask for; nothing heavy is imported or started here."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.broker.activemq import start as start_activemq
from mtosi_jms.broker.artemis import start as start_artemis
from mtosi_jms.broker.process import BrokerProcess, Endpoints, free_ports
from mtosi_jms.errors import ConfigError
from mtosi_jms.testing import fixtures

from .java_tools import JavaTools
from .selector_maker import SelectorMaker

ROOT = Path(__file__).resolve().parent.parent


def pytest_configure(config: pytest.Config) -> None:
    """The SDK's fixtures: pytest has them where this checkout is installed; elsewhere, and with `-p no:`, from here."""
    if not config.pluginmanager.has_plugin(fixtures.__name__):
        config.pluginmanager.register(fixtures, "fixtures of the checkout")


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference material (MTOSI_SHARED, else `shared` beside the checkout); skips where there is none."""
    folder = Path(os.environ.get("MTOSI_SHARED") or ROOT.parent / "shared")
    if not (folder / "mtosi").is_dir():
        pytest.skip(f"no reference material in {folder}: set MTOSI_SHARED")
    return folder.resolve()


def _running(request: pytest.FixtureRequest, start: Callable[..., BrokerProcess]) -> Iterator[BrokerProcess]:
    """A broker on loopback for as long as the tests run; skips where it cannot be had."""
    folder = request.getfixturevalue("tmp_path_factory").mktemp("broker")
    endpoints = Endpoints(dict(zip(("stomp", "openwire"), free_ports(2), strict=True)), "mtosi", "s3cret-of-tests")
    try:
        broker = start(folder, endpoints)
    except ConfigError as error:
        pytest.skip(str(error))
    try:
        broker.wait_until_ready()
        yield broker
    finally:
        broker.kill()


@pytest.fixture(scope="session")
def activemq(request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    """ActiveMQ Classic; only its tests may ask for it: it is one for all."""
    yield from _running(request, start_activemq)


@pytest.fixture(scope="session")
def artemis(request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    """ActiveMQ Artemis, the same way."""
    yield from _running(request, start_artemis)


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> JavaTools:
    """Compiles and runs Java programs of the suite; skips where there is no compiler."""
    return JavaTools(tmp_path_factory.mktemp("java"))


@pytest.fixture(scope="session")
def selector_maker() -> type[SelectorMaker]:
    """The maker of random selectors."""
    return SelectorMaker


@pytest.fixture
def background() -> Callable[[Callable[[], Any]], Future[Any]]:
    """Runs an action in a thread of its own; ask the future for the result, with a time that shows a hang."""

    def start(action: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(action())
            except BaseException as error:  # noqa: BLE001 - the future raises it
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future

    return start
