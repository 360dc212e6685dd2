"""AlarmRetrieval: the alarms that stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mtosi_jms.service import RequestContext
from mtosi_jms.simulator._equipment import is_inside
from mtosi_jms.stubs.fmw.msg import UnableToComplyFault
from mtosi_jms.stubs.fmw.nam import NamingAttributeType
from mtosi_jms.stubs.nra.alm import AlarmType
from mtosi_jms.stubs.rtm import ar
from mtosi_jms.stubs.rtm.alarm_retrieval import AlarmRetrieval


class AlarmEms(AlarmRetrieval.Supplier):
    """AlarmRetrieval over alarms that do not change. All of them come from the network, none from the system itself.

    Args:
        alarms: the alarms; `standing_alarms(network.events(n)).values()` are those of a generated network.
    """

    def __init__(self, alarms: Iterable[AlarmType]) -> None:
        self.alarms = tuple(alarms)

    def get_active_alarms(self, request: ar.GetActiveAlarmsRequest, context: RequestContext) -> Iterator[AlarmType]:
        """The alarms that a filter lets through."""
        return self._passing(request.filter)

    def get_active_alarms_count(
        self, request: ar.GetActiveAlarmsCountRequest, context: RequestContext
    ) -> ar.GetActiveAlarmsCountResponse:
        """How many a filter lets through."""
        return ar.GetActiveAlarmsCountResponse(active_alarm_count=sum(1 for _ in self._passing(request.filter)))

    def _passing(self, wanted: ar.ActiveAlarmFilterType | None) -> Iterator[AlarmType]:
        if wanted is None:
            return iter(self.alarms)
        if wanted.query_expression is not None:
            raise UnableToComplyFault("query expressions are not understood here")
        if wanted.source == ar.AlarmSourceType.INTERNAL:
            return iter(())
        return (alarm for alarm in self.alarms if _passes(alarm, wanted))


def _passes(alarm: AlarmType, wanted: ar.ActiveAlarmFilterType) -> bool:
    severities = wanted.perceived_severity_list
    if severities is not None and alarm.perceived_severity not in severities.perceived_severity:
        return False
    causes = wanted.probable_cause_list
    cause = alarm.probable_cause.probable_cause if alarm.probable_cause is not None else None
    if causes is not None and cause not in [one.probable_cause for one in causes.prc]:
        return False
    if wanted.acknowledge_indication not in (None, alarm.acknowledge_indication):
        return False
    if wanted.scope is None:
        return True
    inner = _steps(alarm.object_name)
    return any(inner == outer or is_inside(inner, outer) for outer in map(_steps, wanted.scope.name))


def _steps(name: object) -> list[tuple[str, str]]:
    return [(step.type, step.value) for step in name.rdn] if isinstance(name, NamingAttributeType) else []
