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

import hmac
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qs

from mtosi_jms.errors import MissingExtraError
from mtosi_jms.telemetry import is_own_host

try:
    from starlette.datastructures import MutableHeaders
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, RedirectResponse, Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as error:
    raise MissingExtraError("starlette", "console") from error

COOKIE: Final = "mtosi-console"
LOGIN: Final = "/login"
LARGEST: Final = 64 * 1024
"""Most octets of a form."""
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
    """Passes on allowed requests, and adds security headers to every answer.

    Args:
        app: the application to guard.
        tokens: tokens, one of which a client must send; empty: no client needs one.
        hosts: allowed host names besides addresses and `localhost`.
    """

    def __init__(self, app: ASGIApp, *, tokens: frozenset[str], hosts: frozenset[str]) -> None:
        self._app = app
        self._tokens = tokens
        self._hosts = frozenset(name.lower() for name in hosts)
        self._key = secrets.token_bytes(32)

    @property
    def requires_token(self) -> bool:
        """Whether a token is required."""
        return bool(self._tokens)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What an ASGI server calls."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
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
        path = request.url.path
        if not self._tokens or path in _OPEN or path.startswith("/static/") or self._is_known(request):
            return None
        if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
            return RedirectResponse(LOGIN, 303)
        return PlainTextResponse("A token is needed.\n", 401, {"WWW-Authenticate": 'Bearer realm="MTOSI console"'})

    def _foreign(self, request: Request) -> str:
        """Why a form counts as another site's; empty if it is the console's own."""
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
            return "The form comes from another site.\n"
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "The form comes from another site.\n"
        return ""

    def _is_known(self, request: Request) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._token_of(given.strip()) is not None
        cookie = _cookie(request)
        return bool(cookie) and any(hmac.compare_digest(cookie, self._session(token)) for token in self._tokens)

    def _token_of(self, given: str) -> str | None:
        """The matching token, or None. All are compared, so that the time taken reveals nothing."""
        found = None
        for token in self._tokens:
            if hmac.compare_digest(given.encode(), token.encode()):
                found = token
        return found

    def _session(self, token: str) -> str:
        return hmac.new(self._key, b"session:" + token.encode(), "sha256").hexdigest()

    def log_in(self, request: Request, given: str) -> Response | None:
        """The answer to a valid token, with the cookie; None if the token is wrong."""
        token = self._token_of(given)
        if token is None:
            return None
        answer = RedirectResponse("/", 303)
        is_secure = request.url.scheme == "https"
        answer.set_cookie(COOKIE, self._session(token), httponly=True, samesite="strict", secure=is_secure)
        return answer

    def form_key(self, request: Request) -> str:
        """The secret in forms; it differs for each token."""
        return hmac.new(self._key, b"form:" + _cookie(request).encode(), "sha256").hexdigest()

    async def form(self, request: Request) -> Mapping[str, str] | None:
        """The fields of a form from the console's pages; None if it is from elsewhere or too large."""
        data = b""
        async for part in request.stream():
            data += part
            if len(data) > LARGEST:
                return None
        try:
            fields = {name: values[0] for name, values in parse_qs(data.decode("ascii"), max_num_fields=20).items()}
        except ValueError:
            return None
        given = fields.get("form_key", "")
        return fields if hmac.compare_digest(given.encode(), self.form_key(request).encode()) else None


def _cookie(request: Request) -> str:
    jar = SimpleCookie()
    try:
        jar.load(request.headers.get("cookie", ""))
    except CookieError:
        return ""
    found = jar.get(COOKIE)
    value = "" if found is None else found.value
    return value if value.isascii() else ""
