"""The alarms that were reported lately, each from its first report to the one that clears it."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple

from mtosi_jms.binding.profile import PROPERTIES
from mtosi_jms.bounds import BOUNDS

AlarmState = Literal["all", "active", "cleared"]

GRAVEST_FIRST: Final = ("CRITICAL", "MAJOR", "MINOR", "WARNING", "INDETERMINATE")
"""The severities of active alarms."""
_SEARCHED: Final = 200
"""Alarms that are searched for a cleared one, to drop it first."""


class Alarm(NamedTuple):
    """One alarm, by its number in the order of first reports. `severity`: the last one but CLEARED; CLEARED if only the
    clearing was seen. `raised_ms`, `changed_ms`, `cleared_ms`: the times of the first report, the last one and the one
    that clears it, milliseconds since 1970 UTC; None if there was none."""

    number: int
    object_name: str
    layer: str
    cause: str
    qualifier: str
    severity: str
    acknowledged: str
    raised_ms: int | None
    changed_ms: int
    cleared_ms: int | None


class Worst(NamedTuple):
    """The active alarms of an element: the gravest severity, and how many there are."""

    severity: str
    alarms: int


class Alarms:
    """Alarms by their identity: object, layer, probable cause and its qualifier. For one thread at a time.

    Reports may come late: one that is older than the last report of its alarm changes nothing. There is room for only
    so many; `left_out` counts those that were dropped, cleared ones first.
    """

    def __init__(self, most: int = BOUNDS.console_alarms) -> None:
        self._most = most
        self._kept: OrderedDict[int, Alarm] = OrderedDict()
        self._latest: OrderedDict[tuple[str, ...], tuple[int, int]] = OrderedDict()
        self._active: defaultdict[str, set[int]] = defaultdict(set)
        self._numbers = 0
        self.left_out = 0
        self.unread = 0

    def __len__(self) -> int:
        return len(self._kept)

    def report(self, values: Mapping[str, object], at_ms: int) -> None:
        """Takes the report of an alarm. `values`: those of Table 4, times in milliseconds, by the names of their
        properties. `at_ms`: when it was seen, if it has no time of its own."""

        def text(name: str) -> str:
            return str(values.get(PROPERTIES[name]) or "")

        time = _time_of(values, at_ms)
        key = tuple(map(text, ("objectName", "layerRate", "probableCause", "nativeProbableCause")))
        key += (text("probableCauseQualifier"),)
        name, layer, cause, native, qualifier = key
        is_known = bool(name and (cause or native))  # without them, two reports are not known to be of one alarm
        last, number = self._latest.get(key, (time, 0)) if is_known else (time, 0)
        if time < last:
            return
        known, severity = self._kept.get(number), text("perceivedSeverity")
        if severity not in (*GRAVEST_FIRST, "CLEARED"):  # a word of the vendor
            severity = "INDETERMINATE"
        ends = time if severity == "CLEARED" else None
        if known is None or (known.cleared_ms is not None and ends is None):
            self._numbers += 1
            begins = None if ends is not None else time
            shown = cause if cause and not cause.startswith(("VENDOR_EXT", "MINOR_EXT")) else native or cause
            acknowledged = text("acknowledgeIndication")
            known = Alarm(self._numbers, name, layer, shown, qualifier, severity, acknowledged, begins, time, ends)
        elif known.cleared_ms is None:
            kept = known.severity if ends is not None else severity
            acknowledged = text("acknowledgeIndication") or known.acknowledged
            known = known._replace(severity=kept, acknowledged=acknowledged, changed_ms=time, cleared_ms=ends)
        self._put(known)
        if is_known:
            self._latest[key] = time, known.number
            self._latest.move_to_end(key)
            if len(self._latest) > 2 * self._most:
                self._latest.popitem(last=False)

    def deleted(self, name: str, values: Mapping[str, object], at_ms: int) -> None:
        """Ends the alarms of an object that was deleted, and of those in it, but none that was raised later."""
        time, element = _time_of(values, at_ms), element_of(name)
        places = [element] if element else list(self._active)
        for number in [each for place in places for each in self._active.get(place, ())]:
            alarm = self._kept[number]
            if _is_in(alarm.object_name, name) and alarm.changed_ms <= time:
                self._put(alarm._replace(changed_ms=time, cleared_ms=time))

    def _put(self, alarm: Alarm) -> None:
        element = element_of(alarm.object_name)
        self._kept[alarm.number] = alarm
        if alarm.cleared_ms is None:
            self._active[element].add(alarm.number)
        else:
            self._forget(element, alarm.number)
        if len(self._kept) > self._most:
            first = iter(self._kept.values())
            cleared = (one for _, one in zip(range(_SEARCHED), first, strict=False) if one.cleared_ms is not None)
            gone = next(cleared, None) or next(iter(self._kept.values()))
            del self._kept[gone.number]
            self._forget(element_of(gone.object_name), gone.number)
            self.left_out += 1

    def _forget(self, element: str, number: int) -> None:
        self._active[element].discard(number)
        if not self._active[element]:
            del self._active[element]

    def find(
        self, about: str = "", *, severity: str = "", state: AlarmState = "all", since_ms: int | None = None
    ) -> list[Alarm]:
        """Alarms, the one with the latest report first.

        Args:
            about: the name of an object: it and what is in it; or the value of a step of it; where no alarm has that, a
                part of a name.
            severity: the last severity; empty: any.
            since_ms: leaves out cleared alarms without a later report, and active ones only if `state` is not `active`.
        """
        found = [
            one
            for one in self._kept.values()
            if severity in ("", one.severity)
            and (state == "all" or (state == "active") == (one.cleared_ms is None))
            and (since_ms is None or one.changed_ms >= since_ms)
        ]
        if about:
            exact = [one for one in found if is_about(one.object_name, about)]
            folded = about.casefold()
            found = exact or [one for one in found if folded in one.object_name.casefold()]
        return sorted(found, key=lambda one: (-one.changed_ms, -one.number))

    def worst(self) -> dict[str, Worst]:
        """The active alarms by the name of their element; those of other objects under an empty name."""
        return {
            element: Worst(min((self._kept[one].severity for one in numbers), key=_rank), len(numbers))
            for element, numbers in self._active.items()
        }


def element_of(name: str) -> str:
    """The name of the managed element in an object's name, as `MD=EMS1/ME=NE-7`; empty if there is none."""
    steps = name.split("/")
    at = next((at for at, step in enumerate(steps) if step.startswith("ME=")), None)
    return "" if at is None else "/".join(steps[: at + 1])


def _rank(severity: str) -> int:
    return GRAVEST_FIRST.index(severity) if severity in GRAVEST_FIRST else len(GRAVEST_FIRST)


def _time_of(values: Mapping[str, object], at_ms: int) -> int:
    times: Iterator[object] = (values.get(PROPERTIES[name]) for name in ("sourceTime", "osTime"))
    return next((int(time) for time in times if isinstance(time, int)), at_ms)


def _is_in(name: str, whole: str) -> bool:
    return name == whole or name.startswith(f"{whole}/")


def is_about(name: str, about: str) -> bool:
    """Whether a name is that of an object or of what is in it: by its name, or by the value of one of its steps."""
    return _is_in(name, about) or any(step.partition("=")[2] == about for step in name.split("/"))
