"""Controls access to the console.

- The Host must be an address, `localhost`, or an allowed name. Another site's name that resolves to this address (DNS
  rebinding) is refused.
- If there are tokens, a browser sends one once and gets a cookie, which scripts cannot read and other sites cannot
  send; programs send one as `Authorization: Bearer`.
- Forms are accepted only from the console's own pages: the origin must be its own, and the form must hold a secret that
  only its pages have.
- Pages run only the console's own scripts, load nothing from elsewhere, and cannot be framed.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qs, urlencode

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import MissingExtraError
from mtosi_jms.gateway import Access, Throttled, address_of
from mtosi_jms.telemetry import is_own_host

try:
    from starlette.datastructures import MutableHeaders
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import PlainTextResponse, RedirectResponse, Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as error:
    raise MissingExtraError("starlette", "console") from error

COOKIE: Final = "mtosi-console"
LOGIN: Final = "/login"
LARGEST: Final = BOUNDS.form_bytes
"""Most octets of a form."""
_FIELDS: Final = 200
"""Most fields of a form: a page of letters has a hundred."""
_LOCAL: Final = re.compile(r"/(?![/\\])[\x20-\x7e]*")
"""A page of the console's own: `//host` and `/\\host` would lead elsewhere."""
_OPEN: Final = (LOGIN, "/healthz")
_SELF: Final = "'self'"
_POLICY: Final = (
    f"default-src 'none'; script-src {_SELF}; style-src {_SELF}; img-src {_SELF} data:; connect-src {_SELF}; "
    f"form-action {_SELF}; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer a browser would also hide the origin of the console's forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Passes on allowed requests, and adds security headers to every answer."""

    def __init__(self, app: ASGIApp, *, access: Access, hosts: frozenset[str]) -> None:
        self._app = app
        self._access = access
        self._hosts = frozenset(name.lower() for name in hosts)
        self._key = secrets.token_bytes(32)

    @property
    def requires_token(self) -> bool:
        """Whether a token is required."""
        return not self._access.is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if message["status"] == 200 and scope["path"].startswith("/static/"):
                    headers["Cache-Control"] = "max-age=31536000, immutable"  # their URLs change with their content
            await send(message)

        request = Request(scope)
        refusal = self._refusal(request)
        if refusal is None:
            scope.setdefault("state", {})["form_key"] = self.form_key(request)
        await (refusal or self._app)(scope, receive, protected)

    def _refusal(self, request: Request) -> Response | None:
        """The answer to a refused request; None if the request is allowed."""
        if not is_own_host(request.headers.get("host", ""), self._hosts):
            return PlainTextResponse("This name is not the console's: start it with --host-name NAME.\n", 421)
        if request.method not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("There is nothing but pages and forms here.\n", 405)
        if request.method == "POST" and (refused := self._foreign(request)):
            return PlainTextResponse(refused, 403)
        path = request.scope["path"]  # what is routed; that of `request.url` depends on the Host
        if self._access.is_open or path in _OPEN or path.startswith("/static/"):
            return None
        try:
            user = self._user(request)
        except Throttled as error:
            return throttled(error)
        if user is not None:
            request.state.user = user
            return None
        is_live = request.headers.get("x-console") == "live"  # from a page that is open; it logs in itself
        if request.method == "GET" and "text/html" in request.headers.get("accept", "") and not is_live:
            wanted = _local(request)
            return RedirectResponse(LOGIN if wanted == "/" else f"{LOGIN}?{urlencode({'to': wanted})}", 303)
        return PlainTextResponse("A token is needed.\n", 401, {"WWW-Authenticate": 'Bearer realm="MTOSI console"'})

    def _foreign(self, request: Request) -> str:
        """Why a form counts as another site's; empty if it is the console's own."""
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
            return "The form comes from another site.\n"
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "The form comes from another site.\n"
        return ""

    def _user(self, request: Request) -> str | None:
        """The name of who sends a request; None if nobody known does."""
        if authorization := request.headers.get("authorization", ""):
            return self._access.by_header(address_of(request), authorization)
        cookie = _cookie(request)
        found = [name for name in self._access.names if hmac.compare_digest(cookie, self._session(name))]
        return found[0] if found else None

    def _session(self, name: str) -> str:
        return hmac.new(self._key, b"session:" + name.encode(), "sha256").hexdigest()

    def log_in(self, request: Request, given: str, to: str) -> Response | None:
        """The answer to a valid token, with the cookie; None if the token is wrong. `to`: the page that was wanted, `/`
        if it is not one of the console's. Raises Throttled: too many tokens were wrong."""
        name = self._access.by_token(address_of(request), given)
        if name is None:
            return None
        answer = RedirectResponse(to if _LOCAL.fullmatch(to) else "/", 303)
        is_secure = request.url.scheme == "https"
        answer.set_cookie(
            _cookie_name(request), self._session(name), httponly=True, samesite="strict", secure=is_secure
        )
        return answer

    def log_out(self, request: Request) -> Response:
        """The answer that takes the cookie back."""
        answer = RedirectResponse(LOGIN, 303)
        answer.delete_cookie(_cookie_name(request), httponly=True, samesite="strict")
        return answer

    def form_key(self, request: Request) -> str:
        """The secret in forms; it differs for each token."""
        return hmac.new(self._key, b"form:" + _cookie(request).encode(), "sha256").hexdigest()

    async def form(self, request: Request, patience: float) -> Mapping[str, list[str]] | None:
        """The fields of a form from the console's pages; None if it is from elsewhere or too large. `patience`: seconds
        within which the form must arrive. Raises HTTPException: it did not come in time."""
        data = b""
        try:
            async with asyncio.timeout(patience):
                async for part in request.stream():
                    data += part
                    if len(data) > LARGEST:
                        return None
        except (TimeoutError, ClientDisconnect):
            raise HTTPException(408, "The form did not come in time.\n", {"Connection": "close"}) from None
        try:
            fields = parse_qs(data.decode("ascii"), max_num_fields=_FIELDS)
        except ValueError:
            return None
        given = fields.get("form_key", [""])[0]
        return fields if hmac.compare_digest(given.encode(), self.form_key(request).encode()) else None


def throttled(error: Throttled) -> Response:
    return PlainTextResponse(f"{error}.\n", 429, {"Retry-After": str(error.seconds)})


def _local(request: Request) -> str:
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def _cookie_name(request: Request) -> str:
    """One for each console: browsers share cookies between the ports of a host."""
    return f"{COOKIE}-{request.url.port or ''}"


def _cookie(request: Request) -> str:
    value = request.cookies.get(_cookie_name(request), "")
    return value if value.isascii() else ""
