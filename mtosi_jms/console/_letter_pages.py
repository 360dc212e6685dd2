"""The pages of dead letters: what there is and why, the letters of one place, a confirmation, and what was done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, cast

from mtosi_jms.console._facts import narrowed
from mtosi_jms.console._jobs import Act, Jobs, Plan
from mtosi_jms.console._landing import Cached
from mtosi_jms.console._letters import (
    DeadLetters,
    Found,
    Letter,
    Spooled,
    Wanted,
    moment_of,
    numbers,
    selectors,
)
from mtosi_jms.console._message import message_answer, seen_of
from mtosi_jms.console._views import Render, part
from mtosi_jms.errors import ConfigError, MissingExtraError, MtosiError
from mtosi_jms.gateway import address_of
from mtosi_jms.jms import JmsMessage
from mtosi_jms.masking import without_login
from mtosi_jms.spool import SpoolFolder

try:
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, RedirectResponse, Response
    from starlette.routing import Route
except ImportError as error:
    raise MissingExtraError("starlette", "console") from error

Form = Mapping[str, Sequence[str]]
_FIELDS: Final = ("reason", "kind", "operation", "since", "until", "text")
_REASONS: Final = 20
_SHOWN: Final = 10
"""Letters that a confirmation lists."""
_PATIENCE: Final = 1.0
"""Seconds to wait for a job, so that a short one is done on the next page."""
_ACTIONS: Final[Mapping[str, Sequence[Act]]] = {
    "queue": ("redrive", "move", "withdraw"),
    "spool": ("redrive", "withdraw"),
}


class _Place(NamedTuple):
    """Where letters are. `sort`: queue or spool; `kind`: queue, outbox or inbox; `states`: number of messages by state,
    of an outbox or inbox."""

    sort: str
    at: int
    name: str
    kind: str
    found: Found
    states: Mapping[str, int]

    @property
    def url(self) -> str:
        return f"/dead-letters/{self.sort}/{self.at}"


class LetterPages:
    """Pages about dead letters.

    Args:
        page: renders a page.
        form: reads a form of the console's own pages; None: it is from elsewhere.
    """

    def __init__(
        self,
        page: Render,
        form: Callable[[Request], Awaitable[Form | None]],
        *,
        queues: Sequence[DeadLetters],
        spools: Sequence[Cached[Spooled]],
        allow_actions: bool,
    ) -> None:
        self._page = page
        self._form = form
        self._queues = list(queues)
        self._spools = spools
        self._allowed = allow_actions
        self._jobs = Jobs()
        one = "/dead-letters/{sort}/{at:int}"
        self.routes = [
            Route("/dead-letters", self._all, methods=["GET"]),
            Route("/dead-letters", self._act, methods=["POST"]),
            Route("/dead-letters/confirm", self._confirm, methods=["GET"]),
            Route(one, self._list, methods=["GET"]),
            Route(one, self._act, methods=["POST"]),
            Route(f"{one}/message", self._message, methods=["GET"]),
        ]

    def __bool__(self) -> bool:
        return bool(self._queues or self._spools)

    def _places(self) -> list[_Place]:
        queues = [_Place("queue", at, one.name, "queue", one.box.found(), {}) for at, one in enumerate(self._queues)]
        spools = [(at, str(one.folder), one.get()) for at, one in enumerate(self._spools)]
        return queues + [_Place("spool", at, name, one.kind, one.found, one.states) for at, name, one in spools]

    def _place(self, sort: str, at: int) -> _Place | None:
        return next((one for one in self._places() if (one.sort, one.at) == (sort, at)), None)

    def _all(self, request: Request) -> Response:
        return self._page(
            request,
            "dead_letters",
            places=self._places(),
            most=_REASONS,
            allowed=self._allowed,
            jobs=self._jobs.latest(),
        )

    def _list(self, request: Request) -> Response:
        place = self._asked(request)
        if place is None:
            return self._gone(request)
        given, wanted, problem = wanted_of(request.query_params)
        found = place.found.wanted(wanted)
        paging, shown = part(request, found)
        return self._page(
            request,
            "letters",
            place=place,
            given=given,
            problem=problem,
            letters=shown,
            paging=paging,
            actions=_ACTIONS[place.sort] if self._can(place) else (),
            allowed=self._allowed,
            is_filtered=any(given.values()),
        )

    def _can(self, place: _Place) -> bool:
        return self._allowed and (place.sort == "spool" or self._queues[place.at].connect is not None)

    def _asked(self, request: Request) -> _Place | None:
        return self._place(request.path_params["sort"], request.path_params["at"])

    def _gone(self, request: Request, text: str = "There are no such dead letters.", status: int = 404) -> Response:
        return self._page(request, "missing", status, text=text)

    def _message(self, request: Request) -> Response:
        place = self._asked(request)
        key = request.query_params.get("key", "")
        letter = None if place is None else next((one for one in place.found.letters if one.key == key), None)
        if place is None or letter is None:
            return self._gone(request, "This message is not listed any more.")
        try:
            message = self._read(place, letter)
        except MtosiError as error:
            return self._gone(request, without_login(str(error)), 409)
        seen = seen_of(message, place.name, letter.at_ms or 0)
        actions = _ACTIONS[place.sort] if self._can(place) else ()
        return message_answer(
            self._page, request, seen, letter=letter, place=place, actions=actions, key=("key", letter.key)
        )

    def _read(self, place: _Place, letter: Letter) -> JmsMessage:
        """The message of a letter. Raises MtosiError: it cannot be read, or is not there any more."""
        if place.sort == "spool":
            with SpoolFolder(self._spools[place.at].folder) as folder:
                return folder.message(letter.key)
        queue = self._queues[place.at]
        if queue.connect is None:
            raise ConfigError(f"{place.name}: the console has no connection for this")
        ((selector, _),) = selectors([letter], Wanted())
        with queue.connect() as connection, connection.session() as session:
            for message in session.headers(connection.names.lookup(queue.name), selector):
                if str(message.message_id) == letter.key:
                    return message
        raise ConfigError(f"{letter.key}: it is not at {queue.name} any more, or a consumer has it")

    async def _act(self, request: Request) -> Response:
        form = await self._form(request)
        if form is None:
            return PlainTextResponse("This is not a form of the console's own: load the page again.\n", 403)
        if not self._allowed:
            return PlainTextResponse("Actions are off: start the console with --allow-actions.\n", 403)
        user = getattr(request.state, "user", "") or address_of(request)
        try:
            work: Callable[[], Response] = partial(self._do, form, user)
            if "sort" in request.path_params:
                work = partial(self._choose, request, form)
            return await run_in_threadpool(work)
        except MtosiError as error:
            return await run_in_threadpool(self._gone, request, without_login(str(error)), 409)
        except (KeyError, ValueError, IndexError):
            return PlainTextResponse("This form does not say what to do.\n", 400)

    def _choose(self, request: Request, form: Form) -> Response:
        """Plans what a visitor has chosen; the next page asks for a confirmation."""
        place = self._asked(request)
        if place is None:
            return self._gone(request)
        action = form["action"][0]
        if action not in _ACTIONS[place.sort] or not self._can(place):
            raise ValueError(action)
        keys, wanted = frozenset(form.get("key", ())), Wanted()
        letters = narrowed(place.found.letters, ("all" not in form, lambda one: one.key in keys))
        if "all" in form:
            _, wanted, _ = wanted_of({name: values[0] for name, values in form.items()})
            letters = place.found.wanted(wanted)
        if not letters:
            text = "No letter is chosen: mark some, or all that match."
            return self._page(request, "missing", 409, text=text, back=place.url)
        where = self._queues[place.at] if place.sort == "queue" else self._spools[place.at].folder
        ticket = self._jobs.plan(Plan(cast(Act, action), where, letters, wanted))
        return RedirectResponse(f"/dead-letters/confirm?ticket={ticket}", 303)

    def _confirm(self, request: Request) -> Response:
        ticket = request.query_params.get("ticket", "")
        plan = self._jobs.planned(ticket)
        if plan is None:
            return self._gone(request, "This was confirmed already, or is old: choose the letters again.")
        origins = numbers(plan.letters, "origin")
        suggested = next(iter(origins), "") if len(origins) == 1 else ""
        return self._page(
            request,
            "confirm",
            plan=plan,
            ticket=ticket,
            is_queue=isinstance(plan.place, DeadLetters),
            place=plan.place.name if isinstance(plan.place, DeadLetters) else str(plan.place),
            origins=origins,
            reasons=numbers(plan.letters, "reason"),
            most=_REASONS,
            shown=plan.letters[:_SHOWN],
            suggested=suggested,
        )

    def _do(self, form: Form, user: str) -> Response:
        match form["do"][0]:
            case "confirm":
                to = form.get("to", [""])[0].strip()
                plan = self._jobs.planned(form["ticket"][0])
                if plan is not None and plan.action == "move":
                    _check(plan, to)
                job = self._jobs.confirm(form["ticket"][0], user, to)
            case "undo":
                job = self._jobs.undo(int(form["job"][0]), user)
            case "stop":
                self._jobs.stop(int(form["job"][0]))
                return RedirectResponse("/dead-letters", 303)
            case other:
                raise ValueError(other)
        job.ended.wait(_PATIENCE)
        for spool in self._spools:
            spool.forget()
        return RedirectResponse(f"/dead-letters#job{job.number}", 303)


def _check(plan: Plan, to: str) -> None:
    """Raises ConfigError: `to` is no queue to move to."""
    if not to or not isinstance(plan.place, DeadLetters):
        raise ConfigError("name the queue to move to, as queue:NAME")
    if to == plan.place.name:
        raise ConfigError(f"{to}: they are there already")


def wanted_of(given: Mapping[str, str], *more: str) -> tuple[dict[str, str], Wanted, str]:
    """The fields of a filter as given, those of `more` too, the filter, and what is wrong with it."""
    fields = {name: given.get(name, "").strip() for name in (*_FIELDS, *more)}
    problem = ""
    moments: dict[str, int | None] = {}
    for name in ("since", "until"):
        try:
            moments[f"{name}_ms"] = moment_of(fields[name], is_end=name == "until")
        except (ValueError, OverflowError):
            problem = f"“{fields[name]}” is no time: give 2026-01-31T12:00, in UTC."
    wanted = Wanted(fields["reason"], fields["kind"], fields["operation"], text=fields["text"], **moments)
    return fields, wanted, problem
