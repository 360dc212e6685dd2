"""Brokers of the test suite: started on loopback, waited for, ended by their own ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from mtosi_jms.broker import KINDS, BrokerProcess, Endpoints, start_on_free_ports
from mtosi_jms.errors import ConfigError

LOGIN = ("mtosi", "s3cret-of-tests")
_missing: dict[str, str] = {}  # kind, and why it cannot be had: it is not asked for twice


class Brokers:
    """Starts brokers, and ends all of them when it is left.

    Args:
        folders: makes their folders.
    """

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._made: list[BrokerProcess] = []

    def __call__(
        self,
        kind: str,
        folder: Path | None = None,
        *,
        protocols: Sequence[str] = ("stomp", "openwire"),
        endpoints: Endpoints | None = None,
        **options: Any,
    ) -> BrokerProcess:
        """A broker that answers; skips the test where it cannot be had.

        Args:
            kind: `activemq` or `artemis`.
            folder: of its data, which it finds again there; a new one unless told otherwise.
            protocols: what it offers, on free ports.
            endpoints: in place of `protocols`: those of an earlier start, so that clients find it again.
            options: of `mtosi_jms.broker.KINDS[kind].start`.
        """
        if kind in _missing:
            pytest.skip(_missing[kind])
        home = folder or self._folders.mktemp(kind)
        home.mkdir(exist_ok=True)

        def start(where: Endpoints) -> BrokerProcess:
            process = KINDS[kind].start(home, where, **options)
            self._made.append(process)
            return process

        try:
            if endpoints is None:
                return start_on_free_ports(start, protocols, *LOGIN)
            process = start(endpoints)
        except ConfigError as error:
            _missing[kind] = str(error)
            pytest.skip(str(error))
        process.wait_until_ready()
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._made:
            process.kill()
