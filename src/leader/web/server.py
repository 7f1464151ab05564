"""The server: the page, its routes and the gate as one ASGI app, on 127.0.0.1 by default."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any

from leader.errors import LeaderError
from leader.web.limits import Limits
from leader.web.reach import Reach

MISSING = "The page needs the extra 'web'; install it with: pip install 'leader-ir[web]' (in a checkout: pip install '.[web]')."
SWITCH = 0.001
"""Seconds after which a job's thread yields to the page's threads (Python's default: 0.005, and an answer takes many turns)."""
SWEEP = 60.0
"""Seconds between two removals of expired entries."""


def check_extra() -> None:
    """Fails if the packages of the page are not installed, without the time it takes to import them."""
    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise LeaderError(MISSING)


def make_app(limits: Limits, auth: tuple[str, str] | None = None, reach: Reach | None = None) -> Any:
    """The ASGI app of one site, created at startup and removed at shutdown; `reach`: only this machine by default."""
    check_extra()
    import anyio
    from starlette.applications import Starlette

    from leader.web.gate import Gate
    from leader.web.routes import list_routes
    from leader.web.site import Site

    site = Site(limits)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        site.learn_pace()
        async with anyio.create_task_group() as group:
            group.start_soon(_sweep_forever, site)
            try:
                yield
            finally:
                group.cancel_scope.cancel()
        site.close()

    return Gate(Starlette(lifespan=lifespan, routes=list_routes(site)), auth, reach)


async def _sweep_forever(site: Any) -> None:
    import anyio

    while True:
        await anyio.sleep(SWEEP)
        await anyio.to_thread.run_sync(site.store.sweep)


def serve(reach: Reach, port: int, limits: Limits, auth: tuple[str, str] | None = None) -> None:
    """Serves until it is interrupted."""
    app = make_app(limits, auth, reach)
    import torch
    import uvicorn

    torch.set_num_threads(limits.threads)
    sys.setswitchinterval(SWITCH)
    uvicorn.run(
        app,
        host=reach.host,
        port=port,
        log_level="warning",
        timeout_graceful_shutdown=5,
        server_header=False,
        proxy_headers=reach.behind_proxy,
    )
