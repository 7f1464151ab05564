"""The server: the page, our routes and the gate as one ASGI app, on 127.0.0.1 unless told otherwise."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any

from leader.errors import LeaderError
from leader.web.limits import Limits
from leader.web.reach import Doorkeeper, Reach

MISSING = "The page needs the extra 'web'; install it with: pip install 'leader-ir[web]' (in a checkout: pip install '.[web]')."
SWITCH = 0.001
"""Seconds after which a job's thread lets the page's have its turn (Python's own: 0.005, and an answer takes many turns)."""
SWEEP = 60.0
"""Seconds between two looks for what is too old."""


def quiet_environment() -> None:
    """Before Gradio is imported: no analytics, no look for newer versions, no hub."""
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    os.environ["GRADIO_MCP_SERVER"] = "False"
    os.environ["GRADIO_SSR_MODE"] = "False"


def check_extra() -> None:
    """Refuses where the packages of the page are not installed, without the seconds that importing them takes."""
    if any(find_spec(name) is None for name in ("gradio", "fastapi", "uvicorn")):
        raise LeaderError(MISSING)


def application(limits: Limits, auth: tuple[str, str] | None = None, reach: Reach | None = None) -> Any:
    """The ASGI app of one site, which it makes at its start and removes at its end; `reach`: on this machine alone."""
    quiet_environment()
    check_extra()
    import anyio
    import gradio as gr
    from fastapi import FastAPI

    from leader.web.front import Front
    from leader.web.gate import Gate
    from leader.web.page import build, static, theme
    from leader.web.routes import routes
    from leader.web.site import Site

    site = Site(limits)
    os.environ["GRADIO_TEMP_DIR"] = str(site.store.root / "gradio")  # removed with everything else

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

    outer = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None, routes=routes(site))
    page = build(site).queue(max_size=None, api_open=False)
    app = gr.mount_gradio_app(
        outer,
        page,
        "/",
        footer_links=[],
        run_history=False,
        show_error=False,
        ssr_mode=False,
        pwa=False,
        mcp_server=False,
        enable_monitoring=False,
        max_file_size=limits.upload_bytes,
        theme=theme(),
        css=static("page.css"),
        head=f"<script>{static('page.js')}</script>",
    )
    return Doorkeeper(Gate(Front(app), auth), reach or Reach())


async def _sweep_forever(site: Any) -> None:
    import anyio

    while True:
        await anyio.sleep(SWEEP)
        await anyio.to_thread.run_sync(site.store.sweep)


def serve(reach: Reach, port: int, limits: Limits, auth: tuple[str, str] | None = None) -> None:
    """Serves until it is interrupted."""
    app = application(limits, auth, reach)
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
