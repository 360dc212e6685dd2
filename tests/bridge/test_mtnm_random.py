"""Whatever an event has, its notification is valid by the schemas of the release, and nothing raises but strictness."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any as Anything

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mtosi_jms.bridge.events import (
    NULL,
    Any,
    ObjectReference,
    Property,
    StructuredEvent,
    TCKind,
    TypeCode,
)
from mtosi_jms.bridge.mtnm import RELEASES, FindingKind, MtnmRules, notification_of
from mtosi_jms.errors import EventError
from mtosi_jms.notifications import event_name
from mtosi_jms.stubs.fmw.vdn import VendorNotification
from mtosi_jms.validation import SchemaSet, Validator
from mtosi_jms.xmlbind import decode, encode

from . import mtnm_events as m
from .event_maker import anys


@pytest.fixture(scope="module")
def later_release(shared: Path) -> Validator:
    """The schemas of MTOSI 4.0."""
    return Validator(SchemaSet.load(shared / "mtosi" / "4.0"))


TYPES = sorted(m.REALISTIC)
TEXT = st.text(st.characters(exclude_categories=()), max_size=12) | st.sampled_from(
    ["", "LOS", "PS_MAJOR", "true", "20140725140203.0+0800", "77", "LR_Ethernet", "\0", "\ud800", "é", "光"]
)
STEPS = st.sampled_from(["EMS", "ManagedElement", "PTP", "CTP", "managedelement", "Roll", ""]) | TEXT
NAMES = st.lists(st.tuples(STEPS, TEXT), max_size=4).map(tuple)
VALUES: st.SearchStrategy[Any] = st.one_of(
    anys(),
    TEXT.map(lambda it: Any(m.STRING, it)),
    TEXT.map(lambda it: Any(TypeCode.of(TCKind.wstring), it)),
    st.floats().map(lambda it: Any(TypeCode.of(TCKind.double), it)),
    st.decimals(allow_nan=False).map(lambda it: Any(TypeCode(TCKind.fixed, digits=31, scale=5), it)),
    st.sampled_from(
        [
            Any(code, member.name)
            for code in (m.SEVERITY, m.OBJECT_TYPE, m.AFFECTING, m.REASON, m.COMMUNICATION)
            for member in code.members
        ]
    ),
    NAMES.map(lambda it: Any(m.NAME, it)),
    st.lists(NAMES, max_size=3).map(lambda it: Any(m.NAMES, tuple(it))),
    st.lists(TEXT, max_size=3).map(lambda it: Any(m.STRINGS, tuple(it))),
    st.lists(st.tuples(TEXT, anys()), max_size=3).map(lambda it: Any(m.NAMED_ANYS, tuple(it))),
    anys().map(lambda it: Any(m.ANY, it)),
    st.just(Any(TypeCode(TCKind.objref, "IDL:x/O:1.0", "O"), ObjectReference("IOR:00"))),
    st.just(NULL),
)
KNOWN = sorted({one.name for event in m.REALISTIC.values() for one in event.filterable_data})


@st.composite
def events(draw: st.DrawFn) -> StructuredEvent:
    """Any event: a realistic one with properties changed, taken away and added; or one of pieces."""
    type_name = draw(st.sampled_from(TYPES))
    usual = m.REALISTIC[type_name]
    properties = {one.name: one.value for one in usual.filterable_data}
    for name in draw(st.lists(st.sampled_from(KNOWN), max_size=4, unique=True)):
        properties[name] = draw(VALUES)
    for name in draw(st.lists(st.sampled_from(sorted(properties)), max_size=2, unique=True)):
        properties.pop(name)
    listed = [Property(name, value) for name, value in properties.items()]
    listed += [Property(name, draw(VALUES)) for name in draw(st.lists(TEXT | st.sampled_from(KNOWN), max_size=2))]
    spelled = draw(
        st.sampled_from([type_name, type_name, type_name, type_name.lower(), "NT_HEALTH", "NT_OTHER"]) | TEXT
    )
    body = draw(st.just(usual.remainder_of_body) | VALUES | st.just(m.NEW_ELEMENT) | st.just(Any(m.ROUTE, m.NEW_ROUTE)))
    return StructuredEvent("tmf_mtnm", spelled, "", (), tuple(draw(st.permutations(listed))), body)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(event=events(), charset=st.sampled_from([None, "gbk", "utf-8"]))
def test_every_notification_is_valid(event: StructuredEvent, charset: str | None, complaints: Anything) -> None:
    mapped = notification_of(event, MtnmRules(charset=charset))
    notification = mapped.notification
    assert complaints(notification) == []
    assert event_name(decode(encode(notification), type(notification))) == event_name(notification)
    assert mapped.refused <= isinstance(notification, VendorNotification)
    refused = [one.path for one in mapped.findings if one.kind is FindingKind.REFUSED]
    strictly = list(refusals(event, charset))
    assert strictly == refused or strictly[0].rpartition(".")[2].casefold() in ("emstime", "netime")
    assert {*strictly} <= {one.path for one in mapped.findings}


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(event=events())
def test_every_notification_is_valid_by_the_later_release(event: StructuredEvent, later_release: Validator) -> None:
    notification = notification_of(event, MtnmRules(release="4.0")).notification
    raw = encode(notification)
    assert later_release.validate_bytes(raw).issues == ()
    assert decode(raw, type(notification)) == notification


@pytest.mark.parametrize("kind", ["ME", "EQ", "EH", "PTP", "CTP", "FTP", "TL", "OS"])
def test_objects_for_the_later_release(kind: str, later_release: Validator) -> None:
    """4.0 needs an element in what MTOSI has a class for; 2.0 forbids it: neither is valid by the other's schemas."""
    created = m.event(
        "NT_OBJECT_CREATION", m.NEW_ELEMENT, objectName=m.name(f"EMS=A|{kind}=7"), objectType=m.text(kind)
    )
    earlier, later = (notification_of(created, MtnmRules(release=one)).notification for one in RELEASES)
    assert later_release.validate_bytes(encode(later)).valid
    assert later_release.validate_bytes(encode(earlier)).valid is (kind == "OS")


def refusals(event: StructuredEvent, charset: str | None) -> Iterator[str]:
    """The path of the error of a strict reading, if there is one."""
    try:
        notification_of(event, MtnmRules(charset=charset, strict=True))
    except EventError as exc:
        yield exc.path


@given(name=st.text("abcxyz_", min_size=1, max_size=10).map(lambda it: f"own{it}"), value=VALUES)
def test_what_has_no_field_is_in_the_extensions(name: str, value: Any) -> None:
    mapped = notification_of(m.alarm(**{name: value}))
    empty = value.value == ()
    told = [one.path for one in mapped.findings]
    assert (f"filterable_data.{name}" in told) is not empty
    alarm: Anything = mapped.notification
    kept = [] if alarm.vendor_extensions is None else [one.name for one in alarm.vendor_extensions.any_[0].nvs]
    assert any(one == name or one.startswith(f"{name}.") for one in kept) is not empty
    assert (alarm.perceived_severity, str(alarm.object_name)[:3]) == ("CRITICAL", "MD=")
