"""The pages of notifications, alarms, topology and health."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, cast
from urllib.parse import urlencode

from mtosi_jms.binding.events import SEVERITIES
from mtosi_jms.console._alarms import GRAVEST_FIRST, AlarmState, is_about
from mtosi_jms.console._landing import Cached
from mtosi_jms.console._letters import Spooled
from mtosi_jms.console._topology import Network, alarms_of, read_landing
from mtosi_jms.console._traffic import Traffic
from mtosi_jms.errors import MissingExtraError, MtosiError
from mtosi_jms.telemetry import METRICS, Metrics

try:
    from starlette.requests import Request
    from starlette.responses import Response
except ImportError as error:
    raise MissingExtraError("starlette", "console") from error

_ROWS: Final = 100
_NEIGHBOURS: Final = 1_000
_PATIENCE: Final = 2.0
"""Seconds in which a small network is read."""
_SHOWN: Final = (*GRAVEST_FIRST, "CLEARED")
assert set(_SHOWN) == set(SEVERITIES)  # noqa: S101 - a fact about two constants
_ANY_SEVERITY: Final = {"": "any", **{name: name.lower() for name in _SHOWN}}
_HOUR: Final = 3_600_000
_DAY: Final = 24 * _HOUR
_SINCE: Final = {
    "": "any time",
    "1h": "the last hour",
    "24h": "the last 24 hours",
    "yesterday": "since yesterday 00:00 UTC",
    "7d": "the last 7 days",
}
_STATES: Final = {"all": "active and cleared", "active": "active", "cleared": "cleared"}


class Render(Protocol):
    """Makes the answer with a page."""

    def __call__(self, request: Request, name: str, status: int = 200, **context: Any) -> Response: ...


class Paging(NamedTuple):
    """One page of a long list. `first`, `last`: numbers of the first and last entry, from 1; `before`, `after`: queries
    of the pages next to it, empty if there is none."""

    total: int
    first: int
    last: int
    before: str
    after: str


class _Gauged(NamedTuple):
    told: str
    labels: str
    value: float


class Views:
    """Pages about the network and what happens in it.

    Args:
        page: renders a page.
        topology: folder that `mtosi-jms topology` wrote; None: the first landing gives the network.
    """

    def __init__(
        self,
        traffic: Traffic,
        page: Render,
        *,
        landings: Sequence[Path],
        spools: Sequence[Cached[Spooled]],
        topology: Path | None,
    ) -> None:
        self._traffic = traffic
        self._page = page
        self._spools = spools
        self._network: Cached[Network] | None = None
        if topology is not None:
            self._network = Cached(topology, lambda: _tables(topology))
        elif landings:
            self._network = Cached(landings[0], lambda: read_landing(landings[0]))
        self.pages: dict[str, Callable[[Request], Response]] = {
            "/notifications": self._notifications,
            "/alarms": self._alarms,
            "/health": self._health,
            "/topology": self._topology,
            "/topology/network": self._map,
            "/topology/alarms": self._alarmed,
        }

    @property
    def has_network(self) -> bool:
        return self._network is not None

    def _notifications(self, request: Request) -> Response:
        names = ("category", "severity", "event", "object", "text")
        given = {name: request.query_params.get(name, "").strip() for name in names}
        counts = self._traffic.notified()
        events, kept = self._traffic.notifications(
            given["category"],
            given["severity"],
            event=given["event"],
            about=given["object"],
            text=given["text"],
            most=_ROWS,
        )
        return self._page(
            request,
            "notifications",
            counts=counts,
            categories=sorted({category for category, _ in counts}),
            severities=[name for name in (*_SHOWN, "none") if any(name == found for _, found in counts)],
            event_names={"": "any", **{name: name for name in self._traffic.event_names()}},
            known=_ANY_SEVERITY | {"none": "none"},
            given=given,
            events=events,
            kept=kept,
        )

    def _alarms(self, request: Request) -> Response:
        names = ("object", "severity", "state", "since")
        given = {name: request.query_params.get(name, "").strip() for name in names}
        state = given["state"] if given["state"] in _STATES else "all"
        found = self._traffic.alarms(
            given["object"],
            severity=given["severity"],
            state=cast(AlarmState, state),
            since_ms=_since(given["since"], self._traffic.now_ms),
        )
        paging, shown = part(request, found)
        return self._page(
            request,
            "alarms",
            given={**given, "state": state},
            severities=_ANY_SEVERITY,
            states=_STATES,
            sinces=_SINCE,
            is_part=bool(found and given["object"]) and not is_about(found[0].object_name, given["object"]),
            alarms=shown,
            paging=paging,
            health=self._traffic.health(),
        )

    def _found(self) -> Network | None:
        """The network; None if it is still being read."""
        return None if self._network is None else self._network.latest(_PATIENCE)

    def _topology(self, request: Request) -> Response:
        network = self._found()
        text, name = (request.query_params.get(each, "").strip() for each in ("q", "element"))
        paging, shown = part(request, [] if network is None else network.find(text))
        neighbours = network.neighbours(name) if network is not None and name else None
        return self._page(
            request,
            "topology",
            network=network,
            has_network=self.has_network,
            text=text,
            element=name,
            neighbours=neighbours,
            most=_NEIGHBOURS,
            alarms=self._traffic.alarms(name, state="active") if neighbours is not None else (),
            worst=self._traffic.alarmed(),
            severities=GRAVEST_FIRST,
            shown=shown,
            paging=paging,
        )

    def _map(self, request: Request) -> Response:
        network = self._found()
        if network is None or network.problem:
            return Response("{}", 503, media_type="application/json")
        return _json(request, network.map, network.mark)

    def _alarmed(self, request: Request) -> Response:
        data = alarms_of(self._traffic.alarmed())
        return _json(request, data, hashlib.sha256(data).hexdigest()[:16])

    def _health(self, request: Request) -> Response:
        health = self._traffic.health()
        return self._page(
            request,
            "health",
            health=health,
            uptime=(self._traffic.now_ms - health.began_ms) // 1000,
            version=_version(),
            places=self._traffic.places(),
            spools=[(one.folder, one.get()) for one in self._spools],
            roles=[(source, _gauged(metrics)) for source, metrics in health.roles.items()],
            most=_ROWS,
        )


@cache
def _version() -> str:
    try:
        return metadata.version("mtosi-jms")
    except metadata.PackageNotFoundError:  # a checkout on the path, not installed
        return "unknown"


def _tables(folder: Path) -> Network:
    try:
        from mtosi_jms.console._tables import read_tables  # needs an extra
    except MtosiError as error:
        return Network(set(), Counter(), Counter(), problem=str(error))
    return read_tables(folder)


def _gauged(metrics: Metrics) -> list[_Gauged]:
    return [
        _Gauged(metric.told, ", ".join(filter(None, labels)), value)
        for metric in METRICS
        if metric.kind != "histogram"
        for labels, value in sorted(metrics.numbers(metric.name))
    ]


def _since(choice: str, now_ms: int) -> int | None:
    """The beginning of a period, milliseconds since 1970 UTC; None for any time."""
    starts = {"1h": now_ms - _HOUR, "24h": now_ms - _DAY, "yesterday": now_ms // _DAY * _DAY - _DAY}
    return (starts | {"7d": now_ms - 7 * _DAY}).get(choice)


def part(request: Request, found: Sequence[Any]) -> tuple[Paging, Sequence[Any]]:
    """The page of a list that a request asks for."""
    asked = request.query_params.get("page", "1")
    pages = max((len(found) + _ROWS - 1) // _ROWS, 1)
    page = min(max(int(asked), 1), pages) if asked.isdecimal() and len(asked) < 10 else 1
    shown = found[(page - 1) * _ROWS : page * _ROWS]

    def query(number: int) -> str:
        if not 1 <= number <= pages:
            return ""
        return "?" + urlencode([*((k, v) for k, v in request.query_params.items() if k != "page"), ("page", number)])

    first = (page - 1) * _ROWS
    return Paging(len(found), first + bool(shown), first + len(shown), query(page - 1), query(page + 1)), shown


def _json(request: Request, data: bytes, mark: str) -> Response:
    headers = {"ETag": f'"{mark}"', "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(data, 200, headers, "application/json")
