"""Pages of a console whose memory is full: 20,000 messages of 2.4 kB, 400 exchanges, 100,000 dead letters.

No server, no browser, and no messages meanwhile: what a page costs. The endurance test of the console measures
interactions in Chromium at 1,000 messages a second.
"""

from __future__ import annotations

import asyncio

import httpx
from measure import Comparison, Side, compare

from mtosi_jms.console import Console, DeadLetters, LetterBox, Traffic
from mtosi_jms.jms import JmsMessage

ENVELOPE = """<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"
 xmlns:h="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"><s:Header><h:header><h:activityName>getAllManagedElements</h:activityName>
<h:msgType>{kind}</h:msgType><h:correlationId>{correlation}</h:correlationId>{batch}</h:header></s:Header>
<s:Body><a>{text}</a></s:Body></s:Envelope>"""
PAGES = {
    "messages": "/messages",
    "messages of a kind, by size": "/messages?kind=response&sort=size-down",
    "messages with a text": "/messages?q=c-1",
    "exchanges": "/",
    "one exchange": "/exchange?key=c-1",
    "dead letters": "/dead-letters/queue/0",
    "dead letters of a reason": "/dead-letters/queue/0?reason=DecodeError",
    "dead letters with a text": "/dead-letters/queue/0?text=c-9999",
}
REPLIES = 50
LENGTH = 2_000


def pages(*, quick: bool) -> Comparison:
    """Pages of the console, each asked for ten times in a round."""
    share = 100 if quick else 1
    app = Console(_traffic(20_000 // share), dead_letters=[DeadLetters(name="queue:DLQ", box=_box(100_000 // share))])
    sides = [Side(name, "ours", lambda path=path: _asked(app, path)) for name, path in PAGES.items()]  # type: ignore[misc]
    rounds = 3 if quick else 10
    found = compare("console", "Pages of a console with a full memory", "pages", sides, rounds=rounds)
    found.notes += [f"{line.name}: {line.median / line.amount * 1e3:.1f} ms" for line in found.lines]
    return found


def _asked(app: Console, path: str) -> int:
    async def ask() -> int:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as client:
            return sum([(await client.get(path)).status_code == 200 for _ in range(10)])

    return asyncio.run(ask())


def _traffic(messages: int) -> Traffic:
    traffic = Traffic()
    for number in range(messages):
        turn, batch = divmod(number, REPLIES)
        more = f"<h:batchSequenceNumber>{batch}</h:batchSequenceNumber>" if batch else ""
        kind = "RESPONSE" if batch else "REQUEST"
        body = ENVELOPE.format(kind=kind, correlation=f"c-{turn}", batch=more, text="t" * LENGTH).encode()
        traffic.record(JmsMessage(body=body, message_id=f"ID:{number}"), destination=f"queue:OS-{turn % 20}")
        if batch == 0:
            traffic.digest()
    return traffic


def _box(letters: int) -> LetterBox:
    box = LetterBox()
    reasons = ("TimeoutError", "EntityNotFoundFault", "DecodeError")
    told = {"MTOSI_msgType": "REQUEST", "MTOSI_activityName": "getManagedElement"}
    box.read(
        JmsMessage(
            message_id=f"ID:d{number}",
            timestamp_ms=number,
            properties={**told, "MTOSI_correlationId": f"c-{number}", "MTOSIX_parkedReason": reasons[number % 3]},
        )
        for number in range(letters)
    )
    return box
