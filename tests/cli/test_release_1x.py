"""Commands with `--release 1.1`: the simulator answers requests of MTOSI 1.1 with the network of 2.0."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from mtosi_jms.cli import main
from mtosi_jms.simulator import Network, event_in_release1
from mtosi_jms.stubs11.ns_tmf854_v1 import types
from mtosi_jms.xmlbind import to_element

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
    release = root.parent / "shared" / "mtosi" / "1.1" / "xsd" / "interfaces"
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
    assert re.findall(r"^batch (\d).*: (\d) ", out, re.MULTILINE) == [("1", "2"), ("2", "1")]
    code, _, err = request_of("getManagedElement", "--set", "meName=MD=EMS1/ME=none")
    assert code == 1
    assert "entityNotFound" in err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("request getManagedElment --release 1.1", "did you mean ManagedElementMgr.getManagedElement, "),
        ("request getAllPTPs --release 1.1", "no operation 'getAllPTPs' in the stubs of MTOSI 1.1"),
        ("request getAllManagedElementNames", "there is no operation 'getAllManagedElementNames'"),
        ("serve --release 1.1 --services ManagedElementRetrieval", "release 1.1 has no service"),
        ("serve --services InventoryRetrival", "did you mean ResourceInventoryRetrieval?"),
    ],
)
def test_what_a_release_does_not_have(words: str, text: str, url: str, capsys: Capture) -> None:
    where = "--to" if words.startswith("request") else "--destination"
    assert main([*words.split(), "--url", url, where, "queue:EMS"]) == 2
    assert text in capsys.readouterr().err


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
