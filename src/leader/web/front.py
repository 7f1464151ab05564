"""The front page, drawn once: Gradio copies its whole description and fills in a template for every visitor, 10 ms of the
server's time each, and always comes to the same page. Many visitors who come at once need not wait for that.
"""

from __future__ import annotations

from leader.web.gate import App, Message, Receive, Scope, Send

TELLING = (b"host", b"accept-encoding", b"x-forwarded-host", b"x-forwarded-proto", b"x-forwarded-prefix", b"x-direct-url")
"""Headers that the page depends on: the addresses in it, and how it is packed."""
MOST = 16
"""Pages that are kept: as many addresses as a server is reached by."""


class Front:
    """Wraps an app: answers GET / from memory where the same was asked before."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._pages: dict[tuple[object, ...], list[Message]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] != "/" or scope.get("query_string"):
            await self._app(scope, receive, send)
            return
        given = dict(scope["headers"])
        key = (scope.get("scheme"), scope.get("root_path"), *(given.get(name) for name in TELLING))
        if key in self._pages:
            for message in self._pages[key]:
                await send(dict(message))
            return
        answer: list[Message] = []

        async def note(message: Message) -> None:
            answer.append(dict(message))
            await send(message)

        await self._app(scope, receive, note)
        if answer and answer[0].get("status") == 200 and len(self._pages) < MOST:
            self._pages[key] = answer
