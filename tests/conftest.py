"""What every area of the suite may ask for; nothing heavy is imported or started here."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.broker.process import BrokerProcess
from mtosi_jms.testing import fixtures

from .brokers import Brokers
from .java_tools import JavaTools
from .selector_maker import SelectorMaker

ROOT = Path(__file__).resolve().parent.parent
PATIENT = ("transport/soak", "transport/stomp", "interop")
"""Folders of tests that wait for brokers more than they work."""


def pytest_configure(config: pytest.Config) -> None:
    """The SDK's fixtures: pytest has them where this checkout is installed; elsewhere, and with `-p no:`, from here."""
    if not config.pluginmanager.has_plugin(fixtures.__name__):
        config.pluginmanager.register(fixtures, "fixtures of the checkout")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits begins first, or at the end a few long files would keep one core busy and the others idle."""
    folders = tuple(str(ROOT / "tests" / folder) for folder in PATIENT)
    items.sort(key=lambda item: not str(item.path).startswith(folders))


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


@pytest.fixture(scope="session")
def start_session_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Starts brokers by kind; they end with the session, which with pytest-xdist is that of one worker."""
    with Brokers(tmp_path_factory) as brokers:
        yield brokers


@pytest.fixture(scope="module")
def start_module_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """The same; they end with the module."""
    with Brokers(tmp_path_factory) as brokers:
        yield brokers


@pytest.fixture
def start_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """The same; they end with the test."""
    with Brokers(tmp_path_factory) as brokers:
        yield brokers


@pytest.fixture(scope="session")
def activemq(start_session_broker: Brokers) -> BrokerProcess:
    """ActiveMQ Classic, one for all tests: who kills or fills it wants a broker of his own."""
    return start_session_broker("activemq")


@pytest.fixture(scope="session")
def artemis(start_session_broker: Brokers) -> BrokerProcess:
    """ActiveMQ Artemis, the same way."""
    return start_session_broker("artemis")


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
