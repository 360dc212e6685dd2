"""What make says where a prerequisite is missing, and what CI does then."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKE = shutil.which("make") or ""

pytestmark = pytest.mark.skipif(not MAKE, reason="make is not installed")

Make = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Run make in a folder of its own, with nothing on PATH but a few tools and the given scripts."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("cat", "cksum", "sed"):
        found = shutil.which(name)
        assert found
        (tools / name).symlink_to(found)
    checkout = tmp_path / "a checkout"
    checkout.mkdir()
    for name in ("Makefile", "pyproject.toml", "requirements.lock", "release.lock"):
        shutil.copy(ROOT / name, checkout)
    shutil.copytree(ROOT / "native", checkout / "native", ignore=shutil.ignore_patterns("target"))

    def run(
        *arguments: str, java: str = "", python: str = "", cargo: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        for name, text in (("java", java), ("python3", python), ("cargo", cargo)):
            (tools / name).unlink(missing_ok=True)
            if text:
                script(tools / name, text)
        return subprocess.run(
            [MAKE, "-C", str(checkout), "--no-print-directory", *arguments],
            env={"PATH": str(tools), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    return run


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def java_of(version: str) -> str:
    return f"echo 'openjdk version \"{version}\" 2025-04-15' >&2"


def only_line(result: subprocess.CompletedProcess[str]) -> str:
    """The single line that a failed make printed."""
    assert result.returncode != 0
    lines = (result.stdout + result.stderr).splitlines()
    assert len(lines) == 1, lines
    return lines[0]


@pytest.mark.parametrize("target", ["demo", "test"])
def test_a_missing_java_is_said_in_one_line(make: Make, tmp_path: Path, target: str) -> None:
    line = only_line(make(target))
    assert "Java 17 or later is missing: on Debian or Ubuntu, apt-get install openjdk-17-jre-headless" in line
    assert not (tmp_path / "a checkout" / ".venv").exists()


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_402", "9", "16.0.1"])
def test_an_old_java_counts_as_missing(make: Make, version: str) -> None:
    assert "Java 17 or later is missing" in only_line(make("test", java=java_of(version)))


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.3", "25-ea"])
def test_a_new_java_will_do_and_python_is_asked_for_next(make: Make, version: str) -> None:
    line = only_line(make("test", java=java_of(version)))
    assert "Python 3.11 or later is missing: on Debian or Ubuntu, apt-get install python3 python3-venv" in line


def test_java_home_comes_before_the_path(make: Make, tmp_path: Path) -> None:
    home = tmp_path / "jdk"
    script(home / "bin" / "java", java_of("17.0.1"))
    assert "Python 3.11" in only_line(make("demo", java=java_of("11.0.2"), JAVA_HOME=str(home)))


def test_an_old_python_counts_as_missing(make: Make) -> None:
    assert "Python 3.11 or later is missing" in only_line(make("check", python="exit 1"))


def test_a_named_python_is_checked_too(make: Make) -> None:
    assert "Python 3.11 or later is missing" in only_line(make("check", "PYTHON=no-such-python"))


def test_a_python_without_venv_is_named_as_such(make: Make) -> None:
    without = f'case "$2" in *ensurepip*) exit 1;; esac\nexec {shlex.quote(sys.executable)} "$@"'
    assert "Python has no venv module: on Debian or Ubuntu, apt-get install python3-venv" in only_line(
        make("check", python=without)
    )


def test_the_demo_goes_to_the_broker_that_is_named(make: Make) -> None:
    given = ("-n", "demo", "URL=failover:(stomp://a,stomp://b)?x=1&y=it's", "ARGS=--elements 5")
    result = make(*given, java=java_of("17"), python=f'exec {shlex.quote(sys.executable)} "$@"', URL="of-the-shell")
    assert result.returncode == 0, result.stderr
    (line,) = (line for line in result.stdout.splitlines() if "bin/mtosi-jms demo" in line)
    assert shlex.split(line)[1:] == ["demo", "--url", "failover:(stomp://a,stomp://b)?x=1&y=it's", "--elements", "5"]


def run_ci(tmp_path: Path, **tools: str) -> subprocess.CompletedProcess[str]:
    """CI's script where nothing is but these tools; make only tells its target."""
    folder = tmp_path / "bin"
    for name in ("bash", "cp", "dirname", "env", "head", "ln", "mkdir", "mktemp", "rm", "sed"):
        found = shutil.which(name)
        assert found
        folder.mkdir(exist_ok=True)
        (folder / name).symlink_to(found)
    script(folder / "id", "echo 0")
    script(folder / "make", 'case $HOME in */tmp.*) bare="bare ";; esac; echo "${bare:-}make $1"')
    for name, text in tools.items():
        script(folder / name.replace("_", "-"), text)
    checkout = tmp_path / "checkout" / ".ci"
    checkout.mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", checkout)
    return subprocess.run(
        ["bash", str(checkout / "run")],
        env={"PATH": str(folder), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )


CI_STEPS = ["bare make demo", "bare make test", "make check", "make docs", "make spark", "make test"]


def test_ci_goes_on_where_nothing_can_be_installed(tmp_path: Path) -> None:
    result = run_ci(tmp_path, apt_get="exit 100")
    assert (result.returncode, result.stdout.splitlines()) == (0, CI_STEPS)
    told = [line.removeprefix("not installed: ") for line in result.stderr.splitlines() if "not installed" in line]
    assert told == ["openjdk-17-jdk-headless", "maven", "cargo", "chromium"]


def test_ci_goes_on_without_apt(tmp_path: Path) -> None:
    result = run_ci(tmp_path)
    assert (result.returncode, result.stdout.splitlines()) == (0, CI_STEPS)
    assert "no apt-get: maven" in result.stderr


def test_ci_installs_only_what_is_missing(tmp_path: Path) -> None:
    result = run_ci(tmp_path, java=java_of("17.0.1"), javac="exit 0", mvn="exit 0", apt_get='echo "apt-get $*"')
    assert "jdk" not in result.stderr
    assert "maven" not in result.stderr


def test_ci_wants_the_compiler_too(tmp_path: Path) -> None:
    result = run_ci(tmp_path, java=java_of("17.0.1"), mvn="exit 0", apt_get='echo "apt-get $*"')
    assert "apt-get install -qq -y --no-install-recommends openjdk-17-jdk-headless" in result.stderr
    assert "openjdk-21" not in result.stderr


def test_ci_ends_with_the_tests_and_is_ready_to_run() -> None:
    path = ROOT / ".ci" / "run"
    assert os.access(path, os.X_OK)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "#!/usr/bin/env bash"
    assert lines[-4:] == [*CI_STEPS[2:-1], "make test ARGS=--durations=25"]
    assert subprocess.run(["bash", "-n", str(path)], capture_output=True).returncode == 0
