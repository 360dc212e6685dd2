"""Samples of MTOSI 1.1: an envelope with the header of that release, valid, for each role of a message."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree

from mtosi_codegen.proof.messages import messages_of
from mtosi_codegen.proof.sample import Samples
from mtosi_jms.soap import dialect_of, header_text, parse


def test_samples_have_the_header_of_their_release(shared: Path) -> None:
    release = shared / "mtosi" / "1.1"
    if not release.is_dir():
        pytest.skip(f"no MTOSI 1.1 in {release}")
    samples = Samples([release / "wsdl", release / "xsd"])
    schema = etree.XMLSchema(file=str(release / "xsd" / "common" / "Header.xsd"))
    found = {}
    for message in messages_of(samples.services, ["ManagedElementMgr.getAllManagedElements"]):
        data = samples.envelope(message)
        envelope = parse(data)
        header = envelope.header
        assert header is not None
        assert dialect_of(header).release == "1.x"
        assert schema.validate(etree.fromstring(data).find("*/{tmf854.v1}header")), schema.error_log
        found[message.role] = header_text(header, "msgType")
    assert found == {"request": "REQUEST", "response": "RESPONSE", "fault": "ERROR"}
