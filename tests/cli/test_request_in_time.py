"""`mtosi-jms request --timeout`: the whole command takes no longer, whatever it is that does not answer."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator

import pytest

from mtosi_jms.cli import main


@pytest.fixture
def silent() -> Iterator[str]:
    """Something that takes connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"stomp://127.0.0.1:{listener.getsockname()[1]}"


def spent(url: str, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[float, str]:
    began = time.monotonic()
    assert main(["request", "getAllManagedElements", "--url", url, "--to", "queue:X", "--timeout", "0.4", *words]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    return time.monotonic() - began, err


@pytest.mark.parametrize("brokers", ["{0}", "failover:({0},{0},{0})"])
def test_a_broker_that_never_answers(brokers: str, silent: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One attempt may take ten seconds where nothing is said."""
    seconds, err = spent(brokers.format(silent), capsys)
    assert 0.3 < seconds < 9
    assert "no answer within" in err


@pytest.mark.parametrize("words", [[], ["--batch-size", "5"]])
def test_nobody_consumes_the_destination(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    seconds, err = spent("memory:request-in-time", capsys, *words)
    assert 0.3 < seconds < 9
    assert re.search(r"getAllManagedElements to queue:X: no reply within 0\.\d+ s, .*nobody consumes queue:X", err)
