"""Public functions fed with odd values: a result or an error of the tree, never another exception."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms import soap, xmlbind
from mtosi_jms.binding.mapping import from_jms, to_jms
from mtosi_jms.errors import MtosiError, MtosiFault
from mtosi_jms.jms import JmsMessage, JmsUri, NamingContext, Queue, Topic, selector
from mtosi_jms.soap import Envelope
from mtosi_jms.stubs.fmw.hdr import Header
from mtosi_jms.stubs.nrf.me import Me
from mtosi_jms.xmlbind import Duration, Extras, Nil, RawXml

ODD: tuple[Any, ...] = (
    None, 5, -1, 10**400, 1.5, math.nan, math.inf, True, "", ":", "\ud800", "\0", "\ud800%41", "%", "%zz", "\xe9",
    "a" * 200, b"", b"\xff", b"<", b"<a/>", "<a/>", "&", [], {}, {1: 2}, object(), Decimal("NaN"), Decimal("1E400"),
    Decimal("sNaN"), ("a",), set(), Me, Me(), io.BytesIO(b""), float, "a:b:c", "jms:queue:\ud800%41", "{a", "{a}b c",
    Nil(), RawXml(b"<a/>"), range(3),
)  # fmt: skip
REQUEST = Header(msg_type="REQUEST", sender_uri="queue:a", correlation_id="c")  # type: ignore[arg-type]
ENVELOPE = b'<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body/></s:Envelope>'

NO_FILE = (FileNotFoundError, IsADirectoryError)
"""What is documented of a text that is taken for a file's name."""

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "decode": xmlbind.decode,
    "decode as": lambda odd: xmlbind.decode(b"<a/>", odd),
    "encode": xmlbind.encode,
    "to_element": xmlbind.to_element,
    "iter_decode": lambda odd: list(xmlbind.iter_decode(odd, Me)),
    "iter_decode of": lambda odd: list(xmlbind.iter_decode(b"<a/>", odd)),
    "iter_placed": lambda odd: list(xmlbind.iter_placed(odd, Me)),
    "parse_xml": xmlbind.parse_xml,
    "find_element": xmlbind.find_element,
    "find_type": xmlbind.find_type,
    "RawXml": RawXml,
    "RawXml.from_element": RawXml.from_element,
    "a field": lambda odd: xmlbind.encode(Me(location=odd)),
    "a list": lambda odd: xmlbind.encode(Me(alias_name_list=odd)),
    "extras": lambda odd: xmlbind.encode(Me(extras=odd)),
    "extras' element": lambda odd: xmlbind.encode(Me(extras=Extras(elements=[odd]))),
    "Duration": lambda odd: str(Duration(0, odd)),
    "Duration's months": lambda odd: str(Duration(odd)),
    "to_timedelta": lambda odd: Duration(0, odd).to_timedelta(),
    "a huge duration": lambda _: Duration(0, Decimal("1E30")).to_timedelta(),
    "soap.parse": soap.parse,
    "Envelope.header": lambda odd: Envelope(header=odd).to_bytes(),
    "Envelope.body": lambda odd: Envelope(body=odd).to_bytes(),
    "Envelope.fault": lambda odd: Envelope(fault=odd).to_bytes(),
    "Envelope.blocks": lambda odd: Envelope(blocks=odd).to_bytes(),
    "a block": lambda odd: Envelope(blocks=[odd]).to_bytes(),
    "Envelope.more": lambda odd: Envelope(more=[odd]).to_bytes(),
    "Envelope.attributes": lambda odd: Envelope(attributes=odd).to_bytes(),
    "Envelope.version": lambda odd: Envelope(version=odd).to_bytes(),
    "fault code": lambda odd: Envelope(fault=MtosiFault(fault_code=odd)).to_bytes(),
    "fault string": lambda odd: Envelope(fault=MtosiFault(fault_string=odd)).to_bytes(),
    "reason": lambda odd: Envelope(fault=MtosiFault(odd)).to_bytes(),
    "raw fault": lambda odd: Envelope(fault=MtosiFault(raw=odd)).to_bytes(),
    "message body": lambda odd: from_jms(JmsMessage(body=odd)),
    "message type": lambda odd: repr(from_jms(JmsMessage(body=ENVELOPE, message_type=odd))),
    "message properties": lambda odd: JmsMessage(properties=odd),
    "a property": lambda odd: JmsMessage(properties={"MTOSI_x": odd}),
    "priority": lambda odd: JmsMessage(priority=odd),
    "time to live": lambda odd: JmsMessage(time_to_live_ms=odd),
    "delivery mode": lambda odd: JmsMessage(delivery_mode=odd),
    "reply to": lambda odd: JmsMessage(reply_to=odd),
    "Queue": Queue,
    "Topic": Topic,
    "JmsUri.parse": lambda odd: str(JmsUri.parse(odd)),
    "JmsUri": lambda odd: (str(JmsUri("queue", odd)), repr(JmsUri("queue", odd)), JmsUri("queue", odd).destination),
    "JmsUri's variant": lambda odd: str(JmsUri(odd, "x")),
    "JmsUri's parameters": lambda odd: str(JmsUri("queue", "x", odd)),
    "a parameter": lambda odd: str(JmsUri.parse(f"jms:queue:x?a={odd}")),
    "NamingContext.lookup": lambda odd: NamingContext().lookup(odd),
    "selector.parse": selector.parse,
    "selector.matches": lambda odd: selector.parse("a > 1 OR a LIKE 'x%'").matches({"a": odd}),
    "to_jms header": lambda odd: to_jms(odd, None),
    "to_jms body": lambda odd: to_jms(REQUEST, odd),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_odd_values_end_in_errors_of_the_tree(
    function: Callable[[Any], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some texts are file names
    for odd in ODD:
        with contextlib.suppress(MtosiError, *NO_FILE):
            function(odd)
