"""Files of names, passwords and deployments that are none: refused at once, and never read without an end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mtosi_jms.cli import main


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.obligation("OPS5")
@pytest.mark.parametrize(
    ("make", "reason"), [(pipe, "a named pipe"), (endless, "a named pipe"), (huge, "larger than 16,777,216 bytes")]
)
@pytest.mark.parametrize(
    "words",
    [
        ["queue", "count", "queue:Q", "--url", "memory:", "--names"],
        ["queue", "count", "queue:Q", "--url", "stomp://127.0.0.1:1", "--user", "u", "--password-file"],
        ["serve", "--destination", "queue:Q", "--url", "memory:", "--http", "127.0.0.1:0", "--tokens"],
        ["deployment"],
    ],
    ids=lambda words: words[-1],
)
def test_it_is_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    make: Callable[[Path], None],
    reason: str,
) -> None:
    file = tmp_path / "file"
    make(file)
    assert main([*words, str(file)]) == 1
    err = capsys.readouterr().err
    assert str(file) in err
    assert reason in err
