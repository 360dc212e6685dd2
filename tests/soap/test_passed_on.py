"""An envelope that is passed on with another header: the body goes on as it came."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import MtosiFault
from mtosi_jms.soap import Envelope, Header, parse
from mtosi_jms.stubs.mri.mer import GetManagedElementResponse
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.xmlbind import core

MER = "http://www.tmforum.org/mtop/mri/xsd/mer/v1"
OPEN = '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns:h="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"'
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("C",)), max_size=30)


def came(text: str) -> Envelope:
    """The envelope as the native core reads it where it is installed; the Python core writes all anew."""
    envelope = parse(text.encode())
    assert envelope.origin is not None
    assert (envelope.origin.cuts is not None) == (core().name == "native")
    return envelope


def written(prefix: str, inner: str, beginning: str = OPEN) -> str:
    header = "<s:Header><h:header><h:activityName>x</h:activityName></h:header></s:Header>"
    body = f"<s:Body> <{prefix}:getManagedElementResponse>{inner}</{prefix}:getManagedElementResponse> </s:Body>"
    return f'{beginning} xmlns:{prefix}="{MER}">{header}{body}</s:Envelope>'


def test_the_octets_of_the_body_are_those_that_came() -> None:
    odd = "<q:me><b:location>größe &amp;\n Ä</b:location></q:me>"
    envelope = came(written("q", odd, f'{OPEN} xmlns:b="http://www.tmforum.org/mtop/nrf/xsd/me/v1"'))
    envelope.header = Header(activity_name="other", correlation_id="7")
    assert (odd.encode() in envelope.passed_on()) == (core().name == "native")
    read = parse(envelope.passed_on())
    assert (read.header, read.body) == (envelope.header, envelope.body)


@given(TEXTS, TEXTS, st.sampled_from(["", "other", "getManagedElementsIteratorResponse"]))
def test_it_says_what_writing_it_anew_says(name: str, location: str, local: str) -> None:
    body = GetManagedElementResponse(me=ManagedElementType(location=location))
    made = Envelope(header=Header(activity_name="a"), body=body)
    envelope = came(made.to_bytes().decode())
    envelope.header = Header(activity_name=name, correlation_id=name)
    read = parse(envelope.passed_on(f"{{{MER}}}{local}" if local else ""))
    assert read.header == envelope.header
    if local:
        assert read.body.tag == f"{{{MER}}}{local}"
        assert read.body.text == location
    else:
        assert read.body == body


@pytest.mark.parametrize(
    "change",
    [
        {"version": "1.2"},
        {"header": None},
        {"origin": None},
        {"body": GetManagedElementResponse(), "origin": None},
    ],
)
def test_what_cannot_stay_is_written_anew(change: dict[str, Any]) -> None:
    envelope = replace(came(written("q", "")), **change)
    read = parse(envelope.passed_on(), needs_header=False)
    assert (read.version, read.header, read.body) == (envelope.version, envelope.header, envelope.body)


def test_a_default_namespace_of_theirs_does_not_reach_the_header() -> None:
    envelope = parse(written("q", "", f'{OPEN} xmlns="urn:theirs"').encode())
    envelope.header = Header(activity_name="other")
    assert parse(envelope.passed_on()).header == envelope.header


def test_another_namespace_for_the_body() -> None:
    envelope = came(written("q", ""))
    assert parse(envelope.passed_on("{urn:other}x")).body.tag == "{urn:other}x"


def test_a_fault_goes_on_as_it_came() -> None:
    text = Envelope.bare_fault(MtosiFault("no"), Header(activity_name="x")).to_bytes().replace(b"><s", b"> <s")
    assert parse(text).passed_on() == text
