"""Every operation of the shipped profile and of TM Forum's releases is called by zeep over JMS, without stubs; what
answers is made of stubs, and answers with the least instance."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from zeep.plugins import HistoryPlugin

import mtosi_jms as mtosi
from mtosi_codegen import generate, write
from mtosi_codegen.model import Service
from mtosi_jms.integrations.zeep import client
from mtosi_jms.testing import exchange

from .conftest import ne
from .echoing import ZeepEcho

RELEASES = {"2.0": (41, 242), "4.0": (48, 289)}
SAMPLE = ("CallControl", "MultiLayerSNPPLinkRetrieval", "ServiceActivationInterface")
"""With bindings and imports that need mending, and the largest types."""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, Path], list[tuple[Service, Any]]]]:
    """Generates a package of a name; its services, each with its stub."""
    folder = tmp_path_factory.mktemp("stubs")
    sys.path.insert(0, str(folder))

    def make(name: str, source: Path) -> list[tuple[Service, Any]]:
        result = generate([source])
        write(folder / name, result.files)
        importlib.invalidate_caches()
        load = importlib.import_module
        return [(one, getattr(load(f"{name}.{one.module}"), one.class_name)) for one in result.services]

    yield make
    sys.path.remove(str(folder))


def call_all(stub: Any, wsdl: Path, sources: list[Path]) -> int:
    """Call all operations of a service; how many there are."""
    echo, history = ZeepEcho(stub), HistoryPlugin()
    with exchange([echo.supplier]) as pair:
        ems = client(wsdl, pair.requestor, pair.destination, sources=sources, plugins=[history])
        assert sorted(name for name, _ in ems.service) == sorted(one.name for one in echo.info.operations)
        for operation in echo.info.operations:
            echo.check(ems, history, operation)
    return len(echo.info.operations)


def test_all_operations_of_the_shipped_profile(wsdls: Path) -> None:
    counts = {}
    for service in generate([wsdls]).services:
        stub = getattr(importlib.import_module(f"mtosi_jms.stubs.{service.module}"), service.class_name)
        sources = [wsdls.parent / "xsd"] if service.name.startswith("Notification") else []
        counts[service.name] = call_all(stub, wsdls / service.wsdl, sources)
    assert len(counts) == 7


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_a_release(shared: Path, generated: Callable[..., Any], name: str) -> None:
    (wsdl,) = (shared / "mtosi" / "4.0").rglob(f"{name}Jms.wsdl")
    ((_, stub),) = generated(f"stubs_{name.lower()}", wsdl)
    assert call_all(stub, wsdl, []) >= 5


@pytest.mark.endurance
@pytest.mark.parametrize("release", RELEASES)
def test_all_operations_of_a_release(shared: Path, generated: Callable[..., Any], release: str) -> None:
    folder, counts = shared / "mtosi" / release, []
    for service, stub in generated(f"stubs_{release.replace('.', '_')}", folder):
        # No WSDL reaches the events that a notification may hold.
        sources = [folder] if service.name.startswith("Notification") else []
        counts.append(call_all(stub, folder / service.wsdl, sources))
    assert (len(counts), sum(counts)) == RELEASES[release]


@pytest.mark.broker
@pytest.mark.parametrize("kind", ["activemq", pytest.param("artemis", marks=pytest.mark.endurance)])
def test_a_real_broker(kind: str, request: pytest.FixtureRequest, retrieval: Any, keeping: Any) -> None:
    url = request.getfixturevalue(kind).endpoints.url("stomp")
    with (
        mtosi.connect(url) as connection,
        mtosi.Supplier(connection, f"queue:ZEEP.{kind}", [keeping]),
        mtosi.Requestor(connection, sender_uri="zeep", temporary_reply=True) as requestor,
    ):
        ems = client(retrieval, requestor, f"queue:ZEEP.{kind}")
        assert ems.service.getManagedElement(**ne("NE-2")).body.me.name.rdn[1].value == "NE-2"
        answers = list(ems.batches("getAllManagedElements", batch_size=2))
        assert [len(answer.body.meList.me) for answer in answers] == [2, 2, 1]
        with pytest.raises(mtosi.errors.MtosiFault, match="there is no"):
            ems.service.getManagedElement(**ne("NE-9"))
