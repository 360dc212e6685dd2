"""The native core and the Python core: the same objects, warnings and errors of every document."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from mtosi_jms import xmlbind
from mtosi_jms.simulator import InventoryEms, Network
from mtosi_jms.stubs.mri.mer import GetAllManagedElementsResponse
from mtosi_jms.stubs.mri.rir import GetInventoryResponse
from mtosi_jms.stubs.nrf.me import ManagedElementListType
from mtosi_jms.xmlbind import Limits

from ..cores import PIECES, changed, difference, is_read_natively
from .test_cases import CASES

pytest.importorskip("mtosi_jms_native", reason="the native core is not built")

Doc = Callable[[str], bytes]


@pytest.fixture(scope="module")
def seeds(doc: Doc, package: str) -> list[bytes]:
    """The case table, and answers with an inventory."""
    network = Network(elements=3, ports=1, channels=1)
    answers = [
        GetAllManagedElementsResponse(me_list=ManagedElementListType(me=list(network.managed_elements()))),
        GetInventoryResponse(inventory_data=InventoryEms(network).data([0])),
    ]
    return [doc(case.xml) for case in CASES] + [xmlbind.encode(answer) for answer in answers]


def test_the_cases_are_read_alike(seeds: list[bytes]) -> None:
    assert [found for seed in seeds if (found := difference(seed))] == []
    assert sum(map(is_read_natively, seeds)) > len(seeds) // 2


def test_anything_put_anywhere_is_read_alike(doc: Doc, package: str) -> None:
    data = doc("<c:store><c:box unit='m'><c:inside>x</c:inside></c:box><c:label>a</c:label></c:store>")
    places = range(len(data) + 1)
    found = (difference(data[:at] + piece + data[at:]) for piece in PIECES for at in places)
    assert next((one for one in found if one), "") == ""


@pytest.mark.parametrize("many", [3_000, pytest.param(10_000_000, marks=pytest.mark.endurance)])
def test_changed_documents_are_read_alike(many: int, seeds: list[bytes]) -> None:
    chance = random.Random(many)
    natively = 0
    for number in range(many):
        data = changed(chance.choice(seeds), chance, seeds)
        assert difference(data) == ""
        natively += number % 10 == 0 and is_read_natively(data)
    assert natively > many // 100
