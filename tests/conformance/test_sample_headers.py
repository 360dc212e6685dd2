"""The header of every sample: each field is mapped by its row of Table 2, or a typed warning says why it is not."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import HeaderMapping, map_header
from mtosi_jms.binding.profile import OPTIONAL_FIELDS, PRESETS
from mtosi_jms.binding.table2 import ROWS
from mtosi_jms.errors import EnvelopeError, HeaderError, MalformedXmlError
from mtosi_jms.soap import Envelope, header_text, parse

PROFILES = {
    **{name: dataclasses.replace(profile, optional_fields=OPTIONAL_FIELDS) for name, profile in PRESETS.items()},
    "none": BindingProfile(optional_fields=frozenset()),
}


@pytest.fixture(scope="module")
def envelopes(shared: Path) -> dict[str, Envelope]:
    """The samples that are envelopes with an MTOSI header, by file."""
    found = {}
    for path in sorted((shared / "samples").rglob("*.xml")):
        try:
            envelope = parse(path.read_bytes())
        except (EnvelopeError, MalformedXmlError):
            continue
        if envelope.header is not None:
            found[str(path.relative_to(shared))] = envelope
    assert len(found) > 100
    return found


def unaccounted(envelope: Envelope, profile: BindingProfile, mapping: HeaderMapping) -> list[str]:
    """Fields that are present, are to be mapped, and left neither a trace in JMS nor a warning."""
    header = envelope.header
    assert header is not None
    warned = {warning.path for warning in mapping.warnings}
    left = []
    for row in ROWS:
        if not row.mandatory and row.name not in profile.optional_fields:
            continue
        if row.name == "vendorExtensions" or header_text(header, row.name) is None:
            continue
        is_address = row.name == "senderURI" and mapping.reply_to_uri == header_text(header, "senderURI")
        if row.property not in mapping.properties and f"header/{row.name}" not in warned and not is_address:
            left.append(row.name)
    if header_text(header, "priority") not in (None, str(mapping.priority)) and "header/priority" not in warned:
        left.append("priority")
    return left


@pytest.mark.obligation("R13a", "R13b", "R15c", "R15d")
@pytest.mark.parametrize("name", PROFILES)
def test_every_field_of_every_sample_is_accounted_for(name: str, envelopes: dict[str, Envelope]) -> None:
    profile = PROFILES[name]
    for file, envelope in envelopes.items():
        assert envelope.header is not None
        mapping = map_header(envelope.header, profile, body=envelope.body)
        assert unaccounted(envelope, profile, mapping) == [], file
        assert all(warning.rule and warning.message and warning.path for warning in mapping.warnings), file
        assert set(mapping.properties) <= {row.property for row in ROWS}, file


@pytest.mark.obligation("R3b", "R4a", "R5a", "C14", "C25")
def test_what_is_warned_of_in_a_sample_is_refused_when_sent(envelopes: dict[str, Envelope]) -> None:
    refused = 0
    for file, envelope in envelopes.items():
        assert envelope.header is not None
        warned = map_header(envelope.header).warnings
        if not warned:
            assert map_header(envelope.header, strict=True).warnings == [], file
            continue
        refused += 1
        with pytest.raises(HeaderError) as caught:
            map_header(envelope.header, strict=True)
        assert f"({warned[0].rule})" in str(caught.value), file
    assert 0 < refused < len(envelopes)
