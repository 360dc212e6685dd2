"""Headers of MQ before and between MQRFH2: stepped over, named, inherited from; and blanks in the folder of JMS."""

import contextlib
import itertools
import struct

import pytest

from mtosi_jms.errors import MqFormatError
from mtosi_jms.mq import DEAD_LETTER, KEPT, read_mq, write_mq

BODY = "<a>Z\u00fcrich</a>"
JMS = "<jms><Dst>queue:///EMS</Dst><Cid>c-1</Cid></jms><usr><place>Z\u00fcrich</place></usr>"
LENGTHS = {
    "MQCICS": (b"CIH ", 2, 180),
    "MQIMS": (b"IIH ", 1, 84),
    "MQHMDE": (b"MDE ", 2, 72),
    "MQHRF": (b"RFH ", 1, 32),
}
FORMATS = ("MQDEAD", "MQHRF2", *LENGTHS)
ORDERS = {">": 273, "<": 546}


def mqmd(order, following, ccsid=1208, correlation=b"", reply=b""):
    layout = f"{order}i5ii8sii24s24si48s48s12s32s32si28s8s8s4s24siiii"
    values = (2, 0, 8, -1, 0, ORDERS[order], ccsid, following, 4, 1, b"\1" * 24, correlation, 0, reply)
    return b"MD  " + struct.pack(layout, *values, *(b"",) * 4, 28, *(b"",) * 5, 1, 0, 0, -1)


def header(order, kind, following, ccsid=1208, folders=JMS, names=1208):
    name, encoding = following.encode().ljust(8), ORDERS[order]
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
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("ccsid", [1208, -2])
def test_chains_of_headers(order, ccsid):
    for chain in CHAINS:
        found = read_mq(message(order, chain, ccsid=ccsid))
        assert found.body.decode() == BODY
        assert found.properties.get(DEAD_LETTER) == (2085 if "MQDEAD" in chain else None)
        assert found.correlation_id == ("c-1" if "MQHRF2" in chain else None)


@pytest.mark.obligation("ENC5")
@pytest.mark.parametrize("order", ORDERS)
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
@pytest.mark.parametrize("order", ORDERS)
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
