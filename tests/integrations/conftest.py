"""What the tests of integrations share: the shipped WSDLs as zeep reads them, and clients of a small EMS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("zeep")

from mtosi_jms.integrations.zeep import Client, client, read_wsdl
from mtosi_jms.testing import Pair, exchange

from .keeping import KeepingEms


@pytest.fixture(scope="session")
def wsdls(root: Path) -> Path:
    """The shipped WSDLs."""
    return root / "wsdl"


@pytest.fixture(scope="session")
def retrieval(wsdls: Path) -> Any:
    """The shipped ManagedElementRetrieval as zeep reads it; clients may share it."""
    return read_wsdl(wsdls / "ManagedElementRetrieval.wsdl")


@pytest.fixture
def paired() -> Iterator[Callable[..., Pair]]:
    """Makes both ends of an exchange, with services; without any its supplier follows a script."""
    with ExitStack() as stack:
        yield lambda *services, **options: stack.enter_context(exchange(services, **options))


@pytest.fixture
def keeping() -> KeepingEms:
    """An EMS with five elements."""
    return KeepingEms()


@pytest.fixture
def calling(retrieval: Any, paired: Callable[..., Pair], keeping: KeepingEms) -> Callable[..., Client]:
    """Makes clients of that EMS, with options of zeep's."""
    pair = paired(keeping)
    return lambda **options: client(retrieval, pair.requestor, pair.destination, **options)


def ne(name: str) -> dict[str, Any]:
    """The arguments of getManagedElement."""
    return {"meRef": {"rdn": [{"type": "MD", "value": "EMS1"}, {"type": "ME", "value": name}]}}
