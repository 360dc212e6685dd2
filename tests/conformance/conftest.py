"""What the conformance tests share: the pair in memory, and a supplier of a few managed elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mtosi_jms.errors import MtosiFault
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.testing.fixtures import mtosi_exchange

__all__ = ["mtosi_exchange"]


class Elements(ManagedElementRetrieval.Supplier):
    """Knows NE-1 to NE-5; whoever asks for another gets a fault."""

    def get_all_managed_elements(self, request: Any, context: Any) -> Iterator[ManagedElementType]:
        for number in range(1, 6):
            yield ManagedElementType(name=name(f"MD=EMS1/ME=NE-{number}"))

    def get_managed_element(self, request: Any, context: Any) -> mer.GetManagedElementResponse:
        if str(request.me_ref) not in {f"MD=EMS1/ME=NE-{number}" for number in range(1, 6)}:
            raise MtosiFault("there is none", kind="entityNotFound")
        return mer.GetManagedElementResponse(me=ManagedElementType(name=request.me_ref))


@pytest.fixture
def elements() -> ManagedElementRetrieval.Supplier:
    return Elements()


@pytest.fixture
def ne1() -> Any:
    return name("MD=EMS1/ME=NE-1")
