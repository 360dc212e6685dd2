"""The console as an ASGI application: pages that show the traffic, and forms for actions if those are allowed."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlencode

from mtosi_jms.binding.events import SEVERITIES
from mtosi_jms.console._alarms import GRAVEST_FIRST, AlarmState, is_about
from mtosi_jms.console._folders import Cached, Ledger, Network, read_ledger, read_network, read_tables, report_of
from mtosi_jms.console._guard import LOGIN, Guard, throttled
from mtosi_jms.console._letter_pages import LetterPages, wanted_of
from mtosi_jms.console._letters import DeadLetters, SpooledLetters
from mtosi_jms.console._message import message_answer
from mtosi_jms.console._pages import ROWS, STATIC, part, render
from mtosi_jms.console._traffic import Seen, Traffic
from mtosi_jms.errors import MissingExtraError
from mtosi_jms.gateway import Access, HttpOptions, Throttled
from mtosi_jms.masking import without_login
from mtosi_jms.telemetry import METRICS, Metrics

try:
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
    from starlette.routing import BaseRoute, Mount, Route
    from starlette.staticfiles import StaticFiles
    from starlette.types import Receive, Scope, Send
except ImportError as error:
    raise MissingExtraError("starlette", "console") from error

log = logging.getLogger(__name__)

_TURN: Final = 0.25
"""Seconds between two sorts of the backlog."""
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


_SORTS: Final[Mapping[str, Callable[[Seen], Any]]] = {
    "seen": lambda one: one.at_ms,
    "operation": lambda one: one.facts.operation,
    "correlation": lambda one: one.facts.correlation_id,
    "destination": lambda one: one.destination,
    "size": lambda one: one.size,
}
_SHOWS: Final = {"all": "All", "troubled": "With problems", "open": "Open", "complete": "Complete"}


class _Gauged(NamedTuple):
    told: str
    labels: str
    value: float


class Console:
    """An ASGI application that shows traffic, for `mtosi_jms.gateway.HttpServer` or another server.

        traffic = Traffic()
        with HttpServer(Console(traffic), port=8085) as server:
            print(server.url)

    Args:
        title: name of what is watched, for the heading.
        landings: folders of envelopes whose ledger and topology are shown.
        spools: folders of outboxes and inboxes.
        dead_letters: queues of dead letters.
        topology: folder that `mtosi-jms topology` wrote; None: the first landing gives the topology.
        allow_actions: whether messages may be redriven and withdrawn.
        tokens: tokens, one of which a client must send, or tokens by the names of who has them, which the log has for
            each action; empty: no client needs one.
        host_names: allowed host names besides addresses and `localhost`.
    """

    def __init__(
        self,
        traffic: Traffic,
        *,
        title: str = "",
        landings: Sequence[Path] = (),
        spools: Sequence[Path] = (),
        dead_letters: Sequence[DeadLetters] = (),
        topology: Path | None = None,
        allow_actions: bool = False,
        tokens: Collection[str] | Mapping[str, str] = frozenset(),
        host_names: frozenset[str] = frozenset(),
    ) -> None:
        self.options = HttpOptions()
        self.public_url = ""
        self._traffic = traffic
        self._title = without_login(title)
        self._landings = [Cached(folder, partial(read_ledger, folder)) for folder in landings]
        self._network: Cached[Network] | None = None
        if topology is not None or landings:
            folder, read = (topology, read_tables) if topology is not None else (landings[0], read_network)
            self._network = Cached(folder, partial(read, folder))
        self._spools = [SpooledLetters(folder) for folder in spools]
        self._letters = LetterPages(
            self._page, self._form, queues=dead_letters, spools=self._spools, allow_actions=allow_actions
        )
        pages: dict[str, Callable[[Request], Response]] = {
            "/": self._exchanges,
            "/exchange": self._exchange,
            "/messages": self._messages,
            "/message/{number:int}": self._message,
            "/destinations": self._destinations,
            "/landing/{place:int}": self._landing,
            "/landing/{place:int}/report": self._report,
            # Browsers request it for pages that name none, such as the report.
            "/favicon.ico": lambda request: FileResponse(STATIC / "icon.svg"),
            LOGIN: self._login,
            "/notifications": self._notifications,
            "/alarms": self._alarms,
            "/health": self._health,
            "/topology": self._topology,
            "/topology/network": self._map,
            "/topology/alarms": self._alarmed,
        }
        routes: list[BaseRoute] = [Route(path, page, methods=["GET"]) for path, page in pages.items()]
        routes += [
            Route(LOGIN, self._log_in, methods=["POST"]),
            Route("/logout", self._log_out, methods=["POST"]),
            *self._letters.routes,
            Mount("/static", StaticFiles(directory=STATIC)),
            Route("/healthz", self._healthy, methods=["GET"]),
        ]
        app = Starlette(routes=routes, lifespan=self._living, exception_handlers={404: self._nothing})
        self._guard = Guard(app, access=Access(tokens=tokens), hosts=host_names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guard(scope, receive, send)

    @contextlib.asynccontextmanager
    async def _living(self, app: Starlette) -> AsyncIterator[None]:
        sorting = asyncio.create_task(self._sort())
        yield
        sorting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sorting

    async def _sort(self) -> None:
        """Sorts the backlog, also while nobody uses the console."""
        while True:
            await run_in_threadpool(self._traffic.digest)
            await asyncio.sleep(_TURN)

    def _page(self, request: Request, name: str, status: int = 200, **context: Any) -> Response:
        """A page, or for a browser that has the page, its live part; status 304 if that is unchanged."""
        is_live = request.headers.get("x-console") == "live"
        data = render(
            name,
            layout=f"{'live' if is_live else 'page'}.html.jinja",
            path=request.url.path,
            title=self._title,
            tabs=self._tabs(),
            overview=self._traffic.overview(),
            form_key=getattr(request.state, "form_key", ""),
            user=getattr(request.state, "user", ""),
            **context,
        )
        headers = {"ETag": f'"{hashlib.sha256(data).hexdigest()[:32]}"', "Vary": "X-Console"}
        if is_live and request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(data, status, headers, "text/html; charset=utf-8")

    def _tabs(self) -> list[tuple[str, str]]:
        tabs = [("/", "Exchanges"), ("/messages", "Messages"), ("/destinations", "Destinations")]
        tabs += [("/notifications", "Notifications"), ("/alarms", "Alarms")]
        if self._letters:
            tabs.append(("/dead-letters", "Dead letters"))
        more = len(self._landings) > 1
        tabs += [
            (f"/landing/{at}", f"Ledger {landed.folder.name}" if more else "Ledger")
            for at, landed in enumerate(self._landings)
        ]
        if self._network is not None:
            tabs.append(("/topology", "Topology"))
        return [*tabs, ("/health", "Health")]

    def _exchanges(self, request: Request) -> Response:
        show = request.query_params.get("show", "all")
        show = show if show in _SHOWS else "all"
        found = self._traffic.exchanges(show, ROWS)
        missing = [_missing_of(landed.latest()) for landed in self._landings]
        return self._page(
            request, "exchanges", exchanges=found, show=show, shows=_SHOWS, most=ROWS, missing_landed=missing
        )

    def _exchange(self, request: Request) -> Response:
        key = request.query_params.get("key", "")
        found = self._traffic.exchange(key)
        if found is None:
            return self._missing(request, "This exchange is not known, or not any more.")
        messages = self._traffic.messages(correlation_id=key) or self._traffic.messages(key, ROWS)
        paging, shown = part(request, messages)
        return self._page(request, "exchange", exchange=found, messages=shown, paging=paging)

    def _messages(self, request: Request) -> Response:
        given, wanted, problem = wanted_of(request.query_params, "q", "correlation", "sort")
        found = self._traffic.messages(
            given["q"],
            kind=wanted.kind,
            operation=wanted.operation,
            correlation_id=given["correlation"],
            since_ms=wanted.since_ms,
            until_ms=wanted.until_ms,
        )
        column, _, is_down = given["sort"].partition("-")
        if column in _SORTS:
            found.sort(key=_SORTS[column], reverse=bool(is_down))
        paging, shown = part(request, found)
        text = given["q"] or given["correlation"]
        exchange = self._traffic.exchange(text) if text else None
        kinds, operations = self._traffic.counts()
        return self._page(
            request,
            "messages",
            messages=shown,
            paging=paging,
            given=given,
            problem=problem,
            kinds=kinds,
            operations=operations,
            sorts=_sorted_by(request.query_params),
            exchange=exchange,
            is_filtered=any(value for name, value in given.items() if name != "sort"),
        )

    def _message(self, request: Request) -> Response:
        found = self._traffic.message(request.path_params["number"])
        if found is None:
            return self._missing(request, "This message is not kept any more.")
        return message_answer(self._page, request, found)

    def _destinations(self, request: Request) -> Response:
        return self._page(request, "destinations", places=self._traffic.places())

    def _landing(self, request: Request) -> Response:
        landed = self._landed(request)
        if landed is None:
            return self._missing(request, "There is no such landing.")
        at = request.path_params["place"]
        return self._page(request, "landing", at=at, folder=landed.folder, ledger=landed.get(), most=ROWS)

    def _landed(self, request: Request) -> Cached[Ledger] | None:
        at = request.path_params["place"]
        return self._landings[at] if at < len(self._landings) else None

    def _report(self, request: Request) -> Response:
        landed = self._landed(request)
        if landed is None:
            return self._missing(request, "There is no such landing.")
        # The report is a standalone page that users can send to others: its style is inline, and it has no script.
        policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
        headers = {"Content-Security-Policy": policy}
        return Response(report_of(landed.get(), landed.folder), 200, headers, "text/html; charset=utf-8")

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
            most=ROWS,
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
            has_network=self._network is not None,
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
        alarms = self._traffic.alarmed()
        data = json.dumps(alarms, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
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
            spools=self._spools,
            roles=[(source, _gauged(metrics)) for source, metrics in health.roles.items()],
            most=ROWS,
        )

    def _login(self, request: Request) -> Response:
        if not self._guard.requires_token:
            return RedirectResponse("/", 303)
        return self._ask(request, request.query_params.get("to", "/"))

    def _ask(self, request: Request, to: str, problem: str = "", status: int = 200) -> Response:
        data = render("login", problem=problem, to=to, form_key=self._guard.form_key(request))
        return Response(data, status, media_type="text/html; charset=utf-8")

    async def _form(self, request: Request) -> Mapping[str, Sequence[str]] | None:
        return await self._guard.form(request, self.options.read_timeout)

    async def _log_in(self, request: Request) -> Response:
        form = await self._form(request) or {}
        to = form.get("to", ["/"])[0]
        try:
            given = self._guard.log_in(request, form["token"][0].strip(), to) if "token" in form else None
        except Throttled as error:
            return throttled(error)
        return given or self._ask(request, to, "This token is not known.", 403)

    async def _log_out(self, request: Request) -> Response:
        if await self._form(request) is None:
            return PlainTextResponse("This is not a form of the console's own: load the page again.\n", 403)
        return self._guard.log_out(request)

    async def _healthy(self, request: Request) -> Response:
        return JSONResponse({"status": "up"})

    async def _nothing(self, request: Request, error: Exception) -> Response:
        if request.url.path.startswith("/static/"):  # needs no token, and the page says what is watched
            return PlainTextResponse("There is no such file.\n", 404)
        return await run_in_threadpool(self._missing, request, "There is no such page.")

    def _missing(self, request: Request, text: str, status: int = 404) -> Response:
        return self._page(request, "missing", status, text=text)


def _sorted_by(given: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The query that sorts by each column, the other way if that is the present one; and its order now."""
    rest = {name: value for name, value in given.items() if name not in ("sort", "page")}
    now, _, down = given.get("sort", "").partition("-")
    found = {}
    for name in _SORTS:
        to_down = not down if name == now else name in _DOWN
        order = ("descending" if down else "ascending") if name == now else "none"
        found[name] = ("?" + urlencode({**rest, "sort": f"{name}-down" if to_down else name}), order)
    return found


_DOWN: Final = ("seen", "size")
"""Columns that sort from the greatest first."""


@cache
def _version() -> str:
    try:
        return metadata.version("mtosi-jms")
    except metadata.PackageNotFoundError:  # a checkout on the path, not installed
        return "unknown"


def _missing_of(ledger: Ledger | None) -> int | None:
    """The batches missing by a ledger; None if there is none."""
    return None if ledger is None or ledger.problem else ledger.missing


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


def _json(request: Request, data: bytes, mark: str) -> Response:
    headers = {"ETag": f'"{mark}"', "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(data, 200, headers, "application/json")
