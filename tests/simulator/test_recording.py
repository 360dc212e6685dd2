"""Services over a recorded network, and those for equipment and alarms over either."""

from __future__ import annotations

import gzip
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.cli._objects import plain
from mtosi_jms.compression import ZSTD
from mtosi_jms.errors import ConfigError, MtosiFault, SpoolError, XmlError
from mtosi_jms.simulator import (
    AlarmEms,
    EquipmentEms,
    InventoryEms,
    ManagedElementEms,
    Network,
    RecordedInventoryEms,
    Recording,
    standing_alarms,
)
from mtosi_jms.soap import Envelope, Header
from mtosi_jms.stubs.fmw.nam import NamingAttributeListType, name
from mtosi_jms.stubs.fmw.notmsg import Notify, NotifyMessage
from mtosi_jms.stubs.mri import eir, mer, rir
from mtosi_jms.stubs.mri.equipment_inventory_retrieval import EquipmentInventoryRetrieval
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.stubs.mri.resource_inventory_retrieval import ResourceInventoryRetrieval
from mtosi_jms.stubs.nra.alm import AlarmType
from mtosi_jms.stubs.nra.com import PerceivedSeverityListType, PerceivedSeverityType
from mtosi_jms.stubs.nrf.me import ManagedElementListType
from mtosi_jms.stubs.rtm import ar
from mtosi_jms.stubs.rtm.alarm_retrieval import AlarmRetrieval
from mtosi_jms.testing import exchange
from mtosi_jms.xmlbind import encode

NETWORK = Network(elements=4, technology="SDH", slots=2, sub_slots=2)
ALARMS = list(standing_alarms(NETWORK.events(200)).values())
NE2 = name("MD=EMS1/ME=NE-2")


def response(elements: list[int]) -> bytes:
    found = [NETWORK.managed_element(index) for index in elements]
    body = mer.GetAllManagedElementsResponse(me_list=ManagedElementListType(me=found))
    return Envelope(header=Header(), body=body).to_bytes()


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    """The whole network as one bare inventory document, packed; alarms in notifications."""
    data = InventoryEms(NETWORK).data(range(NETWORK.elements))
    document = encode(rir.GetInventoryResponse(inventory_data=data))
    (tmp_path / "inventory.xml.gz").write_bytes(gzip.compress(document))
    for number, alarm in enumerate(ALARMS):
        notify = Notify(topic="T", message=NotifyMessage(common_event_information=[alarm]))
        (tmp_path / f"alarm-{number:03}.xml").write_bytes(Envelope(header=Header(), body=notify).to_bytes())
    return tmp_path


def names(found: Any) -> list[str]:
    return [str(one.name) for one in found]


def test_everything_that_was_recorded_is_there(nested: Path) -> None:
    recording = Recording.read(nested)
    expected = {str(found.name): found for found in NETWORK.objects()}
    found = {called: one for called, one in recording.objects.items() if not called.startswith("TMD")}
    assert set(expected) - set(found) == {str(one.name) for one in NETWORK.descriptors()}
    assert all(plain(found[called]) == plain(one) for called, one in expected.items() if called in found)
    assert [str(alarm.object_name) for alarm in recording.alarms] == [str(alarm.object_name) for alarm in ALARMS]


def test_a_later_object_replaces_an_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "1.xml").write_bytes(response([0, 1]))
    (tmp_path / "2.xml").write_bytes(response([1, 2]).replace(b"Network operations", b"Somebody else"))
    recording = Recording.read(tmp_path)
    assert names(recording.elements()) == ["MD=EMS1/ME=NE-1", "MD=EMS1/ME=NE-2", "MD=EMS1/ME=NE-3"]
    assert [element.owner for element in recording.elements()] == [
        "Network operations",
        "Somebody else",
        "Somebody else",
    ]


def test_elements_of_a_recording(nested: Path) -> None:
    with exchange([ManagedElementEms(Recording.read(nested))]) as pair:
        stub = pair.stub(ManagedElementRetrieval)
        batches = stub.get_all_managed_elements.batches(batch_size=3, md_or_mlsn_ref=name("MD=EMS1"))
        assert [len(batch.me_list.me) for batch in batches if batch.me_list] == [3, 1]
        assert stub.get_managed_element(me_ref=NE2).me == NETWORK.managed_element(1)
        assert stub.get_all_managed_elements_wrt_os(os_ref=name("OS=EMS1")).me_list is not None
        for call, fields in (
            (stub.get_all_managed_elements, {"md_or_mlsn_ref": name("MD=other")}),
            (stub.get_all_managed_elements_wrt_os, {"os_ref": name("OS=other")}),
            (stub.get_managed_element, {"me_ref": name("MD=EMS1/ME=NE-2/PTP=x")}),
        ):
            with pytest.raises(MtosiFault) as caught:
                call(**fields)  # type: ignore[operator]
            assert caught.value.kind == "entityNotFound"


def test_a_recording_in_the_nested_layout_is_a_recording_again(nested: Path, tmp_path: Path) -> None:
    """What it answers holds the same objects, below any base and in batches."""
    recording = Recording.read(nested)
    folder = tmp_path / "again"
    folder.mkdir()
    with exchange([RecordedInventoryEms(recording)]) as pair:
        stub = pair.stub(ResourceInventoryRetrieval)
        for number, batch in enumerate(stub.get_inventory.batches(batch_size=3)):
            (folder / f"{number}.xml").write_bytes(encode(batch))
        assert number == 1
        again = Recording.read(folder)
        assert again.objects.keys() == recording.objects.keys()
        assert all(again.objects[called] == one for called, one in recording.objects.items())
        one = stub.get_inventory(filter=rir.SimpleFilterType(base_instance=[NE2], granularity=rir.GranularityType.FULL))
        assert one.inventory_data is not None
        (domain,) = one.inventory_data.md_list.md  # type: ignore[union-attr]
        assert [element.me_nm for element in domain.me_list.me_inv] == ["NE-2"]  # type: ignore[union-attr]
        with pytest.raises(MtosiFault, match="there is no MD=EMS1/ME=NE-9"):
            stub.get_inventory(
                filter=rir.SimpleFilterType(
                    base_instance=[name("MD=EMS1/ME=NE-9")], granularity=rir.GranularityType.FULL
                )
            )


@pytest.mark.parametrize("recorded", [False, True], ids=["generated", "recorded"])
def test_equipment(nested: Path, recorded: bool) -> None:
    source: Any = Recording.read(nested) if recorded else NETWORK
    expected = sorted([*names(NETWORK.holders(1)), *names(NETWORK.equipment(1))])
    with exchange([EquipmentEms(source)]) as pair:
        stub = pair.stub(EquipmentInventoryRetrieval)

        def found(answer: Any) -> list[str]:
            return sorted(str((one.eq or one.eh).name) for one in answer.eoh)

        assert found(stub.get_all_equipment(me_or_eh_ref=NE2)) == expected
        shelf = name("MD=EMS1/ME=NE-2/EH=%2Frack%3D1%2Fshelf%3D1")
        inside = [one for one in expected if one.startswith(f"{shelf}%2F")]
        assert found(stub.get_all_equipment(me_or_eh_ref=shelf)) == inside
        slots = [str(one.name) for one in NETWORK.holders(1) if str(one.name).count("%2F") == 3]
        assert found(stub.get_contained_equipment(eh_ref=shelf)) == sorted(slots)
        card = next(iter(NETWORK.equipment(1)))
        one = stub.get_equipment(equipment_or_eh_ref=card.name).equipment_or_eh_list  # type: ignore[arg-type]
        assert one is not None
        assert plain(one.eq) == plain(card)
        for missing in ("MD=EMS1/ME=NE-9", "MD=EMS1/ME=NE-2/EH=none", "MD=EMS1"):
            with pytest.raises(MtosiFault, match="there is no"):
                stub.get_all_equipment(me_or_eh_ref=name(missing))
        with pytest.raises(MtosiFault, match="meOrEhRef is needed"):
            stub.get_all_equipment(eir.GetAllEquipmentRequest())


def severe(*wanted: PerceivedSeverityType) -> ar.ActiveAlarmFilterType:
    return ar.ActiveAlarmFilterType(perceived_severity_list=PerceivedSeverityListType(perceived_severity=[*wanted]))


def scoped(*wanted: str) -> ar.ActiveAlarmFilterType:
    return ar.ActiveAlarmFilterType(scope=NamingAttributeListType(name=[name(text) for text in wanted]))


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        (None, lambda alarm: True),
        (
            severe(PerceivedSeverityType.CRITICAL, PerceivedSeverityType.MINOR),
            lambda alarm: alarm.perceived_severity in ("CRITICAL", "MINOR"),
        ),
        (
            scoped("MD=EMS1/ME=NE-2", "MD=EMS1/ME=NE-3"),
            lambda alarm: str(alarm.object_name).split("/")[1] in ("ME=NE-2", "ME=NE-3"),
        ),
        (ar.ActiveAlarmFilterType(source=ar.AlarmSourceType.INTERNAL), lambda alarm: False),
        (ar.ActiveAlarmFilterType(source=ar.AlarmSourceType.EXTERNAL), lambda alarm: True),
    ],
)
def test_alarms(wanted: ar.ActiveAlarmFilterType | None, passes: Any) -> None:
    expected = [alarm for alarm in ALARMS if passes(alarm)]
    with exchange([AlarmEms(ALARMS)]) as pair:
        stub = pair.stub(AlarmRetrieval)
        found = [
            alarm for batch in stub.get_active_alarms.batches(batch_size=2, filter=wanted) for alarm in batch.alarm
        ]
        assert [str(alarm.object_name) for alarm in found] == [str(alarm.object_name) for alarm in expected]
        assert all(isinstance(alarm, AlarmType) for alarm in found)
        assert stub.get_active_alarms_count(filter=wanted).active_alarm_count == len(expected)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SpoolError, match="No such file"):
        Recording.read(tmp_path / "none")
    with pytest.raises(ConfigError, match="holds no envelope"):
        Recording.read(tmp_path)
    (tmp_path / "1.xml").write_text("<a>", encoding="utf-8")
    (tmp_path / "2.xml").write_bytes(response([0]))
    (tmp_path / "3.xml.gz").write_bytes(b"\x1f\x8b damaged")
    (tmp_path / "4.xml.zst").write_bytes(import_module(ZSTD).compress(response([1])))
    (tmp_path / "5.xml.zst").write_bytes(import_module(ZSTD).compress(response([2]))[:-3])
    with pytest.raises(XmlError):
        Recording.read(tmp_path)
    told: list[str] = []
    assert len(Recording.read(tmp_path, lambda file, error: told.append(Path(file).name)).objects) == 2
    assert told == ["1.xml", "3.xml.gz", "5.xml.zst"]
