"""Templates of the pages, the formats of numbers and times, and long lists in parts. All data in pages is escaped."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import urlencode

from mtosi_jms.errors import MissingExtraError
from mtosi_jms.report import number

try:
    import jinja2
    from starlette.requests import Request
    from starlette.responses import Response
except ImportError as error:
    raise MissingExtraError("jinja2", "console") from error

_HERE: Final = Path(__file__).parent
STATIC: Final = _HERE / "static"
ROWS: Final = 100
"""Most entries of a list on a page."""
_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB")
SPARK: Final = (120, 26)
"""Width and height of a small drawing."""


def clock(ms: int | None) -> str:
    """A moment in UTC: the time of day, with the date if that is not today's."""
    is_today = _moment(ms, "%Y-%m-%d") == dt.datetime.now(dt.UTC).strftime("%Y-%m-%d")
    return _moment(ms, "%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S")


def moment(ms: int | None) -> str:
    """A moment as date and time in UTC, for machines."""
    return _moment(ms, "%Y-%m-%dT%H:%M:%SZ")


def _moment(ms: int | None, form: str) -> str:
    try:
        return "" if ms is None else dt.datetime.fromtimestamp(ms / 1000, dt.UTC).strftime(form)
    except (OverflowError, ValueError, OSError):  # a peer may send any number
        return str(ms)


def octets(size: float) -> str:
    """A size for people: `3.4 MB`."""
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == _UNITS[0] or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} {_UNITS[-1]}"


def per_second(rate: float) -> str:
    return number(rate) if rate >= 10 or rate == 0 else f"{rate:.1f}"


def spark(counts: Sequence[int]) -> str:
    """The points of a line through counts, for an SVG of `SPARK`."""
    width, height = SPARK
    most = max(counts, default=0) or 1
    step = width / max(len(counts) - 1, 1)
    return " ".join(
        f"{at * step:.1f},{height - 2 - count / most * (height - 4):.1f}" for at, count in enumerate(counts)
    )


def counted(found: Mapping[str, int]) -> dict[str, str]:
    """The first hundred options of a choice with their numbers, and before them one that admits all."""
    first = islice(found.items(), 100)
    return {"": "any", **{value: f"{value} ({number(count)})" for value, count in first if value}}


_TEMPLATES: Final = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_HERE / "templates"),
    undefined=jinja2.StrictUndefined,
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters.update(
    number=number, counted=counted, clock=clock, moment=moment, octets=octets, rate=per_second, spark=spark
)


@cache
def static_url(name: str) -> str:
    """The URL of a static file; it changes with the file's content."""
    return f"/static/{name}?{hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]}"


_TEMPLATES.globals.update(static=static_url, spark_size=SPARK)


def render(name: str, **context: Any) -> bytes:
    """Renders a page to bytes."""
    return _TEMPLATES.get_template(f"{name}.html.jinja").render(**context).encode("utf-8", "backslashreplace")


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


def part(request: Request, found: Sequence[Any]) -> tuple[Paging, Sequence[Any]]:
    """The page of a list that a request asks for."""
    asked = request.query_params.get("page", "1")
    pages = max((len(found) + ROWS - 1) // ROWS, 1)
    page = min(max(int(asked), 1), pages) if asked.isdecimal() and len(asked) < 10 else 1
    shown = found[(page - 1) * ROWS : page * ROWS]

    def query(number: int) -> str:
        if not 1 <= number <= pages:
            return ""
        return "?" + urlencode([*((k, v) for k, v in request.query_params.items() if k != "page"), ("page", number)])

    first = (page - 1) * ROWS
    return Paging(len(found), first + bool(shown), first + len(shown), query(page - 1), query(page + 1)), shown
