"""Commands against the embedded provider: a supplier in a thread, and arguments as a command line gives them."""

from __future__ import annotations

import argparse
import itertools
import queue
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import mtosi_jms as mtosi
from mtosi_jms.cli import parser_for
from mtosi_jms.cli.providers import find_provider
from mtosi_jms.cli.running import Stop
from mtosi_jms.simulator._command import serve, services_of

_numbers = itertools.count(1)

Parsed = Callable[..., argparse.Namespace]


@pytest.fixture
def parsed() -> Parsed:
    """The arguments of a command line."""

    def parse(command: str, *words: str) -> argparse.Namespace:
        args = parser_for(command).parse_args([command, *words])
        if "provider_required" in args:
            find_provider(args)
        return args

    return parse


@pytest.fixture
def url() -> str:
    """An embedded provider that no other test knows."""
    return f"memory:commands-{next(_numbers)}"


@pytest.fixture
def serving(url: str, parsed: Parsed, background: Any) -> Iterator[Callable[..., Callable[[], None]]]:
    """Runs `serve` on the queue EMS with further options, and returns what ends it, with exit code 0, before the test's
    end does."""
    with ExitStack() as stack:

        def start(*words: str, names: Any = None) -> Callable[[], None]:
            args = parsed("serve", "--url", url, "--destination", "queue:EMS", *words)
            connection = stack.enter_context(mtosi.connect(url, names=names))
            stop = stack.enter_context(Stop())
            ready: queue.Queue[str] = queue.Queue()
            running = background(lambda: serve(connection, args, services_of(args), stop, ready.put))
            assert ready.get(timeout=30).startswith("ready: queue:EMS")

            def finish() -> None:
                stop.set()
                assert running.result(30) == 0

            stack.callback(finish)
            return finish

        yield start
