"""Which alarm an alarm event is about: the same object, layer and probable cause make the same alarm.

The columns of `mtosi_jms.spark.jobs` go by the same identity.
"""

from __future__ import annotations

from typing import Any, NamedTuple

_EXTENDED = ("VENDOR_EXT", "MINOR_EXT")


class AlarmKey(NamedTuple):
    """The identity of an alarm; text, empty where the alarm says nothing.

    Attributes:
        object_name: the object in trouble, `MD=EMS1/ME=NE-7`.
        layer_rate: the layer, with a vendor's own behind a colon.
        probable_cause: the cause, with a vendor's own behind a colon.
        qualifier: tells apart alarms of one cause on one object.
        ru: whether the cause lies in a replaceable unit.
        contra: whether it lies in the opposite direction.
    """

    object_name: str
    layer_rate: str
    probable_cause: str
    qualifier: str = ""
    ru: bool = False
    contra: bool = False


def alarm_key(alarm: Any) -> AlarmKey | None:
    """The identity of an alarm; None where its object or its cause is missing.

    Args:
        alarm: an alarm event, an alarm of an answer to `getActiveAlarms`, or an `AlarmIdType`, of any package.
    """
    name, cause = getattr(alarm, "object_name", None), getattr(alarm, "probable_cause", None)
    what = _extended(getattr(cause, "probable_cause", None), getattr(cause, "extension", None))
    what = what or str(getattr(alarm, "native_probable_cause", None) or "")
    if not name or not what:
        return None
    layer = getattr(alarm, "layer_rate", None)
    return AlarmKey(
        str(name),
        _extended(getattr(layer, "value", None), getattr(layer, "extension", None)),
        what,
        str(getattr(cause, "qualifier", None) or getattr(alarm, "probable_cause_qualifier", None) or ""),
        getattr(cause, "ru", None) is True,
        getattr(cause, "contra", None) is True,
    )


def _extended(value: object, extension: object) -> str:
    text = str(value) if value else ""
    return f"{text}:{extension}" if text in _EXTENDED and extension else text
