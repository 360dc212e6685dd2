"""The fixtures as a plugin of pytest: found where the distribution is installed, once, and at no cost to others."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from mtosi_jms.testing import fixtures

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
