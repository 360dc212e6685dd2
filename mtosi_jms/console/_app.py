"""The console as an ASGI application: pages that show the traffic, and forms for actions if those are allowed."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from mtosi_jms.console._guard import LOGIN, Guard, throttled
from mtosi_jms.console._landing import Landed
from mtosi_jms.console._message import shown
from mtosi_jms.console._pages import render, static
from mtosi_jms.console._traffic import Traffic
from mtosi_jms.console._views import Views
from mtosi_jms.errors import MissingExtraError, MtosiError
from mtosi_jms.gateway import Access, HttpOptions, Throttled, address_of
from mtosi_jms.jms import JmsMessage
from mtosi_jms.jms.display import shown_properties
from mtosi_jms.masking import without_login
from mtosi_jms.spool import SpoolFolder, StoredMessage

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
_SHOWS: Final = {"all": "All", "troubled": "With problems", "open": "Open", "complete": "Complete"}
_ORIGIN: Final = ("MTOSIX_originalDestination", "originalDestination", "_AMQ_ORIG_QUEUE")
"""Properties that hold a dead letter's original destination: the consumer runtime's, and brokers'."""
_REASON: Final = ("MTOSIX_parkedReason", "dlqDeliveryFailureCause")

Redrive = Callable[[str, str, str], None]
"""Moves one message, given by its queue and message id, to another queue. Raises an MtosiError if that fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetters:
    """A queue of dead letters.

    Attributes:
        waiting: returns the messages that wait there.
        redrive: moves one of them; None if that is not possible.
        changed: called after a message was moved.
    """

    name: str
    waiting: Callable[[], Sequence[JmsMessage]]
    redrive: Redrive | None = None
    changed: Callable[[], None] = lambda: None


class _Letter(NamedTuple):
    """A dead letter as it is shown."""

    key: str
    state: str
    at_ms: int | None
    origin: str
    reason: str
    what: str
    size: int


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
        self._spools = list(spools)
        self._dead = list(dead_letters)
        self._views = Views(traffic, self._page, landings=landings, spools=spools, topology=topology)
        self._allow_actions = allow_actions
        pages: dict[str, Callable[[Request], Response]] = {
            "/": self._exchanges,
            "/exchange": self._exchange,
            "/messages": self._messages,
            "/message/{number:int}": self._message,
            "/destinations": self._destinations,
            "/dead-letters": self._dead_letters,
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
            Route("/dead-letters", self._act, methods=["POST"]),
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
        if self._spools or self._dead:
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
        return self._page(request, "exchange", exchange=found, messages=self._traffic.messages(key, _ROWS))

    def _messages(self, request: Request) -> Response:
        text = request.query_params.get("q", "").strip()
        found = self._traffic.messages(text, _ROWS)
        exchange = self._traffic.exchange(text) if text else None
        return self._page(request, "messages", messages=found, text=text, exchange=exchange, most=_ROWS)

    def _message(self, request: Request) -> Response:
        found = self._traffic.message(request.path_params["number"])
        if found is None:
            return self._missing(request, "This message is not kept any more.")
        return self._page(request, "message", seen=found, shown=shown(found))

    def _destinations(self, request: Request) -> Response:
        return self._page(request, "destinations", places=self._traffic.places())

    def _dead_letters(self, request: Request) -> Response:
        spools = [(at, folder, *_look_into(folder)) for at, folder in enumerate(self._spools)]
        queues = [
            (at, dead.name, [_letter_of(one) for one in dead.waiting()], dead.redrive is not None)
            for at, dead in enumerate(self._dead)
        ]
        done = request.query_params.get("done", "")
        text, allowed = _DONE.get(done, ""), self._allow_actions
        return self._page(request, "dead_letters", spools=spools, queues=queues, allowed=allowed, done=text)

    async def _act(self, request: Request) -> Response:
        form = await self._guard.form(request, self.options.read_timeout)
        if form is None:
            return PlainTextResponse("This is not a form of the console's own: load the page again.\n", 403)
        if not self._allow_actions:
            return PlainTextResponse("Actions are off: start the console with --allow-actions.\n", 403)
        try:
            user = getattr(request.state, "user", "") or address_of(request)
            done = await run_in_threadpool(self._settle, form, user)
        except MtosiError as error:
            log.warning("%s of %s failed: %s", form.get("action"), form.get("key"), error)
            return self._missing(request, without_login(str(error)), 409)
        except (KeyError, ValueError, IndexError):
            return PlainTextResponse("This form does not say what to do.\n", 400)
        return RedirectResponse(f"/dead-letters?done={quote(done)}", 303)

    def _settle(self, form: Mapping[str, str], user: str) -> str:
        action, at, key = form["action"], int(form["at"]), form["key"]
        if at < 0:
            raise ValueError
        if action == "move":
            dead = self._dead[at]
            to = form["to"].strip()
            if dead.redrive is None:
                raise ValueError
            dead.redrive(dead.name, key, to)
            dead.changed()
            log.info("redriven from %s to %s by %s: %s", dead.name, to, user, key)
            return "moved"
        with SpoolFolder(self._spools[at]) as folder:
            {"redrive": folder.redrive, "withdraw": folder.withdraw}[action](key)
        log.info("%s in %s by %s: %s", action, self._spools[at], user, key)
        return action

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

    async def _log_in(self, request: Request) -> Response:
        form = await self._guard.form(request, self.options.read_timeout) or {}
        to = form.get("to", "/")
        try:
            given = self._guard.log_in(request, form["token"].strip(), to) if "token" in form else None
        except Throttled as error:
            return throttled(error)
        return given or self._ask(request, to, "This token is not known.", 403)

    async def _log_out(self, request: Request) -> Response:
        if await self._guard.form(request, self.options.read_timeout) is None:
            return PlainTextResponse("This is not a form of the console's own: load the page again.\n", 403)
        return self._guard.log_out(request)

    async def _healthy(self, request: Request) -> Response:
        return JSONResponse({"status": "up"})

    async def _nothing(self, request: Request, error: Exception) -> Response:
        return await run_in_threadpool(self._missing, request, "There is no such page.")

    def _missing(self, request: Request, text: str, status: int = 404) -> Response:
        return self._page(request, "missing", status, text=text)


_DONE: Final = {
    "redrive": "The message is redriven.",
    "withdraw": "The message is withdrawn.",
    "moved": "The message is moved.",
}


def _look_into(folder: Path) -> tuple[str, dict[str, int], list[_Letter], str]:
    """The kind of a spool folder, its number of messages by state, those that need attention, and any problem."""
    try:
        with SpoolFolder(folder) as opened:
            found = opened.messages()
            kind = opened.kind
    except MtosiError as error:
        return "", {}, [], str(error)
    states: dict[str, int] = {}
    for one in found:
        states[one.state] = states.get(one.state, 0) + 1
    return kind, states, [_stored(one) for one in found if one.state in ("dead", "doubt")][:_ROWS], ""


def _stored(one: StoredMessage) -> _Letter:
    return _Letter(one.key, one.state, one.since_ms, one.destination, one.reason, "", one.size)


def _letter_of(message: JmsMessage) -> _Letter:
    properties = shown_properties(message.properties)

    def first(names: Sequence[str]) -> str:
        return next((str(properties[name]) for name in names if properties.get(name)), "")

    origin = first(_ORIGIN).replace("queue://", "queue:")
    what = str(properties.get("MTOSI_msgName", ""))
    return _Letter(
        str(message.message_id), "dead", message.timestamp_ms, origin, first(_REASON), what, len(message.body)
    )
