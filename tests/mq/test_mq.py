"""Messages as IBM MQ keeps them, read and written; headers that are stepped over; the tables of docs/ibm.md."""

from __future__ import annotations

import contextlib
import itertools
import logging
import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import MqFormatError, MtosiError
from mtosi_jms.jms import DeliveryMode, JmsMessage, Long, MessageType, Queue, Topic
from mtosi_jms.jms.message import Byte, Char, Float, Short
from mtosi_jms.mq import DEAD_LETTER, KEPT, read_mq, write_mq
from mtosi_jms.mq.mcd import BY_KIND, KINDS, Mcd, domain_of, read_mcd
from mtosi_jms.mq.tree import from_tree
from mtosi_jms.transport import Session, connect

PROPERTIES = {
    "MTOSI_msgName": "getAllManagedElements",
    "MTOSI_batchSequenceNumber": 3,
    "flag": True,
    "byte": Byte(-128),
    "short": Short(32_767),
    "long": Long(2**63 - 1),
    "float": Float(0.5),
    "double": -2.5e300,
    "text": "a<b & größe",
    "empty": "",
}
WHOLE = JmsMessage(
    body="<a>größe</a>".encode(),
    properties=PROPERTIES,
    destination=Queue("EMS.OS"),
    reply_to=Queue("queue://QM1/INV.OS"),
    correlation_id="call-7",
    jms_type="MTOSI",
    delivery_mode=DeliveryMode.PERSISTENT,
    priority=7,
    timestamp_ms=1_700_000_000_120,
    expiration_ms=1_700_000_005_120,
)
ORDERS = ("big", "little")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("with_mqmd", [False, True])
@pytest.mark.parametrize("ccsid", [1208, 1200, 819])
def test_what_is_written_is_read(order: Any, with_mqmd: bool, ccsid: int) -> None:
    assert read_mq(write_mq(WHOLE, byte_order=order, with_mqmd=with_mqmd, ccsid=ccsid)) == WHOLE


@pytest.mark.obligation("001-X2")
@pytest.mark.parametrize(
    "message",
    [
        JmsMessage(message_type=MessageType.BYTES, body=b"\0\xff"),
        JmsMessage(message_type=MessageType.MAP, content={"a": 1, "c": Char("x"), "o": b"\1", "n": None}),
        JmsMessage(message_type=MessageType.STREAM, content=(1.5, "x", Short(2), False)),
        JmsMessage(message_type=MessageType.MESSAGE),
        JmsMessage(message_type=MessageType.OBJECT, body=b"\xac\xed"),
        JmsMessage(body=b"", destination=Topic("MTOSI/Fault")),
        JmsMessage(body=b"x", properties={"JMSXGroupID": "g", "JMSXGroupSeq": 4}),
    ],
    ids=lambda message: message.message_type.value,
)
def test_every_kind(message: JmsMessage) -> None:
    assert read_mq(write_mq(message)) == message


def test_an_mqmd_has_what_no_folder_has() -> None:
    sent = replace(
        WHOLE,
        message_id=f"ID:{'ab' * 24}",
        redelivered=True,
        delivery_count=3,
        properties={**PROPERTIES, "JMSXUserID": "mtosi", "JMSXAppID": "ems"},
    )
    assert read_mq(write_mq(sent, with_mqmd=True)) == sent


def test_the_life_of_a_message_stands_in_the_mqmd() -> None:
    sent = replace(WHOLE, time_to_live_ms=4_990, expiration_ms=0)
    assert read_mq(write_mq(sent, with_mqmd=True)).expiration_ms == 1_700_000_000_120 + 5_000


def rfh2(*folders: str, body: bytes = b"<a/>", name: bytes = b"MQSTR   ", order: str = ">", ccsid: int = 1208) -> bytes:
    data = b""
    for folder in folders:
        octets = folder.encode()
        octets += b" " * (-len(octets) % 4)
        data += struct.pack(f"{order}i", len(octets)) + octets
    fields = (2, 36 + len(data), 273 if order == ">" else 546, ccsid, name, 0, 1208)
    return b"RFH " + struct.pack(f"{order}iiii8sii", *fields) + data + body


def test_types_of_table_2_come_by_name() -> None:
    read = read_mq(rfh2("<usr><MTOSI_batchSequenceNumber>3</MTOSI_batchSequenceNumber><other>3</other></usr>"))
    assert read.properties == {"MTOSI_batchSequenceNumber": 3, "other": "3"}


@pytest.mark.obligation("001-X2")
def test_other_folders_are_kept_and_written_again() -> None:
    psc = "<psc><Command>Publish</Command><Topic>MTOSI/Fault</Topic></psc>"
    read = read_mq(rfh2("<mcd><Msd>jms_text</Msd></mcd>", "<jms><Pri>3</Pri><New>x</New></jms>", psc))
    assert read.priority == 3
    assert read.properties[f"{KEPT}psc"] == "<Command>Publish</Command><Topic>MTOSI/Fault</Topic>"
    written = write_mq(read)
    assert psc.encode() in written
    assert b"<New>x</New>" in written
    assert read_mq(written) == read


@pytest.mark.obligation("001-X1")
def test_the_format_of_a_header_alone_says_what_follows() -> None:
    """What looks like an MQRFH2 is the body, where the MQMD names none."""
    data = write_mq(WHOLE, with_mqmd=True)
    assert read_mq(data).properties == WHOLE.properties
    said = data[:32] + b" " * 8 + data[40:]
    assert (read_mq(said).properties, read_mq(said).body) == ({}, data[364:])


def test_a_chain_of_headers_is_followed() -> None:
    second = rfh2("<usr><b>2</b></usr>")
    data = rfh2("<usr><a>1</a></usr>", name=b"MQHRF2  ", body=second)
    assert read_mq(data).properties == {"a": "1", "b": "2"}
    with pytest.raises(MqFormatError, match="announced and is not there") as caught:
        read_mq(data[: -len(second)])
    assert caught.value.offset == len(data) - len(second)


@pytest.mark.parametrize("value", ["<n dt='i2'>99999</n>", "<n dt='i9'>1</n>", "<n dt='r8'>NaN</n>", "<n dt='i4'/>"])
def test_values_that_their_type_does_not_have(value: str, caplog: pytest.LogCaptureFixture) -> None:
    data = rfh2(f"<usr>{value}</usr>")
    with pytest.raises(MqFormatError, match="property n"):
        read_mq(data)
    with caplog.at_level(logging.WARNING):
        assert type(read_mq(data, on_invalid="ignore").properties["n"]) is str
        assert not caplog.records
        assert type(read_mq(data, on_invalid="warn").properties["n"]) is str
    assert "property n is kept as text" in caplog.text


@pytest.mark.parametrize("kind", ["jms_map", "jms_stream"])
def test_values_in_a_body_that_their_type_does_not_have(kind: str) -> None:
    name = kind.removeprefix("jms_")
    data = rfh2(f"<mcd><Msd>{kind}</Msd></mcd>", body=f"<{name}><n dt='i2'>99999</n></{name}>".encode())
    with pytest.raises(MqFormatError, match="out of range"):
        read_mq(data)
    assert "99999" in str(read_mq(data, on_invalid="warn").content)


def test_what_no_property_can_be_is_kept() -> None:
    inner = "<none xsi:nil='true'/><o dt='bin.hex'>00ff</o><JMSBad>x</JMSBad>"
    read = read_mq(rfh2(f"<usr><a>1</a>{inner}</usr>"))
    assert read.properties["a"] == "1"
    assert set(read.properties) == {"a", f"{KEPT}usr"}
    again = read_mq(write_mq(read))
    assert again.properties == read.properties


@pytest.mark.parametrize(
    ("data", "told", "offset"),
    [
        (b"", "neither", 0),
        (b"\xd9\xc6\xc8\x40", "neither", 0),
        (b"RFH \0\0\0\2", "announced", 0),
        (b"RFH " + b"\0\0\0\7" + b"\0" * 40, "version", 4),
        (b"MD  \0\0\0\2" + b"\0" * 10, "364 octets", 0),
        (rfh2("<usr/>")[:40], "StrucLength", 8),
        (rfh2("<usr/>").replace(struct.pack(">i", 8), struct.pack(">i", 2**31 - 1), 1), "folder of 2147483647", 36),
        (rfh2("<usr/>").replace(struct.pack(">i", 8), struct.pack(">i", -4), 1), "folder of -4", 36),
        (rfh2("<usr><a>"), "well-formed", 0),
        (rfh2("<usr><a>1</b></usr>"), "well-formed", 0),
        (rfh2('<!DOCTYPE x [<!ENTITY a "b">]><usr/>'), "well-formed", 0),
        (rfh2("<usr/>", ccsid=500), "CodedCharSetId 500", 48),
        (rfh2("<usr/>", body=b"\xff"), "not in CCSID 1208", 48),
        (rfh2("<mcd><Msd>jms_map</Msd></mcd>", body=b"<map>"), "not a MapMessage", 72),
        (rfh2("<jms><Pri>12</Pri></jms>"), "priority", 64),
        (rfh2("<jms><Dlv>x</Dlv></jms>"), "jms.Dlv", 64),
    ],
)
def test_damage_is_told_with_its_place(data: bytes, told: str, offset: int) -> None:
    with pytest.raises(MqFormatError, match=told) as caught:
        read_mq(data)
    assert caught.value.offset == offset


def test_what_cannot_be_written() -> None:
    with pytest.raises(MqFormatError, match="CCSID 819"):
        write_mq(replace(WHOLE, body="€".encode()), ccsid=819)
    with pytest.raises(MqFormatError, match=r"no folder .* can have this name"):
        write_mq(replace(WHOLE, properties={"$a": 1}))
    with pytest.raises(MqFormatError, match="beyond the range"):
        write_mq(replace(WHOLE, properties={"a": float("inf")}))
    with pytest.raises(MqFormatError, match="reply_to_q"):
        write_mq(replace(WHOLE, reply_to=Queue("q" * 49)), with_mqmd=True)


VALID = write_mq(WHOLE, with_mqmd=True)


@given(st.integers(0, len(VALID) - 1), st.integers(0, 255), st.integers(0, len(VALID)))
def test_any_damage_is_an_error_of_ours_or_a_message(at: int, octet: int, end: int) -> None:
    damaged = bytearray(VALID)
    damaged[at] = octet
    for data in (bytes(damaged), bytes(damaged[:end])):
        try:
            read_mq(data)
        except MtosiError:
            pass


@pytest.mark.obligation("001-X1")
def test_formats_name_what_follows() -> None:
    """001-X1: MQMD, MQRFH2, body."""
    data = write_mq(WHOLE, with_mqmd=True)
    assert data[:4] + data[32:40] == b"MD  MQHRF2  "
    header = data[364:]
    assert header[:4] + header[20:28] == b"RFH MQSTR   "
    length = int.from_bytes(header[8:12], "big")
    assert header[length:] == WHOLE.body
    octets = write_mq(replace(WHOLE, message_type=MessageType.BYTES))
    assert octets[20:28] == b" " * 8


def through(session: Session, queue: Queue, message: JmsMessage) -> JmsMessage:
    """What a provider makes of a message."""
    session.send(queue, message)
    with session.consumer(queue) as consumer:
        delivery = consumer.receive(10)
        assert delivery is not None
        delivery.acknowledge()
    return delivery.message


@pytest.mark.obligation("001-X4")
@pytest.mark.parametrize("kind", [MessageType.TEXT, MessageType.BYTES])
def test_from_jms_through_mq_to_jms(kind: MessageType) -> None:
    """001-X4: what a provider delivers goes into a queue of MQ, and what lies there to a provider."""
    with connect("memory:through-mq") as connection:
        connection.start()
        session = connection.session()
        received = through(session, Queue("IN"), replace(WHOLE, message_type=kind))
        in_mq = read_mq(write_mq(received, with_mqmd=True))
        assert (in_mq.timestamp_ms, in_mq.destination) == (received.timestamp_ms, Queue("IN"))
        last = through(session, Queue("OUT"), in_mq)
    assert last == replace(
        received,
        destination=Queue("OUT"),
        message_id=last.message_id,
        timestamp_ms=last.timestamp_ms,
        expiration_ms=last.expiration_ms,
    )


MCD = [
    (
        "mcd://MRM/SWIFTXML2005/{http://SWIFT/2005}:Document/?format=SWIFT",
        Mcd("MRM", "SWIFTXML2005", "{http://SWIFT/2005}:Document", "SWIFT"),
    ),
    ("mcd://xmlns", Mcd("XMLNS")),
    ("mcd://XML/", Mcd("XML")),
    ("mcd://mrm/set/type", Mcd("MRM", "set", "type")),
    ("mcd://other/x", None),
    ("MTOSI", None),
    (None, None),
]  # fmt: skip


@pytest.mark.obligation("001-I3")
@pytest.mark.parametrize(("uri", "found"), MCD)
def test_mcd_uris(uri: str | None, found: Mcd | None) -> None:
    assert read_mcd(uri) == found
    if found is not None:
        assert read_mcd(found.uri) == found
        read = read_mq(write_mq(replace(WHOLE, jms_type=uri)))
        assert read_mcd(read.jms_type) == found


@pytest.mark.obligation("001-I4", "001-E1")
def test_domains_of_messages() -> None:
    assert [domain_of(JmsMessage(message_type=kind)) for kind in MessageType] == [
        "XML", "BLOB", "JMSMap", "JMSStream", "BLOB", None
    ]  # fmt: skip
    assert domain_of(JmsMessage(jms_type="mcd://MRM/a")) == "MRM"
    assert domain_of(JmsMessage(jms_type="mcd://nothing/a")) == "BLOB"
    assert domain_of(JmsMessage(jms_type="MTOSI")) == "XML"
    assert all(kind in KINDS[domain] for kind, domain in BY_KIND.items())


BODY = "<a>Z\u00fcrich</a>"
JMS = "<jms><Dst>queue:///EMS</Dst><Cid>c-1</Cid></jms><usr><place>Z\u00fcrich</place></usr>"
LENGTHS = {
    "MQCICS": (b"CIH ", 2, 180),
    "MQIMS": (b"IIH ", 1, 84),
    "MQHMDE": (b"MDE ", 2, 72),
    "MQHRF": (b"RFH ", 1, 32),
}
FORMATS = ("MQDEAD", "MQHRF2", *LENGTHS)
ENCODINGS = {">": 273, "<": 546}


def mqmd(order, following, ccsid=1208, correlation=b"", reply=b""):
    layout = f"{order}i5ii8sii24s24si48s48s12s32s32si28s8s8s4s24siiii"
    values = (2, 0, 8, -1, 0, ENCODINGS[order], ccsid, following, 4, 1, b"\1" * 24, correlation, 0, reply)
    return b"MD  " + struct.pack(layout, *values, *(b"",) * 4, 28, *(b"",) * 5, 1, 0, 0, -1)


def header(order, kind, following, ccsid=1208, folders=JMS, names=1208):
    name, encoding = following.encode().ljust(8), ENCODINGS[order]
    if kind == "MQDEAD":
        rest = (encoding, ccsid, name, 28, b"put", b"", b"")
        return b"DLH " + struct.pack(f"{order}ii48s48sii8si28s8s8s", 1, 2085, b"EMS", b"QM", *rest)
    if kind == "MQHRF2":
        codec = {">": "utf-16-be", "<": "utf-16-le"}[order] if names != 1208 else "utf-8"
        text = folders.encode(codec)
        while len(text) % 4:
            text += " ".encode(codec)
        numbers = (2, 40 + len(text), encoding, ccsid, name, 0, names, len(text))
        return b"RFH " + struct.pack(f"{order}iiii8siii", *numbers) + text
    mark, version, length = LENGTHS[kind]
    return (mark + struct.pack(f"{order}iiii8s", version, length, encoding, ccsid, name)).ljust(length, b"\0")


def message(order, kinds, **options):
    formats = [*kinds, "MQSTR"]
    headers = [header(order, kind, following, **options) for kind, following in itertools.pairwise(formats)]
    return mqmd(order, formats[0].encode()) + b"".join(headers) + BODY.encode()


CHAINS = [chain for length in (1, 2, 3) for chain in itertools.permutations(FORMATS, length)]


@pytest.mark.obligation("ENC5")
@pytest.mark.parametrize("order", ENCODINGS)
@pytest.mark.parametrize("ccsid", [1208, -2])
def test_chains_of_headers(order, ccsid):
    for chain in CHAINS:
        found = read_mq(message(order, chain, ccsid=ccsid))
        assert found.body.decode() == BODY
        assert found.properties.get(DEAD_LETTER) == (2085 if "MQDEAD" in chain else None)
        assert found.correlation_id == ("c-1" if "MQHRF2" in chain else None)


@pytest.mark.obligation("ENC5")
@pytest.mark.parametrize("order", ENCODINGS)
@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_cut_off_is_a_typed_error(order, kind):
    whole = message(order, ("MQDEAD", kind, "MQHRF2") if kind != "MQDEAD" else ("MQDEAD", "MQHRF2"))
    for end in range(len(whole) - len(BODY.encode())):
        with pytest.raises(MqFormatError):
            read_mq(whole[:end])
    for at in range(364, len(whole)):
        with contextlib.suppress(MqFormatError):
            read_mq(whole[:at] + b"\xff" + whole[at + 1 :])


@pytest.mark.obligation("ENC5")
@pytest.mark.parametrize("name", ["MQXMIT", "MQHSAP", "MQNEW"])
def test_header_that_is_not_known_is_named(name):
    with pytest.raises(MqFormatError, match=name):
        read_mq(mqmd(">", name.encode()) + BODY.encode())
    with pytest.raises(MqFormatError, match="MQDEAD"):
        read_mq(mqmd(">", b"MQDEAD") + BODY.encode() * 20)


@pytest.mark.obligation("ENC6")
@pytest.mark.parametrize("order", ENCODINGS)
@pytest.mark.parametrize("names", [1200, 13488, 17584])
def test_folders_in_two_octets(order, names):
    assert read_mq(message(order, ["MQHRF2"], names=names)).properties["place"] == "Z\u00fcrich"


@pytest.mark.obligation("ENC6")
def test_character_set_of_the_mqmd_is_inherited_through_headers():
    data = mqmd(">", b"MQDEAD", 819) + header(">", "MQDEAD", "MQHRF2", -2) + header(">", "MQHRF2", "MQSTR", -2)
    assert read_mq(data + BODY.encode("latin-1")).body.decode() == BODY


@pytest.mark.obligation("ENC6")
@pytest.mark.parametrize("blank", ["", " ", "\t \n"])
def test_blank_ids_are_none(blank):
    folders = f"<jms><Cid>{blank}</Cid><Rto>{blank}</Rto><Dst>{blank}</Dst></jms>"
    rest = header(">", "MQHRF2", "MQSTR", folders=folders) + BODY.encode()
    found = read_mq(mqmd(">", b"MQHRF2") + rest)
    assert (found.correlation_id, found.reply_to, found.destination) == (None, None, None)
    found = read_mq(mqmd(">", b"MQHRF2", correlation=b"\1" * 24, reply=b"REPLIES") + rest)
    assert (found.correlation_id, found.reply_to.name) == (f"ID:{'01' * 24}", "REPLIES")


@pytest.mark.obligation("ENC5")
def test_texts_in_folders_are_kept_or_named():
    def found(folders):
        return read_mq(mqmd(">", b"MQHRF2") + header(">", "MQHRF2", "MQSTR", folders=folders) + BODY.encode())

    for folders in ("loose", "<usr><a>1</a></usr>loose", "loose<usr/>"):
        with pytest.raises(MqFormatError, match="outside of the folders"):
            found(folders)
    read = found("<own>a &lt; b</own><usr> <a>1</a>more</usr>")
    assert read.properties == {"a": "1", f"{KEPT}own": "a &lt; b", f"{KEPT}usr": "more"}
    assert read_mq(write_mq(read)).properties == read.properties


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
