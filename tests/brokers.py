"""Brokers of the test suite: starts them on loopback, waits for them, and ends them by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pytest

from mtosi_jms.broker import KINDS, BrokerProcess, Endpoints, start_on_free_ports
from mtosi_jms.errors import ConfigError

LOGIN = ("mtosi", "s3cret-of-tests")
_missing: dict[str, str] = {}  # why a kind is not available, by kind: it is not tried twice


class Brokers:
    """Starts brokers; a context manager that ends all of them.

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
        """Starts a broker and waits until it answers; skips the test if the broker is not available.

        Args:
            kind: `activemq` or `artemis`.
            folder: folder of its data; None: a new one.
            protocols: protocols to offer, on free ports.
            endpoints: instead of `protocols`: endpoints of an earlier start, so that clients find it again.
            options: options of `mtosi_jms.broker.KINDS[kind].start`.
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

    def __exit__(self, *_: object) -> None:
        for process in self._made:
            process.kill()
