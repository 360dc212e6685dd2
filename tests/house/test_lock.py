"""The lock: what it holds, what it must not hold, and that it serves what pyproject.toml asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = ("cli", "codegen", "otel", "stomp", "spark", "test", "zstd")

ENTRIES = {
    match["name"]: (match["version"], re.findall(r"--hash=(\S+)", match["hashes"]))
    for match in re.finditer(
        r"^(?P<name>[\w.-]+)==(?P<version>\S+)(?P<marker> ; [^\n]+)? \\\n(?P<hashes>(?: +--hash=\S+(?: \\)?\n)+)",
        LOCK,
        re.MULTILINE,
    )
}


def wanted() -> list[Requirement]:
    """What the checkout needs: the core, the locked extras, the build backend and the development extras."""
    project = PYPROJECT["project"]
    lines = [*project["dependencies"], *PYPROJECT["build-system"]["requires"]]
    lines += [line for extra in EXTRAS for line in project["optional-dependencies"][extra]]
    development = (ROOT / "requirements.in").read_text(encoding="utf-8").splitlines()
    lines += [line for line in development if line and not line.startswith("#")]
    return [Requirement(line) for line in lines]


def test_every_line_is_a_comment_or_a_pinned_entry_with_hashes() -> None:
    lines = [line for line in LOCK.splitlines() if line.strip() and not line.lstrip().startswith(("#", "--hash="))]
    assert [line for line in lines if line.partition("==")[0] not in ENTRIES] == []
    assert len(lines) == len(ENTRIES) > 30


@pytest.mark.parametrize("name", ENTRIES)
def test_hashes_are_sha256(name: str) -> None:
    _, hashes = ENTRIES[name]
    assert hashes
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", value) for value in hashes)


def test_no_index_and_no_host_is_named() -> None:
    assert not re.search(r"https?:|file:|--(extra-)?index|--find-links|--trusted-host| @ ", LOCK)


@pytest.mark.parametrize("requirement", wanted(), ids=str)
def test_what_the_checkout_needs_is_locked_in_a_version_that_fits(requirement: Requirement) -> None:
    version, _ = ENTRIES[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(version)


@pytest.mark.parametrize("name", ["lxml", "numpy", "pandas", "pyarrow", "markupsafe"])
def test_binary_packages_are_locked_for_more_than_one_platform(name: str) -> None:
    assert len(ENTRIES[name][1]) > 10


def test_a_fuzzer_is_locked_where_it_has_wheels_and_nowhere_else() -> None:
    marker = Marker(re.search(r"^atheris==\S+ ; ([^\n]+) \\$", LOCK, re.MULTILINE)[1])  # type: ignore[index]
    here = {
        "sys_platform": "linux",
        "platform_machine": "x86_64",
        "platform_python_implementation": "CPython",
        "python_version": "3.11",
    }
    assert all(marker.evaluate({**here, "python_version": version}) for version in ("3.11", "3.12", "3.13"))
    elsewhere = ({"sys_platform": "darwin"}, {"platform_machine": "aarch64"}, {"python_version": "3.14"})
    assert not any(marker.evaluate({**here, **other}) for other in elsewhere)


def test_the_header_says_how_it_is_made() -> None:
    assert "make lock" in LOCK.partition("==")[0]
