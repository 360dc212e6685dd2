"""The WSDLs that the document lists, in the release MTOSI 2.0: each a service, each operation carried out over JMS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import mtosi_jms.stubs
from mtosi_codegen import Result, generate, write
from mtosi_jms.service.registry import services_of

LISTED = {
    "ManageResourceInventory": {
        "ConnectionRetrieval": 14,
        "EquipmentInventoryRetrieval": 7,
        "FlowDomainRetrieval": 16,
        "ManagedElementRetrieval": 4,
        "ManagementDomainRetrieval": 2,
        "MultiLayerSubnetworkRetrieval": 4,
        "OperationsSystemRetrieval": 3,
        "ResourceInventoryRetrieval": 1,
        "ResourceInventoryUpdate": 1,
        "TerminationPointRetrieval": 26,
        "TopologicalLinkRetrieval": 8,
        "TrafficConditioningProfileRetrieval": 3,
        "TransmissionDescriptorRetrieval": 4,
    },
    "ResourcePerformanceManagement": {
        "PerformanceManagementControl": 3,
        "PerformanceManagementRetrieval": 10,
        "ThresholdCrossingAlertControl": 13,
    },
    "ResourceProvisioning": {
        "CommonResourceProvisioning": 1,
        "ConnectionControl": 15,
        "EquipmentProvisioning": 2,
        "FlowDomainControl": 15,
        "GuiCutThroughControl": 3,
        "SoftwareAndDataControl": 5,
        "TerminationPointControl": 9,
        "TopologicalLinkControl": 2,
        "TrafficConditioningProfileControl": 3,
        "TransmissionDescriptorControl": 4,
    },
    "ResourceTroubleManagement": {
        "AlarmControl": 4,
        "AlarmHandling": 2,
        "AlarmRetrieval": 2,
        "AlarmSeverityAssignmentProfileControl": 5,
        "AlarmSeverityAssignmentProfileRetrieval": 5,
        "MaintenanceControl": 2,
        "ProtectionControl": 1,
        "ProtectionRetrieval": 12,
    },
    "ServiceActivation": {"ServiceActivationInterface": 13, "ServiceComponentActivationInterface": 7},
    "Framework": {"NotificationBroker": 3, "NotificationConsumer": 1, "NotificationProducer": 2},
}
"""Folder, service, operations: W1 to W39 in their order."""

ELSEWHERE = {
    "AlarmSeverityAssignmentProfileControl": "AsapControl",
    "AlarmSeverityAssignmentProfileRetrieval": "AsapRetrieval",
}
"""Services whose folder has another name (C39)."""

UNLISTED = {"Mart", "ServiceInventoryRetrieval"}
"""Services of the release that the document does not name (C38)."""

BARE = {"getAssociatedTerminationPointsWrtTmd"}
"""Its exception is declared with the type of a request, which can say nothing: the fault goes without it."""

ROWS = [
    pytest.param(folder, name, count, id=f"W{number}-{name}")
    for number, (folder, name, count) in enumerate(
        ((folder, name, count) for folder, services in LISTED.items() for name, count in services.items()), 1
    )
]


@cache
def release(folder: Path) -> Result:
    return generate([folder / "mtosi" / "2.0"])


@pytest.fixture(scope="module")
def carried_out(shared: Path, root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of each operation of the release."""
    folder = tmp_path_factory.mktemp("release")
    write(folder / "listed20", release(shared).files)
    program = Path(__file__).with_name("release_process.py")
    command = [sys.executable, "-W", "error", str(program), str(folder), "listed20"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(root), str(root / "codegen")))}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.obligation(
    "W1", "W2", "W3", "W4", "W5", "W6", "W7", "W8", "W9", "W10", "W11", "W12", "W13", "W14", "W15", "W16", "W17", "W18",
    "W19", "W20", "W21", "W22", "W23", "W24", "W25", "W26", "W27", "W28", "W29", "W30", "W31", "W32", "W33", "W34",
    "W35", "W36", "W37", "W38", "W39", "P20", "P23", "P26", "C39", "O8a",
)  # fmt: skip
@pytest.mark.parametrize(("folder", "name", "count"), ROWS)
def test_listed_wsdl(shared: Path, carried_out: dict[str, Any], folder: str, name: str, count: int) -> None:
    """It lies where the document says, becomes a service with all operations, and each of these goes over JMS."""
    (service,) = [one for one in release(shared).services if one.name == name]
    assert service.wsdl == f"{folder}/IIS/wsdl/{ELSEWHERE.get(name, name)}/{name}Jms.wsdl"
    assert service.address.startswith(f"jms://aserver/mtosi/{name}")
    assert not service.failed
    assert len(service.operations) == len(carried_out[name]) == count
    for operation in service.operations:
        one_way = operation.name == "notify"
        assert operation.mep == ("one-way" if one_way else "request-response")
        assert carried_out[name][operation.name] == (
            {"type": "NOTIFICATION", "reply_to": None, "fault": None}
            if one_way
            else {
                "type": "REQUEST",
                "reply_to": "queue:REQUESTOR",
                "fault": "bare" if operation.name in BARE else "typed",
            }
        )


@pytest.mark.obligation("C36", "C37", "C38")
def test_what_the_release_has_besides(shared: Path) -> None:
    """41 services; none has the names of MTOSI 1, and operations begin with a small letter."""
    services = release(shared).services
    listed = {name for group in LISTED.values() for name in group}
    assert len(listed) == 39
    assert {service.name for service in services} == listed | UNLISTED
    operations = {operation.name for service in services for operation in service.operations}
    assert {"subscribe", "unsubscribe", "notify"} <= operations
    assert all(name[0].islower() for name in operations)


@pytest.mark.obligation("C36", "C37")
def test_the_shipped_services_have_the_names_of_the_release() -> None:
    names = {service.name for service in services_of(mtosi_jms.stubs.__name__)}
    assert names <= {name for group in LISTED.values() for name in group}
    assert {"NotificationBroker", "NotificationConsumer", "NotificationProducer"} <= names


@pytest.mark.obligation("O8a", "P26")
def test_every_shipped_operation_but_notify_has_a_response() -> None:
    for service in services_of(mtosi_jms.stubs.__name__):
        for operation in service.operations:
            assert (operation.mep == "one-way") is (operation.name == "notify")
            assert bool(operation.response) is (operation.mep == "request-response")


@pytest.mark.obligation("C41")
def test_iterators_are_generated_and_called_deprecated(shared: Path) -> None:
    result = release(shared)
    iterators = [
        (service, operation)
        for service in result.services
        for operation in service.operations
        if operation.name.endswith("Iterator")
    ]
    assert len(iterators) == 20
    for service, operation in iterators:
        module = f"{service.module.replace('.', '/')}.py"
        text = result.files[module]
        start = text.index(f'"""Operation {operation.name}."""')
        assert "Deprecated over JMS" in text[start : text.index("return self.invoke(", start)]
    assert sum(text.count("Deprecated over JMS") for text in result.files.values()) == len(iterators)
