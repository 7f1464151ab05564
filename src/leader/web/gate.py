"""The gate in front of every route: whose requests are answered, authentication, browser identity, what the page may load.

Plain ASGI, so streams pass through unchanged.
"""

import base64
import binascii
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from leader.web.reach import Reach, Scope, judge, strip_forwarded

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "leader_client"
CLIENT = re.compile(r"[0-9a-f]{32}")
HEALTH = "/health"
POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; connect-src 'self' blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""Scripts and styles come only from our own files; pictures held by the browser are `data:` and `blob:`."""
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


def client_of(cookies: Any) -> str | None:
    """The client that a cookie names, or None."""
    found = cookies.get(COOKIE) if cookies else None
    return found if isinstance(found, str) and CLIENT.fullmatch(found) else None


class Gate:
    """Wraps an app: answers only our own pages, asks for name and password if set, gives each browser a cookie."""

    def __init__(self, app: App, auth: tuple[str, str] | None = None, reach: Reach | None = None) -> None:
        self._app, self._reach = app, reach or Reach()
        self._wanted = None if auth is None else f"{auth[0]}:{auth[1]}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.requests import cookie_parser

        if scope["type"] == "websocket":  # not supported
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = strip_forwarded(scope, self._reach)
        if (refusal := judge(scope, self._reach)) is not None:
            await answer_text(send, *refusal)
            return
        path, headers = scope["path"], dict(scope["headers"])
        if path != HEALTH and not self._may_enter(headers.get(b"authorization", b"")):
            extra = (b"www-authenticate", b'Basic realm="leader", charset="UTF-8"')
            await answer_text(send, 401, "This page asks for a name and a password.", extra)
            return
        fresh = None
        if path == "/" and client_of(cookie_parser(headers.get(b"cookie", b"").decode("latin-1"))) is None:
            fresh = secrets.token_hex(16)

        async def mark_browser(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS]
                if fresh is not None:
                    cookie = f"{COOKIE}={fresh}; Path=/; HttpOnly; SameSite=Strict"
                    message["headers"].append((b"set-cookie", cookie.encode()))
            await send(message)

        await self._app(scope, receive, mark_browser)

    def _may_enter(self, header: bytes) -> bool:
        if self._wanted is None:
            return True
        kind, _, rest = header.partition(b" ")
        try:
            given = base64.b64decode(rest, validate=True)
        except binascii.Error:
            return False
        return kind.lower() == b"basic" and hmac.compare_digest(given, self._wanted)


async def answer_text(send: Send, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
    """Answers a request with a one-sentence message."""
    body = text.encode()
    length = (b"content-length", str(len(body)).encode())
    kind = (b"content-type", b"text/plain; charset=utf-8")
    await send({"type": "http.response.start", "status": status, "headers": [kind, length, *HEADERS, *headers]})
    await send({"type": "http.response.body", "body": body})
