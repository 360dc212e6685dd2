"""Commands with `--release 1.1`: the simulator answers requests of MTOSI 1.1 with the network of 2.0."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

import mtosi_jms as mtosi
from mtosi_jms.cli import main
from mtosi_jms.errors import MtosiFault
from mtosi_jms.simulator import (
    AlarmEms,
    EquipmentEms,
    InventoryEms,
    ManagedElementEms,
    Network,
    event_in_release1,
    in_release1,
    standing_alarms,
)
from mtosi_jms.stubs11.ns_tmf854_v1 import types
from mtosi_jms.stubs11.ns_tmf854_v1_ws.alarm_retrieval import AlarmRetrieval
from mtosi_jms.stubs11.ns_tmf854_v1_ws.equipment_inventory_mgr import EquipmentInventoryMgr
from mtosi_jms.stubs11.ns_tmf854_v1_ws.inventory_retrieval import InventoryRetrieval
from mtosi_jms.stubs11.ns_tmf854_v1_ws.managed_element_mgr import ManagedElementMgr
from mtosi_jms.testing import exchange
from mtosi_jms.xmlbind import to_element

from ..release import SHARED

Capture = pytest.CaptureFixture[str]
Call = Callable[..., tuple[int, str, str]]
SPACE = "{tmf854.v1}"


@pytest.fixture
def request_of(url: str, serving: Callable[..., Any], capsys: Capture) -> Call:
    serving("--elements", "3", "--release", "1.1")

    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["request", "--release", "1.1", *words, "--url", url, "--to", "queue:EMS", "--timeout", "20"])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return call


@pytest.fixture
def is_valid(root: Path) -> Callable[[etree._Element], bool]:
    """Whether an element is valid by the profile, and by the release where it is at hand."""
    folders = [root / "mtosi-1.1" / "xsd" / "messages.xsd"]
    names = ("InventoryRetrieval", "ManagedElementMgr", "EquipmentInventoryMgr", "AlarmRetrieval")
    release = SHARED / "mtosi" / "1.1" / "xsd" / "interfaces"
    schemas = [etree.XMLSchema(file=str(file)) for file in folders]
    theirs = [etree.XMLSchema(file=str(release / f"{name}.xsd")) for name in names if release.is_dir()]

    def judge(element: etree._Element) -> bool:
        ours = all(schema.validate(element) for schema in schemas)
        return ours and (not theirs or any(schema.validate(element) for schema in theirs))

    return judge


@pytest.mark.parametrize(
    ("words", "holds"),
    [
        (("getManagedElement", "--set", "meName=MD=EMS1/ME=NE-2"), {"me": 1}),
        (("getAllManagedElements", "--set", "mdName=MD=EMS1"), {"me": 3, "networkAccessDomain": 3}),
        (("getAllManagedElementNames", "--set", "mdName=MD=EMS1"), {"meNm": 3}),
        (("getAllEquipment", "--set", "meOrHolderName=MD=EMS1/ME=NE-1"), {"eh": 2, "eq": 2}),
        (("getContainedEquipment", "--set", "equipmentHolderName=MD=EMS1/ME=NE-1/EH=%2Frack%3D1"), {"eoh": 1}),
        (("getEquipment", "--set", "equipmentOrHolderName=MD=EMS1/ME=NE-1/EH=%2Frack%3D1"), {"holderType": 1}),
        (("getInventory",), {"meInv": 3, "ehInv": None, "eqInv": None, "ptpInv": None}),
        (("AlarmRetrieval.getActiveAlarms",), {"eventInfo": None, "perceivedSeverity": None}),
        (("getActiveAlarmsCount", "--set", "filter.source=INTERNAL"), {"activeAlarmCount": 1}),
    ],
)
def test_each_operation_answers_what_its_schema_allows(
    request_of: Call, is_valid: Callable[[etree._Element], bool], words: tuple[str, ...], holds: dict[str, int | None]
) -> None:
    code, out, err = request_of(*words, "--validate", "warn")
    assert (code, err) == (0, "")
    answer = etree.fromstring(out)
    assert is_valid(answer)
    for name, count in holds.items():
        found = len(list(answer.iter(f"{SPACE}{name}")))
        assert found == count if count else found > 3


def test_batches_and_faults(request_of: Call) -> None:
    code, out, _ = request_of("getAllManagedElements", "--set", "mdName=MD=EMS1", "--batch-size", "2")
    assert code == 0
    assert re.findall(r"^batch (\d).*: (\d) ME: MD=EMS1/ME=NE-", out, re.MULTILINE) == [("1", "2"), ("2", "1")]
    code, out, _ = request_of("getInventory", "--show", "summary")
    assert "3 ME: MD=EMS1/ME=NE-1, MD=EMS1/ME=NE-2, MD=EMS1/ME=NE-3; 6 EH: " in out
    code, _, err = request_of("getManagedElement", "--set", "meName=MD=EMS1/ME=none")
    assert code == 1
    assert "entityNotFound" in err


@pytest.fixture(scope="module")
def services() -> list[Any]:
    """The services of the simulator, each over seven elements."""
    network = Network(elements=7)
    alarms = standing_alarms(network.events(200)).values()
    kinds: list[Any] = [ManagedElementEms(network), EquipmentEms(network), InventoryEms(network), AlarmEms(alarms)]
    return [in_release1(one) for one in kinds]


@pytest.mark.parametrize(
    ("service", "operation", "fields"),
    [
        (ManagedElementMgr, "get_all_managed_elements", {"md_name": "MD=EMS1"}),
        (ManagedElementMgr, "get_all_managed_element_names", {"md_name": "MD=EMS1"}),
        (EquipmentInventoryMgr, "get_all_equipment", {"me_or_holder_name": "MD=EMS1/ME=NE-1"}),
        (InventoryRetrieval, "get_inventory", {}),
        (AlarmRetrieval, "get_active_alarms", {}),
    ],
)
def test_in_the_rpc_style_batches_come_by_iterator(
    services: list[Any], service: Any, operation: str, fields: dict[str, str]
) -> None:
    """They are those of the MSG style; each is asked for, with the reference that the reply before it has."""
    names = {field: types.name(text) for field, text in fields.items()}
    headers: list[Any] = []
    with exchange(services) as pair:
        stub = pair.stub(service)

        def batches(**header: str) -> list[Any]:
            options = mtosi.CallOptions(header=header, on_reply=lambda envelope: headers.append(envelope.header))
            return list(getattr(stub, operation).batches(**names, batch_size=2, options=options))

        sent = batches()
        headers.clear()
        assert batches(communication_style="RPC") == sent
        with pytest.raises(MtosiFault, match="no iterator that is open"):
            getattr(stub, f"{operation}_iterator")()
    assert len(sent) > 1
    assert [one.batch_sequence_number for one in headers] == list(range(1, len(sent) + 1))
    assert [one.batch_sequence_end_of_reply for one in headers] == [False] * (len(sent) - 1) + [True]
    assert headers[-1].iterator_reference_uri is None
    assert {one.activity_name[-8:] for one in headers[1:]} == {"Iterator"}


def test_of_many_open_iterators_the_oldest_are_closed(services: list[Any]) -> None:
    options = mtosi.CallOptions(header={"communication_style": "RPC"})
    with exchange(services) as pair:
        names = pair.stub(ManagedElementMgr).get_all_managed_element_names
        begun = [names.batches(md_name=types.name("MD=EMS1"), batch_size=3, options=options) for _ in range(101)]
        for one in begun:
            next(one)
        with pytest.raises(MtosiFault, match="no iterator that is open"):
            next(begun[0])
        assert [len(list(one)) for one in (begun[1], begun[-1])] == [2, 2]


def test_events_of_the_network_are_valid(root: Path) -> None:
    schema = etree.XMLSchema(file=str(root / "mtosi-1.1" / "xsd" / "messages.xsd"))
    kinds = {field.table().cls: field.name for field in types.EventT.__xml__.fields if field.kind == "element"}
    kind: Any = types.EventT
    found = set()
    for event in Network(elements=20).events(300):
        made = event_in_release1(event)
        message = kind(**{kinds[type(made)]: made})
        assert schema.validate(to_element(types.Notify(topic="Inventory", message=message))), schema.error_log
        found.add(type(made))
    assert {types.AlarmT, types.AttributeValueChangeT, types.ObjectCreationT, types.StateChangeT} <= found
