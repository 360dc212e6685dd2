"""Notifications over the embedded provider: from a publisher through the selectors of 1, 10 and 100 subscribers.

No other Python library does the same work. The lines show the cost of further subscribers: when each wants the alarms
of one element only, and when each gets everything.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from measure import Comparison, Side, compare

import mtosi_jms as mtosi
from mtosi_jms.binding.selector import P
from mtosi_jms.notifications import Publisher, Subscriber
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.nra.alm import Alarm
from mtosi_jms.stubs.nra.com import AcknowledgeIndicationType, PerceivedSeverityType
from mtosi_jms.stubs.nra.prc import ProbableCauseEnumType, ProbableCauseType

SUBSCRIBERS = (1, 10, 100)
ELEMENTS = 100
PROFILE = mtosi.BindingProfile(filter_properties=frozenset({"EventType", "objectName", "perceivedSeverity"}))
NAMES = {"jms/FaultTopic": "topic:FAULT"}


def notifications(*, quick: bool) -> Comparison:
    """Alarms published, filtered, received and decoded, in one thread."""
    alarms = [_alarm(number % ELEMENTS) for number in range(ELEMENTS if quick else 5 * ELEMENTS)]
    with ExitStack() as stack:
        sides = [
            Side(_named(count, shared), "ours", _through(stack, alarms, count, shared=shared))
            for shared in (False, True)
            for count in (SUBSCRIBERS if not shared else SUBSCRIBERS[:2])
        ]
        sides.append(Side("nobody listens", "limit", _through(stack, alarms, 0, shared=False)))
        title = "notifications over memory:, each with three properties of Table 4"
        found = compare("notifications", title, "notifications", sides, rounds=3 if quick else 7)
    found.notes.append(cost(found))
    return found


def cost(found: Comparison) -> str:
    """Return a text about the cost of 100 subscribers compared with one."""
    median = {line.name: line.median for line in found.lines}
    ratio = median[_named(SUBSCRIBERS[-1], False)] / median[_named(1, False)]
    return f"a notification past the selectors of 100 subscribers takes {ratio:,.1f} times as long as past one's"


def _named(count: int, shared: bool) -> str:
    return f"{count} subscriber{'s' if count != 1 else ''}{', all get all' if shared else ''}"


def _alarm(number: int) -> Alarm:
    return Alarm(
        object_type="ME",
        object_name=name(f"MD=EMS1/ME=NE-{number}"),
        probable_cause=ProbableCauseType(probable_cause=ProbableCauseEnumType.LOS),
        perceived_severity=PerceivedSeverityType.MAJOR,
        acknowledge_indication=AcknowledgeIndicationType.UNACKNOWLEDGED,
    )


def _through(stack: ExitStack, alarms: list[Alarm], count: int, *, shared: bool) -> Callable[[], int]:
    """Return a run that publishes all alarms and receives those that the subscribers want."""
    connection = stack.enter_context(mtosi.connect(f"memory:notifying-{count}-{shared}", names=NAMES))
    subscribers = [
        Subscriber(
            connection,
            "jms/FaultTopic",
            selector=P.EventType == "AlarmInformation" if shared else P.objectName == f"MD=EMS1/ME=NE-{number}",
            profile=PROFILE,
            timeout=0,
        )
        for number in range(count)
    ]
    publisher = stack.enter_context(Publisher(connection, {"Fault": "jms/FaultTopic"}, sender_uri="E", profile=PROFILE))
    wanted = len(alarms) * count if shared else len(alarms) * count // ELEMENTS

    def run() -> int:
        for alarm in alarms:
            publisher.publish(alarm)
        received = sum(1 for subscriber in subscribers for _ in subscriber)
        if received != wanted:
            raise RuntimeError(f"{received} notifications were received, {wanted} were wanted")
        return len(alarms)

    return run
