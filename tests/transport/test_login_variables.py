"""Provider and login from the environment: which variables there are, which goes first, one place that reads them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mtosi_jms.errors import ConfigError
from mtosi_jms.transport import settings


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in settings.VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "password"
    made.write_text("of-file\nsecond line\n", encoding="utf-8")
    return made


def test_what_nobody_says_is_empty() -> None:
    assert settings.with_login({"prefetch": 3}) == {"prefetch": 3, "user": "", "password": "", "ca_file": ""}
    assert settings.url_from_environment() is None


@pytest.mark.parametrize("name", settings.VARIABLES)
def test_an_empty_variable_counts_as_absent(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "")
    assert settings.with_login({}) == {"user": "", "password": "", "ca_file": ""}
    assert settings.url_from_environment() is None


@pytest.mark.parametrize("content", [b"", b"\nsecond", b"\xff s3cret"])
def test_a_password_file_without_a_password(tmp_path: Path, content: bytes) -> None:
    wrong = tmp_path / "password"
    wrong.write_bytes(content)
    with pytest.raises(ConfigError, match="password file") as caught:
        settings.with_login({"password_file": str(wrong)})
    assert caught.value.__cause__ is None  # an error of decoding would hold what the file holds
    assert "s3cret" not in str(caught.value)


def test_a_password_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        settings.password_in(tmp_path / "none")


def test_no_other_variable_of_the_provider_is_read_anywhere(root: Path) -> None:
    named = re.compile(r"\bMTOSI_(?:JMS_)?(?:URL|USER|PASSWORD|PASSWORD_FILE|CA_FILE)\b")
    found = {
        (path.relative_to(root).as_posix(), name)
        for folder in ("mtosi_jms", "codegen", "examples", "benchmarks", "docs")
        for path in (root / folder).rglob("*")
        if path.suffix in (".py", ".md") and "stubs" not in path.parts
        for name in named.findall(path.read_text(encoding="utf-8"))
    }
    assert {name for _, name in found} == set(settings.VARIABLES)
    quoted = re.compile(rf'"(?:{"|".join(settings.VARIABLES)})"')
    readers = [
        path.name for path in (root / "mtosi_jms").rglob("*.py") if quoted.search(path.read_text(encoding="utf-8"))
    ]
    assert readers == ["settings.py"]
