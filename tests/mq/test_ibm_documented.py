"""docs/ibm.md: its tables are what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mtosi_jms.jms import JmsMessage, Long, MessageType, Queue
from mtosi_jms.jms.message import DeliveryMode
from mtosi_jms.mq.mcd import BY_KIND, KINDS, domain_of, read_mcd
from mtosi_jms.mq.tree import from_tree


def table(root: Path, head: str) -> list[list[str]]:
    """The rows of a table by its head, cell by cell."""
    page = (root / "docs" / "ibm.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^{re.escape(head)}\n\|[-|]+\n((?:\|.*\n)+)", page, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found.splitlines()]


@pytest.mark.obligation("001-J8", "001-I1", "001-E14")
def test_kinds_of_message_that_a_domain_takes(root: Path) -> None:
    kinds = ["BytesMessage", "TextMessage", "MapMessage", "StreamMessage", "ObjectMessage"]
    rows = table(root, f"| domain | {' | '.join(kinds)} |")
    told = {domain: {kind for kind, x in zip(kinds, marks, strict=True) if x == "x"} for domain, *marks in rows}
    assert told == {domain: {kind.value for kind in taken} for domain, taken in KINDS.items()}
    assert len(rows) == 9


@pytest.mark.obligation("001-I3", "001-I4", "001-E1", "001-E14")
def test_what_jms_type_says(root: Path) -> None:
    rows = dict(table(root, "| JMSType | domain |"))
    for cell, domain in rows.items():
        for uri in re.findall("`([^`]*)`", cell):
            for kind in BY_KIND:
                assert domain_of(JmsMessage(message_type=kind, jms_type=uri)) == domain
            assert (read_mcd(uri) is None) is (domain == "BLOB")
    assert {domain for domain in rows.values() if domain in KINDS} >= {"MRM", "XML", "XMLNS", "XMLNSC", "IDOC", "MIME"}
    for kind, domain in table(root, "| kind of message | domain |"):
        for jms_type in (None, "", "MTOSI", "mcd:XML", "http://mcd"):
            assert domain_of(JmsMessage(message_type=MessageType(kind), jms_type=jms_type)) == domain
    assert domain_of(JmsMessage(message_type=MessageType.MESSAGE)) is None


def test_the_tree_on_the_page_is_read(root: Path) -> None:
    (document,) = re.findall(r"```xml\n(.*?)```", (root / "docs" / "ibm.md").read_text(encoding="utf-8"), re.DOTALL)
    assert from_tree(document) == JmsMessage(
        message_type=MessageType.MAP,
        destination=Queue("EMS.OS"),
        delivery_mode=DeliveryMode.PERSISTENT,
        properties={"MTOSI_requestedBatchSize": 500},
        content={"elements": Long(20_000), "last": "ME=NE-7"},
    )
