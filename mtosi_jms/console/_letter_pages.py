"""The pages of dead letters: what there is and why, the letters of one place, a confirmation, and what was done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

from mtosi_jms.console._facts import narrowed
from mtosi_jms.console._letters import (
    DeadLetters,
    Jobs,
    Letters,
    Plan,
    SpooledLetters,
    Wanted,
    moment_of,
    numbers,
)
from mtosi_jms.console._message import message_answer, seen_of
from mtosi_jms.console._pages import Render, part
from mtosi_jms.errors import ConfigError, MissingExtraError, MtosiError
from mtosi_jms.gateway import address_of
from mtosi_jms.masking import without_login

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
        spools: Sequence[SpooledLetters],
        allow_actions: bool,
    ) -> None:
        self._page = page
        self._form = form
        groups: Mapping[str, Sequence[Letters]] = {"queue": queues, "spool": spools}
        self._places = {f"{sort}/{at}": place for sort, some in groups.items() for at, place in enumerate(some)}
        self._allowed = allow_actions
        self._jobs = Jobs()
        one = "/dead-letters/{sort}/{at}"
        self.routes = [
            Route("/dead-letters", self._all, methods=["GET"]),
            Route("/dead-letters", self._act, methods=["POST"]),
            Route("/dead-letters/confirm", self._confirm, methods=["GET"]),
            Route(one, self._list, methods=["GET"]),
            Route(one, self._act, methods=["POST"]),
            Route(f"{one}/message", self._message, methods=["GET"]),
        ]

    def __bool__(self) -> bool:
        return bool(self._places)

    def _all(self, request: Request) -> Response:
        return self._page(
            request,
            "dead_letters",
            places=self._places,
            most=_REASONS,
            allowed=self._allowed,
            jobs=self._jobs.latest(),
        )

    def _list(self, request: Request) -> Response:
        at, place = self._asked(request)
        if place is None:
            return self._gone(request)
        given, wanted, problem = wanted_of(request.query_params)
        found = place.found
        paging, shown = part(request, found.wanted(wanted))
        return self._page(
            request,
            "letters",
            at=at,
            place=place,
            found=found,
            given=given,
            problem=problem,
            letters=shown,
            paging=paging,
            actions=place.actions if self._allowed else (),
            allowed=self._allowed,
            is_filtered=any(given.values()),
        )

    def _asked(self, request: Request) -> tuple[str, Letters | None]:
        at = "{sort}/{at}".format(**request.path_params)
        return at, self._places.get(at)

    def _gone(self, request: Request, text: str = "There are no such dead letters.", status: int = 404) -> Response:
        return self._page(request, "missing", status, text=text)

    def _message(self, request: Request) -> Response:
        at, place = self._asked(request)
        key = request.query_params.get("key", "")
        letter = None if place is None else next((one for one in place.found.letters if one.key == key), None)
        if place is None or letter is None:
            return self._gone(request, "This message is not listed any more.")
        try:
            message = place.read(letter)
        except MtosiError as error:
            return self._gone(request, without_login(str(error)), 409)
        actions = place.actions if self._allowed else ()
        seen = seen_of(message, place.name, letter.at_ms or 0)
        return message_answer(self._page, request, seen, letter=letter, at=at, place=place, actions=actions)

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
        at, place = self._asked(request)
        if place is None:
            return self._gone(request)
        action = next((one for one in place.actions if one == form["action"][0]), None)
        if action is None:
            raise ValueError(form["action"][0])
        keys, wanted = frozenset(form.get("key", ())), Wanted()
        letters = narrowed(place.found.letters, ("all" not in form, lambda one: one.key in keys))
        if "all" in form:
            _, wanted, _ = wanted_of({name: values[0] for name, values in form.items()})
            letters = place.found.wanted(wanted)
        if not letters:
            text = "No letter is chosen: mark some, or all that match."
            return self._page(request, "missing", 409, text=text, back=f"/dead-letters/{at}")
        ticket = self._jobs.plan(Plan(action, place, letters, wanted))
        return RedirectResponse(f"/dead-letters/confirm?ticket={ticket}", 303)

    def _confirm(self, request: Request) -> Response:
        ticket = request.query_params.get("ticket", "")
        plan = self._jobs.planned(ticket)
        if plan is None:
            return self._gone(request, "This was confirmed already, or is old: choose the letters again.")
        origins = numbers(plan.letters, "origin")
        return self._page(
            request,
            "confirm",
            plan=plan,
            ticket=ticket,
            origins=origins,
            reasons=numbers(plan.letters, "reason"),
            most=_REASONS,
            shown=plan.letters[:_SHOWN],
            suggested=next(iter(origins), "") if len(origins) == 1 else "",
        )

    def _do(self, form: Form, user: str) -> Response:
        match form["do"][0]:
            case "confirm":
                to = form.get("to", [""])[0].strip()
                plan = self._jobs.planned(form["ticket"][0])
                if plan is not None and plan.action == "move" and to in ("", plan.place.name):
                    told = f"{to}: they are there already" if to else "name the queue to move to, as queue:NAME"
                    raise ConfigError(told)
                job = self._jobs.confirm(form["ticket"][0], user, to)
            case "undo":
                job = self._jobs.undo(int(form["job"][0]), user)
            case "stop":
                self._jobs.stop(int(form["job"][0]))
                return RedirectResponse("/dead-letters", 303)
            case other:
                raise ValueError(other)
        job.ended.wait(_PATIENCE)
        return RedirectResponse(f"/dead-letters#job{job.number}", 303)


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
