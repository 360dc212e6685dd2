"""What make says where a prerequisite is missing, and that CI goes on then."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKE = shutil.which("make") or ""
CI_STEPS = ["bare make demo", "bare make test", "make check", "make docs", "make spark", "make test"]
NO_JAVA = "Java 17 or later is missing: on Debian or Ubuntu, apt-get install openjdk-17-jre-headless"
NO_PYTHON = "Python 3.11 or later is missing: on Debian or Ubuntu, apt-get install python3 python3-venv"
NO_VENV = "Python has no venv module: on Debian or Ubuntu, apt-get install python3-venv"
WHOLE = f'exec {shlex.quote(sys.executable)} "$@"'
WITHOUT_VENV = f'case "$2" in *ensurepip*) exit 1;; esac\n{WHOLE}'

pytestmark = pytest.mark.skipif(not MAKE, reason="make is not installed")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a command in a folder of its own, with nothing on PATH but a few tools and the given scripts."""
    tools, checkout = tmp_path / "bin", tmp_path / "a checkout"
    tools.mkdir()
    for name in ("bash", "cat", "cksum", "cp", "dirname", "env", "head", "ln", "mkdir", "mktemp", "rm", "sed"):
        found = shutil.which(name)
        assert found
        (tools / name).symlink_to(found)
    checkout.mkdir()
    for name in ("Makefile", "pyproject.toml", "requirements.lock", "release.lock"):
        shutil.copy(ROOT / name, checkout)
    for name in ("native", ".ci"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("target"))

    def call(*command: str, **scripts: str) -> subprocess.CompletedProcess[str]:
        for name, text in scripts.items():
            (tools / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
            (tools / name).chmod(0o755)
        variables = {"PATH": str(tools), "HOME": str(tmp_path), "URL": "of-the-shell"}
        return subprocess.run(command, cwd=checkout, env=variables, capture_output=True, text=True, timeout=60)

    return call


def java_of(version: str) -> str:
    return f"echo 'openjdk version \"{version}\" 2025-04-15' >&2"


@pytest.mark.parametrize(
    ("target", "scripts", "says"),
    [
        ("demo", {}, NO_JAVA),
        ("test", {}, NO_JAVA),
        *(("test", {"java": java_of(version)}, NO_JAVA) for version in ("11.0.2", "1.8.0_402", "9", "16.0.1")),
        *(("test", {"java": java_of(version)}, NO_PYTHON) for version in ("17", "17.0.15", "21.0.3", "25-ea")),
        ("check", {"python3": "exit 1"}, NO_PYTHON),
        ("check PYTHON=no-such-python", {"python3": WHOLE}, NO_PYTHON),
        ("check", {"python3": WITHOUT_VENV}, NO_VENV),
    ],
)
def test_what_is_missing_is_said_in_one_line(run: Run, target: str, scripts: dict[str, str], says: str) -> None:
    done = run(MAKE, "--no-print-directory", *target.split(), **scripts)
    lines = (done.stdout + done.stderr).splitlines()
    assert (done.returncode != 0, len(lines)) == (True, 1), lines
    assert says in lines[0]


def test_java_home_comes_before_the_path(run: Run, tmp_path: Path) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{java_of('17')}\n", encoding="utf-8")
    java.chmod(0o755)
    assert NO_PYTHON in run("env", f"JAVA_HOME={tmp_path / 'jdk'}", MAKE, "demo", java=java_of("11.0.2")).stderr


def test_the_demo_goes_to_the_broker_that_is_named(run: Run) -> None:
    given = ("-n", "demo", "URL=failover:(stomp://a,stomp://b)?x=1&y=it's", "ARGS=--elements 5")
    result = run(MAKE, *given, java=java_of("17"), python3=WHOLE)
    assert result.returncode == 0, result.stderr
    (line,) = (line for line in result.stdout.splitlines() if "bin/mtosi-jms demo" in line)
    assert shlex.split(line)[1:] == ["demo", "--url", "failover:(stomp://a,stomp://b)?x=1&y=it's", "--elements", "5"]


def test_ci_goes_on_where_nothing_can_be_installed(run: Run) -> None:
    told = 'case $HOME in */tmp.*) bare="bare ";; esac; echo "${bare:-}make $1"'
    result = run(".ci/run", make=told, id="echo 0")
    assert (result.returncode, result.stdout.splitlines()) == (0, CI_STEPS)
    assert "no apt-get: maven" in result.stderr


def test_the_files_that_it_names_are_there() -> None:
    done = subprocess.run([MAKE, "-n", "spark"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    named = re.findall(r"\btests/\S+\.py\b", done.stdout)
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []
