"""The console as an ASGI application: pages that show the traffic, and forms for actions if those are allowed."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from mtosi_jms.console._guard import LOGIN, Guard, throttled
from mtosi_jms.console._landing import Cached, Landed
from mtosi_jms.console._letter_pages import LetterPages, wanted_of
from mtosi_jms.console._letters import DeadLetters, Spooled
from mtosi_jms.console._message import message_answer
from mtosi_jms.console._pages import render, static
from mtosi_jms.console._traffic import Seen, Traffic
from mtosi_jms.console._views import Views, part
from mtosi_jms.errors import MissingExtraError
from mtosi_jms.gateway import Access, HttpOptions, Throttled
from mtosi_jms.masking import without_login

try:
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
    from starlette.routing import Route
    from starlette.types import Receive, Scope, Send
except ImportError as error:
    raise MissingExtraError("starlette", "console") from error

log = logging.getLogger(__name__)

_TURN: Final = 0.25
"""Seconds between two sorts of the backlog."""
_ROWS: Final = 100
_SORTS: Final[Mapping[str, Callable[[Seen], Any]]] = {
    "seen": lambda one: one.at_ms,
    "operation": lambda one: one.facts.operation,
    "correlation": lambda one: one.facts.correlation_id,
    "destination": lambda one: one.destination,
    "size": lambda one: one.size,
}
_SHOWS: Final = {"all": "All", "troubled": "With problems", "open": "Open", "complete": "Complete"}


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
        self._landings = [Landed(folder) for folder in landings]
        boxes = [Cached(folder, partial(Spooled.of, folder), stamp=time.monotonic_ns) for folder in spools]
        self._views = Views(traffic, self._page, landings=landings, spools=boxes, topology=topology)
        self._letters = LetterPages(
            self._page, self._form, queues=dead_letters, spools=boxes, allow_actions=allow_actions
        )
        pages: dict[str, Callable[[Request], Response]] = {
            "/": self._exchanges,
            "/exchange": self._exchange,
            "/messages": self._messages,
            "/message/{number:int}": self._message,
            "/destinations": self._destinations,
            "/landing/{place:int}": self._landing,
            "/landing/{place:int}/report": self._report,
            "/static/{name}": self._static,
            "/favicon.ico": self._static,  # browsers request it for pages that name none, such as the report
            LOGIN: self._login,
            **self._views.pages,
        }
        routes = [Route(path, page, methods=["GET"]) for path, page in pages.items()]
        routes += [
            Route(LOGIN, self._log_in, methods=["POST"]),
            Route("/logout", self._log_out, methods=["POST"]),
            *self._letters.routes,
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
        if self._views.has_network:
            tabs.append(("/topology", "Topology"))
        return [*tabs, ("/health", "Health")]

    def _exchanges(self, request: Request) -> Response:
        show = request.query_params.get("show", "all")
        show = show if show in _SHOWS else "all"
        found = self._traffic.exchanges(show, _ROWS)
        missing = [landed.missing() for landed in self._landings]
        return self._page(
            request, "exchanges", exchanges=found, show=show, shows=_SHOWS, most=_ROWS, missing_landed=missing
        )

    def _exchange(self, request: Request) -> Response:
        key = request.query_params.get("key", "")
        found = self._traffic.exchange(key)
        if found is None:
            return self._missing(request, "This exchange is not known, or not any more.")
        messages = self._traffic.messages(correlation_id=key) or self._traffic.messages(key, _ROWS)
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
        at = request.path_params["place"]
        if at >= len(self._landings):
            return self._missing(request, "There is no such landing.")
        landed = self._landings[at]
        return self._page(request, "landing", at=at, folder=landed.folder, ledger=landed.ledger(), most=_ROWS)

    def _report(self, request: Request) -> Response:
        at = request.path_params["place"]
        if at >= len(self._landings):
            return self._missing(request, "There is no such landing.")
        # The report is a standalone page that users can send to others: its style is inline, and it has no script.
        policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
        headers = {"Content-Security-Policy": policy}
        return Response(self._landings[at].report(), 200, headers, "text/html; charset=utf-8")

    def _static(self, request: Request) -> Response:
        found = static(request.path_params.get("name", "icon.svg"))
        if found is None:
            return PlainTextResponse("There is no such file.\n", 404)
        return Response(found[0], headers={"Content-Type": found[1], "Cache-Control": "max-age=31536000, immutable"})

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
