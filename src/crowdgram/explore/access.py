"""Who may talk to the page: the browser that was given its address, on this machine, and no other site in it.

- The server listens on the loopback address, and answers to that name only: a site whose name was made to point here
  (DNS rebinding) sends its own name in Host.
- The address holds a token that works once. It is exchanged for a cookie that scripts cannot read and that no other
  site can send (SameSite=Strict), and for a key.
- A browser sends a cookie to every port of an address, so another server on this machine may come to see it. The key
  is for that: it is in the answer to the token alone, and the page's script keeps it where browsers tell ports apart.
- What acts, or tells anything, is a POST of JSON, with the page's own Origin and the key. A release is at an address
  that cannot be guessed.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, Response

__all__ = ["HOST", "KEY", "MOST_BYTES", "Access", "Guard", "unguessable"]

HOST = "127.0.0.1"
MOST_BYTES = 32 * 2**20
"""Of what is sent to the page at once: a pasted list of a million items fits."""

KEY = "X-Crowdgram-Key"
"""The header of the key. No form can send it, and no other site may."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
}
"""On every answer. A report has a policy of its own."""


def unguessable() -> str:
    """A name for an address."""
    return secrets.token_urlsafe(32)


class Access:
    """The token of the address, which opens the page once; the key and the secret of the cookie that it is exchanged
    for.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.token = unguessable()
        self.key = unguessable()
        self.cookie = f"crowdgram-{port}"  # cookies do not tell ports apart
        self._session = unguessable()
        self._unused = True
        self._lock = threading.Lock()

    @property
    def host(self) -> str:
        return HOST if self.port == 80 else f"{HOST}:{self.port}"  # browsers leave the usual port out

    @property
    def origin(self) -> str:
        return f"http://{self.host}"

    @property
    def address(self) -> str:
        """What the user opens, once."""
        return f"{self.origin}/?token={self.token}"

    def opens(self, token: str) -> bool:
        """Whether this is the token, for the first time."""
        with self._lock:
            right = hmac.compare_digest(token.encode(), self.token.encode()) and self._unused
            self._unused = self._unused and not right
            return right

    def knows(self, cookies: str) -> bool:
        given = cookie_parser(cookies).get(self.cookie, "")
        return hmac.compare_digest(given.encode(), self._session.encode())

    def fits(self, key: str) -> bool:
        return hmac.compare_digest(key.encode(), self.key.encode())

    @property
    def set_cookie(self) -> str:
        return f"{self.cookie}={self._session}; HttpOnly; SameSite=Strict; Path=/"


class Guard:
    """Let through what `Access` allows. All else gets one sentence, and reaches no other code."""

    def __init__(self, app: Application, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no websockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        admitted: list[str] = []

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                for cookie in admitted:
                    headers.append("Set-Cookie", cookie)
            await send(message)

        refused = self._refusal(scope, Headers(scope=scope), admitted)
        await (refused or self._app)(scope, receive, guarded)

    def _refusal(self, scope: Scope, headers: Headers, admitted: list[str]) -> Response | None:
        access, method = self._access, scope["method"]
        if headers.getlist("host") != [access.host]:
            return _refuse(HTTPStatus.MISDIRECTED_REQUEST, f"This page is at {access.origin} only.")
        if method not in ("GET", "POST"):
            return _refuse(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET and POST are served.")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and (
            method != "GET" or scope["path"] != "/"
        ):
            return _refuse(HTTPStatus.FORBIDDEN, "Another site may not ask for this.")
        origins = headers.getlist("origin")
        if origins != [access.origin] and (origins or method == "POST"):
            return _refuse(HTTPStatus.FORBIDDEN, "Another site may not ask for this.")
        if method == "POST":
            if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
                return _refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "JSON is needed.")
            size = headers.get("content-length", "")
            plain = size.isascii() and size.isdigit() and len(size) <= len(str(MOST_BYTES))
            if not plain or int(size) > MOST_BYTES or "transfer-encoding" in headers:  # which would overrule the length
                return _refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "That is too long. Give a file instead of a list.")
        if access.knows(headers.get("cookie", "")):
            if method == "POST" and not access.fits(headers.get(KEY, "")):
                return _refuse(
                    HTTPStatus.FORBIDDEN,
                    "This browser has lost the key of the page. Start crowdgram explore again, and open the address "
                    "that it prints.",
                )
            return None
        tokens = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])
        if method == "GET" and scope["path"] == "/" and len(tokens) == 1 and access.opens(tokens[0]):
            admitted.append(access.set_cookie)
            scope["crowdgram.key"] = access.key
            return None
        return _refuse(
            HTTPStatus.FORBIDDEN,
            "Open the address that crowdgram explore printed. It works once, in one browser: to open the page again, "
            "start the command again.",
        )


def _refuse(status: HTTPStatus, sentence: str) -> Response:
    return PlainTextResponse(sentence + "\n", status_code=status)
