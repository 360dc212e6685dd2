"""Message selectors: evaluating them on messages, from one comparison to ten terms, and parsing their texts.

No other selector engine for Python does the same work, so ours is compared with a limit: the same comparison as Python
code, on the same messages.
"""

from __future__ import annotations

from collections.abc import Callable

from measure import Comparison, Side, compare

from mtosi_jms.binding.events import EVENT_NAMES, SEVERITIES
from mtosi_jms.jms import JmsMessage
from mtosi_jms.jms.selector import Selector, parse

CONDITIONS = {
    "one comparison": "MTOSI_perceivedSeverity = 'CRITICAL'",
    "an OR of three types": "MTOSI_EventType = 'ObjectCreation' OR MTOSI_EventType = 'ObjectDeletion' OR "
    "MTOSI_EventType = 'AttributeValueChange'",
    "LIKE, a prefix": "MTOSI_objectName LIKE 'MD=EMS1/ME=NE-1%'",
    "ten terms": "MTOSI_EventType IN ('AlarmInformation', 'ThresholdCrossingAlert') AND "
    "(MTOSI_perceivedSeverity = 'CRITICAL' OR MTOSI_perceivedSeverity = 'MAJOR' OR JMSPriority > 7) AND "
    "MTOSI_objectName LIKE 'MD=EMS1/%' AND NOT (MTOSI_objectName LIKE '%/EH=%/EQ=%') AND "
    "MTOSI_layerRate IS NULL AND (MTOSI_isEdgePointRelated = TRUE OR MTOSI_batchSequenceNumber IS NULL) AND "
    "JMSPriority BETWEEN 2 AND 9",
}


def selectors(*, quick: bool) -> Comparison:
    """Evaluate selectors on messages, and parse the longest selector."""
    given = messages(1_000 if quick else 5_000)
    sides = [Side(name, "ours", _verdicts(parse(text), given)) for name, text in CONDITIONS.items()]
    sides.append(Side("parse, ten terms", "ours", _parses(CONDITIONS["ten terms"], len(given))))
    sides.append(Side("one comparison in Python", "limit", _written_out(given)))
    accepted = sum(map(parse(CONDITIONS["one comparison"]).accepts, given))
    if accepted != sum(message.properties.get("MTOSI_perceivedSeverity") == "CRITICAL" for message in given):
        raise RuntimeError("the selector lets other messages through than the comparison in Python")
    return compare(
        "selectors",
        "selectors: does the message get through; four conditions, and the parse of one",
        "selectors",
        sides,
        rounds=3 if quick else 7,
        notes=["one selector a message, by Selector.accepts; the last column holds each line against one comparison"],
    )


def messages(count: int) -> list[JmsMessage]:
    """Return notifications of all events and severities, with the attributes that selectors use."""
    events, severities = sorted(EVENT_NAMES), SEVERITIES
    return [
        JmsMessage(
            properties={
                "MTOSI_EventType": events[number % len(events)],
                "MTOSI_perceivedSeverity": severities[number % len(severities)],
                "MTOSI_objectName": f"MD=EMS1/ME=NE-{number % 997}/EH=/shelf=1",
                "MTOSI_isEdgePointRelated": number % 2 == 0,
            },
            priority=number % 10,
        )
        for number in range(count)
    ]


def _verdicts(selector: Selector, given: list[JmsMessage]) -> Callable[[], int]:
    accepts = selector.accepts

    def run() -> int:
        for message in given:
            accepts(message)
        return len(given)

    return run


def _parses(text: str, count: int) -> Callable[[], int]:
    def run() -> int:
        for _ in range(count):
            parse(text)
        return count

    return run


def _written_out(given: list[JmsMessage]) -> Callable[[], int]:
    def run() -> int:
        for message in given:
            message.properties.get("MTOSI_perceivedSeverity") == "CRITICAL"  # noqa: B015
        return len(given)

    return run
