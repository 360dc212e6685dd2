"""docs/mtnm.md: its code runs and prints what stands beside it, and its tables say what the code does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any as Anything

import pytest

from mtosi_jms.bridge.events import Any, TCKind, TypeCode
from mtosi_jms.bridge.mtnm import MtnmRules, notification_of, properties_of
from mtosi_jms.errors import EventError
from mtosi_jms.stubs.fmw.gen import ObjectEnumType

from . import mtnm_events as m

PAGE = (Path(__file__).parents[2] / "docs" / "mtnm.md").read_text(encoding="utf-8")
Row = tuple[str, ...]


def rows(head: str) -> list[Row]:
    """The rows of the tables whose head begins like this."""
    found: list[Row] = []
    for table in re.findall(rf"^\| {re.escape(head)}.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE):
        found += [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in table.splitlines()]
    assert found, head
    return found


EVENTS = rows("MTNM | MTOSI | topic")
KEPT = re.findall(r"\w+", re.findall(r"properties keep their names: ([^.]+)\.", PAGE)[0])
RENAMED = dict(rows("MTNM | MTOSI |")[len(EVENTS) :][: len(properties_of("NT_ALARM")) - len(KEPT)])
ALARM = {**dict(zip(KEPT, KEPT, strict=True)), **RENAMED}
STEPS = rows("MTNM | MTOSI |")[len(EVENTS) + len(RENAMED) :]
CHOICES = rows("event | property")


def with_property(type_name: str, name: str, value: Any) -> Anything:
    """The notification of the realistic event with another value."""
    whole = {one.name.replace("X.733::", "X733__"): one.value for one in m.REALISTIC[type_name].filterable_data}
    whole.pop("backupStatus", None)
    return notification_of(m.event(type_name, **{**whole, name: value})).notification


def shown(notification: Anything, type_name: str, name: str) -> str:
    """What the element of a property has."""
    for step in properties_of(type_name)[name].split("/"):
        notification = getattr(notification, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", step).lower())
    return str(getattr(notification, "value", notification))


def test_the_code_on_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    space: dict[str, object] = {}
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL), 1):
        exec(compile(block, f"mtnm.md block {number}", "exec"), space)
    findings = re.findall(r"```text\n(form .*?)```", PAGE, re.DOTALL)[0].splitlines()
    printed = re.findall(r"print\(.*\) +# (.*)", PAGE)
    assert capsys.readouterr().out.splitlines() == [printed[0], *findings, *printed[1:]]


@pytest.mark.parametrize(("type_name", "element", "topic", "needs"), EVENTS, ids=[row[0] for row in EVENTS])
def test_events(type_name: str, element: str, topic: str, needs: str) -> None:
    event = m.REALISTIC[type_name]
    mapped = notification_of(event)
    assert mapped.notification.__xml__.element == element
    assert (mapped.category.value if mapped.category else "all") == topic
    needed = [
        one.name
        for one in event.filterable_data
        if notification_of(
            type(event)("", type_name, "", (), tuple(it for it in event.filterable_data if it is not one))
        ).refused
    ]
    assert sorted(needed) == sorted(needs.split(", ") if needs else [])


def test_all_events_are_there() -> None:
    assert [row[0] for row in EVENTS] == list(m.REALISTIC)


@pytest.mark.parametrize(("sent", "read"), rows("sent | read as"))
def test_other_names_of_events(sent: str, read: str) -> None:
    event = m.REALISTIC[read]
    mapped = notification_of(type(event)("", sent, "", (), event.filterable_data))
    assert type(mapped.notification) is type(notification_of(event).notification)


def test_the_properties_of_alarms() -> None:
    assert properties_of("NT_ALARM") == ALARM


def test_the_properties_of_other_events() -> None:
    told = {
        type_name: {one.partition(": ")[0]: one.partition(": ")[2] or one for one in cell.split(", ")}
        for type_name, cell in rows("event | properties")
    }
    alarm = properties_of("NT_ALARM")
    there = {
        type_name: {name: place for name, place in properties_of(type_name).items() if alarm.get(name) != place}
        for type_name, *_ in EVENTS
    }
    assert told == {type_name: places for type_name, places in there.items() if places}


@pytest.mark.parametrize(("step", "kind"), STEPS)
def test_names(step: str, kind: str) -> None:
    mapped = notification_of(m.alarm(objectName=m.name(f"EMS=A|{step}=7"), objectType=None))
    alarm: Anything = mapped.notification
    assert (str(alarm.object_name), alarm.object_type) == (f"MD=A/{kind}=7", kind)
    assert len(mapped.findings) == 1


def test_all_kinds_of_objects_have_a_name() -> None:
    assert {kind.value for kind in ObjectEnumType} - {kind for _, kind in STEPS} == {"ASA"}


QUALIFIED = {
    "EPROTECTION_GROUP": "EPG",
    "TCA_PARAMETER_PROFILE": "TCAPP",
    "PMP": "PMP",
    "GTP": "GTP",
    "ASAP": "ASAP",
    "TRANSMISSION_DESCRIPTOR": "TMD",
    "FLOW_DOMAIN": "FD",
    "FLOW_DOMAIN_FRAGMENT": "FDFR",
    "MATRIX_FLOW_DOMAIN": "MFD",
    "TRAFFIC_CONDITIONING_PROFILE": "TCPROFILE",
}
"""Types that MTNM writes as OT_AID with a qualifier."""


def test_object_types() -> None:
    qualified = [("", f"OT_AID with OT_{name}", kind) for name, kind in QUALIFIED.items()]
    for number, name, kind in [*rows("number | MTNM"), *qualified]:
        plain, _, qualifier = name.partition(" with ")
        found: Anything = notification_of(m.alarm(objectType=plain, objectTypeQualifier=qualifier)).notification
        assert found.object_type == kind, name
        if number:
            found = notification_of(m.alarm(objectType=Any(m.LONG, int(number)))).notification
            assert found.object_type == kind, number
    assert sum(bool(row[0]) for row in rows("number | MTNM")) == len(m.OBJECT_TYPE.members)


@pytest.mark.parametrize(("type_name", "name", "cell", "boolean"), CHOICES, ids=[f"{r[0]}-{r[1]}" for r in CHOICES])
def test_enumerations(type_name: str, name: str, cell: str, boolean: str) -> None:
    found = re.findall(r"(?:(\d+) )?([\w:]+) = ([\w:]+)", cell)
    code = TypeCode(TCKind.enum, "IDL:x:1.0", "E")
    for number, member, value in found:
        assert shown(with_property(type_name, name, Any(code, member)), type_name, name) == value
        if number:
            assert shown(with_property(type_name, name, Any(m.LONG, int(number))), type_name, name) == value
    beyond = sum(bool(number) for number, *_ in found)
    for value in (Any(m.LONG, beyond), Any(m.BOOLEAN, True)):
        if value.value is not True or not boolean:
            left_out = with_property(type_name, name, value)
            assert left_out.vendor_extensions is not None
    for word, value in re.findall(r"(true|false) = (\w+)", boolean):
        assert shown(with_property(type_name, name, Any(m.BOOLEAN, word == "true")), type_name, name) == value


def test_layer_rates() -> None:
    """By the numbers of the page, and by the names that these have."""
    (told,) = re.findall(r"by number or by name: (\d+) to (\d+), (\d+) to (\d+) and (\d+)", PAGE)
    first, last, again, end, single = map(int, told)
    read: dict[int, str] = {}
    for number in range(-10, 2000):
        alarm: Anything = notification_of(m.alarm(layerRate=number)).notification
        if alarm.layer_rate.value != "VENDOR_EXT":
            read[number] = str(alarm.layer_rate.value)
    assert list(read) == [*range(first, last + 1), *range(again, end + 1), single]
    assert read[15] == re.findall(r"`(LR_\w+)` is 15", PAGE)[0]
    for name in read.values():
        alarm = notification_of(m.alarm(layerRate=m.text(name))).notification
        assert alarm.layer_rate.value == name


def test_what_is_refused_has_the_path_of_the_page() -> None:
    with pytest.raises(EventError, match=r"^filterable_data\.emsTime: is not a time: 'noon'$"):
        notification_of(m.alarm(emsTime="noon"), MtnmRules(strict=True))
