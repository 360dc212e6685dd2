"""Fixtures for all areas of the suite. Importing this file imports and starts nothing heavy."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import settings

from mtosi_jms.broker import KINDS, BrokerProcess
from mtosi_jms.testing import fixtures
from mtosi_jms.transport import Connection
from mtosi_jms.xmlbind import encode, modules_of, register_package

from . import cores as xml_cores
from . import waiting
from .brokers import Brokers
from .browsers import axe, chromium  # noqa: F401 - fixtures
from .integrations.least import least
from .java_tools import JavaTools
from .lake_jars import DELTA_CATALOG, lake_settings
from .release import SHARED, driver, release_driver, services_of
from .schedule import (  # noqa: F401 - hooks of pytest
    pytest_addoption,
    pytest_collection,
    pytest_collection_modifyitems,
    pytest_ignore_collect,
    pytest_runtest_logreport,
    pytest_sessionfinish,
    pytest_xdist_auto_num_workers,
    pytest_xdist_make_scheduler,
)
from .selector_maker import SelectorMaker
from .transport.jvm import clients
from .transport.stomp.proxy import Proxy

ROOT = Path(__file__).resolve().parent.parent
if find_spec("mtosi_jms.xmlbind._core") is None:  # asked for, commands do not tell that it is slower
    os.environ.setdefault("MTOSI_JMS_CORE", "python")
SPARK_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
"""Spark's Java processes are short: the second compiler would start only when they end."""

settings.register_profile("ci", settings.get_profile("ci"), max_examples=15)
"""The same examples each time, for `make test`."""
settings.register_profile("endurance", settings.get_profile("ci"), derandomize=False, max_examples=500)
"""Different examples each time, for `make endurance`."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the SDK's fixtures if pytest does not have them: without installation, or with `-p no:`."""
    if not config.pluginmanager.has_plugin(fixtures.__name__):
        config.pluginmanager.register(fixtures, "fixtures of the checkout")
    os.environ.setdefault("SPARK_SUBMIT_OPTS", SPARK_JAVA)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a run in the background of a shell; processes inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Keep the collected tests out of garbage collections: with many thousands of them each takes half a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def what_is_there_is_settled() -> None:
    """Keep what earlier modules made, such as generated packages, out of the garbage collections of later ones."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def packages_are_forgotten() -> Iterator[None]:
    """Forget packages that a module's tests generated and imported, so that other modules' tests do not find them."""
    registry = import_module("mtosi_jms.xmlbind._registry")
    known = dict(registry._packages)
    yield
    for name in registry._packages.keys() - known.keys() - {"mtosi_jms.stubs", "mtosi_jms.stubs11"}:
        registry._packages.pop(name)


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference material; skips without it."""
    if not (SHARED / "mtosi").is_dir():
        pytest.skip(f"no reference material in {SHARED}: set MTOSI_SHARED")
    return SHARED


@pytest.fixture(scope="session")
def release(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """All schemas of MTOSI 2.0 in one schema of lxml."""
    file = release_driver(tmp_path_factory.mktemp("release"), shared / "mtosi" / "2.0")
    return import_module("lxml.etree").XMLSchema(file=str(file))


@pytest.fixture(scope="session")
def complaints(release: Any) -> Callable[[object], list[str]]:
    """Returns the errors of an object of the stubs against the schemas of MTOSI 2.0."""

    def complain(it: object) -> list[str]:
        release.validate(import_module("lxml.etree").fromstring(encode(it)))
        return [f"line {error.line}: {error.message}" for error in release.error_log]

    return complain


@pytest.fixture(scope="session")
def release1_of_the_session(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The types of a package made of MTOSI 1.1, `old11`, with its `services` by name; `Mgr` is one of them."""
    source, out = shared / "mtosi" / "1.1", tmp_path_factory.mktemp("mtosi11")
    if not source.is_dir():
        pytest.skip(f"no MTOSI 1.1 in {source}")
    codegen = import_module("mtosi_codegen")
    codegen.write(out / "old11", codegen.generate([source / "wsdl", source / "xsd"]).files)
    sys.path.insert(0, str(out))
    try:
        types: Any = import_module("old11.ns_tmf854_v1.types")
        types.services = services_of("old11")
        types.Mgr = types.services["ManagedElementMgr"]
        types.modules = modules_of("old11")
        import_module("mtosi_jms.xmlbind._registry")._packages.pop("old11")
        yield types
    finally:
        sys.path.remove(str(out))


@pytest.fixture(scope="module")
def release1(release1_of_the_session: Any) -> Any:
    """The same, registered for the tests of a module alone."""
    register_package("old11", release1_of_the_session.modules)
    return release1_of_the_session


@pytest.fixture(scope="session")
def drive() -> Callable[[Path, list[Path]], Path]:
    """Makes a schema that imports others, one for each namespace, from a folder and the files."""
    return driver


@pytest.fixture(scope="session")
def start_session_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Starts brokers by kind; they end with the session, which with pytest-xdist is that of one worker."""
    with Brokers(tmp_path_factory) as brokers:
        yield brokers


@pytest.fixture(scope="module")
def start_module_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Starts brokers by kind; they end with the module."""
    with Brokers(tmp_path_factory) as brokers:
        yield brokers


@pytest.fixture
def start_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Starts brokers by kind; they end with the test."""
    with Brokers(tmp_path_factory) as brokers:
        yield brokers


@pytest.fixture(scope="session")
def activemq(start_session_broker: Brokers) -> BrokerProcess:
    """ActiveMQ Classic, one for all tests. A test that kills or fills a broker must start its own."""
    return start_session_broker("activemq", protocols=KINDS["activemq"].protocols)


@pytest.fixture(scope="session")
def artemis(start_session_broker: Brokers) -> BrokerProcess:
    """ActiveMQ Artemis, one for all tests. A test that kills or fills a broker must start its own."""
    return start_session_broker("artemis", protocols=KINDS["artemis"].protocols)


@pytest.fixture(scope="session")
def spark_java() -> str:
    """Options for Spark's Java processes that a test starts without `local_session`."""
    return SPARK_JAVA


@pytest.fixture(scope="session")
def interpreted() -> dict[str, str]:
    """Settings of Spark that interpret plans and keep to them: faster for a few rows than to compile and plan again.

    Commands and examples that tests run as processes have Spark's own settings, and so have tests with `own_plans`.
    """
    return {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
    }


@pytest.fixture(scope="session")
def lake_formats() -> tuple[dict[str, str], str]:
    """Settings of Spark that load Delta and Iceberg; empty, with the reason, if their jars are not available."""
    pytest.importorskip("pyspark")
    from mtosi_jms.spark import pyspark_version

    return lake_settings(pyspark_version())


@pytest.fixture(scope="session")
def no_open_sockets() -> None:
    """Close the sockets of `collect` with their files: PySpark before 4.3 leaves them to the garbage collector."""
    pytest.importorskip("pyspark")
    util = import_module("pyspark.util")

    def connect(facts: Any) -> Any:
        file, socket = util.local_connect_and_auth(facts[0], facts[1])
        socket.settimeout(None)
        socket.close()  # the file keeps it open
        return file

    version = import_module("pyspark").__version__.split(".")
    if (int(version[0]), int(version[1])) < (4, 3):
        util._create_local_socket = connect


@pytest.fixture(scope="session")
def spark(
    no_open_sockets: None, interpreted: dict[str, str], lake_formats: tuple[dict[str, str], str]
) -> Iterator[Any]:
    """A Spark session, one for all tests of a worker."""
    pytest.importorskip("pyspark")
    from mtosi_jms.spark import local_session

    java = {"spark.driver.extraJavaOptions": SPARK_JAVA}
    with local_session("tests", cores=2, settings={**interpreted, **lake_formats[0], **java}) as session:
        yield session


@pytest.fixture
def own_plans(spark: Any, interpreted: dict[str, str]) -> Iterator[None]:
    """Let Spark compile its plans, and change them as it goes, as it does by itself."""
    own = ("true", "FALLBACK", "true")
    for name, value in zip(interpreted, own, strict=True):
        spark.conf.set(name, value)
    yield
    for name in interpreted:
        spark.conf.unset(name)


@pytest.fixture
def lake(spark: Any, lake_formats: tuple[dict[str, str], str]) -> Iterator[Any]:
    """The session with Delta and Iceberg; meanwhile its own catalog is Delta's."""
    if lake_formats[1]:
        pytest.skip(lake_formats[1])
    spark.conf.set(DELTA_CATALOG, "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    yield spark
    spark.conf.unset(DELTA_CATALOG)


@pytest.fixture
def in_session(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands use the existing session."""
    monkeypatch.setattr("mtosi_jms.spark._session.local_session", lambda *args, **options: nullcontext(spark))


@pytest.fixture(scope="session")
def java() -> JavaTools:
    """Compiles and runs Java programs of the suite; skips without a compiler."""
    return JavaTools()


@pytest.fixture(scope="session")
def connect_by_java() -> Callable[..., Connection]:
    """Connects by the Java client of a broker; skips without JPype."""
    pytest.importorskip("jpype")
    return clients.connect_by_java


@pytest.fixture(scope="session")
def java_url() -> Callable[..., str]:
    """Makes the URL of a broker's Java client; skips without JPype."""
    pytest.importorskip("jpype")
    return clients.url_of


@pytest.fixture
def make_proxy() -> Iterator[Callable[..., Proxy]]:
    """Makes connections to brokers that a test can cut; see `Proxy`."""
    made: list[Proxy] = []

    def make(port: int, **options: Any) -> Proxy:
        made.append(Proxy(port, **options))
        return made[-1]

    yield make
    for proxy in made:
        proxy.close()


@pytest.fixture(scope="session")
def selector_maker() -> type[SelectorMaker]:
    """The maker of random selectors."""
    return SelectorMaker


@pytest.fixture
def background() -> Callable[[Callable[[], Any]], Future[Any]]:
    """Runs an action in its own thread, see `waiting`."""
    return waiting.background


@pytest.fixture(scope="session")
def cores() -> ModuleType:
    """Reads documents by either XML core, see `cores.py`."""
    return xml_cores


@pytest.fixture(scope="session")
def least_instance() -> Callable[[Any], Any]:
    """The least instance of a generated class."""
    return least
