"""The public doubles: the pair in memory, the scripted supplier, and the fixtures for pytest."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms import testing
from mtosi_jms.errors import ConfigError, IllegalStateError, IncompleteBatchError, ReplyTimeoutError, TransportError
from mtosi_jms.exchange import Supplier
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.patterns import Timeouts
from mtosi_jms.simulator import TECHNOLOGIES, ManagedElementEms, Network
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.testing import SUPPLIER, ScriptedSupplier, connect_privately, exchange, fixtures, gap

EMS = ManagedElementEms(Network(elements=4))


def test_a_pair_of_real_ends() -> None:
    with exchange([EMS], threads=2) as pair:
        assert isinstance(pair.supplier, Supplier)
        assert len(pair.stub(ManagedElementRetrieval).get_all_managed_elements().me_list.me) == 4
        assert pair.connection is pair.requestor.connection
        assert pair.supplier.connection is not pair.connection
        with pytest.raises(ConfigError):
            _ = pair.scripted
        requestor = pair.requestor
    with pytest.raises(IllegalStateError):
        requestor.connection.session()


def test_a_pair_leaves_nothing_running() -> None:
    before = threading.active_count()
    with exchange([EMS], threads=3):
        assert threading.active_count() == before + 3
    with exchange([EMS], tamper=lambda replies: replies):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_pairs_do_not_know_each_other() -> None:
    with exchange() as one, exchange() as other:
        one.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=1).close()
        assert (one.provider.held(), other.provider.held()) == (1, 0)


def test_the_example_in_the_docstring() -> None:
    with exchange([EMS], tamper=lambda replies: gap(replies, at=1), timeouts=Timeouts(gap=0.02)) as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=2)
        with pytest.raises(IncompleteBatchError):
            list(batches)


def test_requests_by_hand() -> None:
    with exchange() as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=3)
        asked = pair.scripted.take()
        assert asked.envelope.header.requested_batch_size == 3
        replies = asked.replies([EMS])
        assert [reply.destination for reply in replies] == [Queue("REQUESTOR.OS")] * 2
        assert pair.provider.held() == 0
        pair.scripted.send(reversed(replies))
        assert [len(batch.me_list.me) for batch in batches] == [3, 1]


def test_a_raw_reply_is_addressed() -> None:
    with exchange() as pair:
        batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=3)
        asked = pair.scripted.take()
        reply = asked.reply(b"<a/>")
        assert (reply.destination, reply.correlation_id) == (asked.message.reply_to, asked.message.message_id)
        pair.scripted.send([reply])
        with pytest.raises(ValueError, match="not a SOAP envelope"):
            next(batches)


def test_no_request_comes() -> None:
    with exchange() as pair:
        with pytest.raises(ReplyTimeoutError, match="no request came"):
            pair.scripted.take(0)
        with pytest.raises(IllegalStateError, match="without destination"):
            pair.scripted.send([JmsMessage(body=b"")])


def test_a_script_that_fails_is_seen_by_the_test() -> None:
    running = threading.Event()

    def script(asked: Any) -> list[JmsMessage]:
        running.set()
        raise ZeroDivisionError("in the script")

    with connect_privately() as connection:
        supplier = ScriptedSupplier(connection, SUPPLIER).start(script)
        connection.session().send(supplier.destination, JmsMessage(body=b""))
        assert running.wait(10)
        with pytest.raises(ZeroDivisionError, match="in the script"):
            supplier.close()
        supplier.close()


def test_by_hand_and_by_script_do_not_mix() -> None:
    with exchange() as pair:
        pair.scripted.start(lambda asked: asked.replies([EMS]))
        assert len(pair.stub(ManagedElementRetrieval).get_all_managed_elements().me_list.me) == 4
        pair.scripted.close()
        with pytest.raises(IllegalStateError):
            pair.scripted.take(0)


def test_a_clock_and_bounds_of_the_provider() -> None:
    with exchange(provider={"clock": lambda: 1_000_000.0, "capacity": 1, "send_timeout": 0}) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        stub.get_all_managed_elements.batches(batch_size=1).close()
        with pytest.raises(TransportError, match="full"):
            stub.get_all_managed_elements.batches(batch_size=1)
        assert pair.scripted.take().message.timestamp_ms == 1_000_000_000


def test_everything_that_is_promised_is_there() -> None:
    assert [name for name in testing.__all__ if not hasattr(testing, name)] == []
    assert {"exchange", "ScriptedSupplier", "gap", "duplicate", "reorder", "truncate"} <= set(testing.__all__)
    assert set(testing.__all__) <= set(dir(testing))
    with pytest.raises(AttributeError, match="no attribute 'sleep'"):
        _ = testing.sleep


# The fixtures as a plugin of pytest: found where the distribution is installed, once, and at no cost to others.

NAME = "mtosi_jms.testing.fixtures"
THEIRS = """
from mtosi_jms.simulator import ManagedElementEms
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.testing import late

def test_exchange(mtosi_exchange, mtosi_network, mtosi_clock):
    ems = ManagedElementEms(mtosi_network(technology="OTN"))
    pair = mtosi_exchange([ems], tamper=lambda replies: late(replies, at=1, seconds=5), timer=mtosi_clock)
    batches = pair.stub(ManagedElementRetrieval).get_all_managed_elements.batches(batch_size=3)
    assert len(next(batches).me_list.me) == 3
    mtosi_clock.advance(5)
    assert len(next(batches).me_list.me) == 2

def test_connection(mtosi_connection):
    assert mtosi_connection.names.lookup("jms/SupplierOS").name == "SUPPLIER.OS"

def test_notifications(mtosi_notifications, mtosi_network):
    one, other = mtosi_notifications(), mtosi_notifications()
    one.publish(mtosi_network().events(40))
    assert one.received("Fault") and not other.received("Fault")
"""
OTHERS = """
import sys
def test_of_something_else():
    assert "mtosi_jms.testing.fixtures" in sys.modules
    heavy = ("lxml", "mtosi_jms.stubs", "mtosi_jms.transport", "mtosi_jms.simulator", "mtosi_jms.testing._pair")
    assert [name for name in heavy if name in sys.modules] == []
"""
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path, root: Path) -> Run:
    """pytest in a project of somebody else, who has installed the SDK: its metadata says what pyproject.toml says."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    installed = tmp_path / "site" / "mtosi_jms-9.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: mtosi-jms\nVersion: 9\n")
    points = "".join(f"{name} = {target}\n" for name, target in project["entry-points"]["pytest11"].items())
    (installed / "entry_points.txt").write_text(f"[pytest11]\n{points}")
    theirs = tmp_path / "theirs"
    theirs.mkdir()

    def start(test: str, *arguments: str, conftest: str = "") -> subprocess.CompletedProcess[str]:
        (theirs / "test_theirs.py").write_text(test)
        if conftest:
            (theirs / "conftest.py").write_text(conftest)
        # Hypothesis is the largest part of what pytest imports here, and no part of this.
        off = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
        command = [sys.executable, "-m", "pytest", "-v", *off, "-W", "error", *arguments, "."]
        environment = {"PYTHONPATH": f"{root}:{installed.parent}", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, cwd=theirs, env=environment, capture_output=True, text=True)

    return start


@pytest.mark.parametrize(
    ("arguments", "conftest"),
    [
        ((), ""),
        pytest.param(("-p", NAME), "", marks=pytest.mark.endurance),
        pytest.param((), f"pytest_plugins = ['{NAME}']\n", marks=pytest.mark.endurance),
        ((), f"from {NAME} import mtosi_connection, mtosi_exchange\n"),
    ],
    ids=["installed", "named as well", "in a conftest as well", "imported as well"],
)
def test_the_fixtures_are_there_once(run: Run, arguments: tuple[str, ...], conftest: str) -> None:
    done = run(THEIRS, *arguments, conftest=conftest)
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_they_can_be_turned_off(run: Run) -> None:
    done = run(THEIRS, "-p", f"no:{NAME}")
    assert "3 errors" in done.stdout, done.stdout + done.stderr
    assert "fixture 'mtosi_exchange' not found" in done.stdout


def test_other_tests_do_not_pay_for_the_sdk(run: Run) -> None:
    done = run(OTHERS)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_pytest_is_needed_for_the_fixtures_alone(root: Path) -> None:
    code = "import sys, mtosi_jms.testing; from mtosi_jms.testing import exchange; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(root)}).returncode == 0


def test_this_suite_has_them_once(request: pytest.FixtureRequest) -> None:
    assert [plugin for plugin in request.config.pluginmanager.get_plugins() if plugin is fixtures] == [fixtures]
    assert fixtures.__all__ == sorted(name for name in vars(fixtures) if name.startswith("mtosi_"))


@pytest.mark.parametrize(
    "arguments", [("-p", f"no:{NAME}"), pytest.param(("-p", NAME), marks=pytest.mark.endurance)], ids=["off", "named"]
)
def test_this_suite_has_them_in_any_case(arguments: tuple[str, ...], root: Path) -> None:
    test = "tests/exchange/test_batch_exchanges.py::test_a_slow_caller_is_not_timed_out_by_itself"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, test]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


# docs/testing.md: its test passes, and it names all there is.


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "testing.md").read_text(encoding="utf-8")


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def test_the_test_on_the_page_passes(page: str, tmp_path: Path, root: Path) -> None:
    (tmp_path / "test_page.py").write_text(next(block for block in blocks(page) if "def test_" in block))
    command = [sys.executable, "-m", "pytest", "-q", "-p", fixtures.__name__, "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(root)}, capture_output=True, text=True)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_page_names_all_there_is(page: str) -> None:
    named = [
        *fixtures.__all__,
        *TECHNOLOGIES,
        *(field.name for field in dataclasses.fields(Network)),
        *("gap", "duplicate", "reorder", "delay", "late", "truncate"),
        *("exchange", "notifications", "ManualClock", "ScriptedSupplier", "standing_alarms"),
    ]
    assert len(named) > 25
    assert [name for name in named if f"`{name}`" not in page and f"`{name}(" not in page] == []
