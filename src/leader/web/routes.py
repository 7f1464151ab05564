"""Routes of our own beside Gradio's: pictures in, files out, and whether the server is well."""

from __future__ import annotations

import contextlib
from pathlib import Path

import anyio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from leader.errors import LeaderError
from leader.web import work
from leader.web.gate import HEALTH, client_of
from leader.web.samples import SAMPLES
from leader.web.site import VIEW, Site
from leader.web.store import GONE

SERVED = (VIEW, work.RESTORED, work.GIVEN, work.MAP, work.COVER, work.PATH, work.RUN)
NO_COOKIE = "This browser keeps no cookie of the page; allow cookies and load the page again."


def routes(site: Site) -> list[Route]:
    """Handing in, samples, files and health."""
    one_by_one = anyio.CapacityLimiter(site.limits.jobs)  # pictures are decoded as many at once as jobs run

    async def upload(request: Request) -> Response:
        client = client_of(request.cookies)
        if client is None:
            return _refuse(NO_COOKIE, 403)
        spool = site.store.root / f"incoming-{id(request)}"
        try:
            await _spool(request, spool, site.limits.upload_bytes)
            entry = await anyio.to_thread.run_sync(lambda: site.receive(client, spool.rename), limiter=one_by_one)
        except LeaderError as error:
            return _refuse(str(error))
        except ClientDisconnect:
            return Response(status_code=400)
        finally:
            with contextlib.suppress(FileNotFoundError):
                spool.unlink()
        return JSONResponse({"token": entry.token})

    async def sample(request: Request) -> Response:
        client = client_of(request.cookies)
        if client is None:
            return _refuse(NO_COOKIE, 403)
        name = request.path_params["name"]
        try:
            entry = await anyio.to_thread.run_sync(lambda: site.sample(client, name), limiter=one_by_one)
        except LeaderError as error:
            return _refuse(str(error), 404)
        return JSONResponse({"token": entry.token})

    async def sample_picture(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in SAMPLES:
            return _refuse("There is no such sample.", 404)
        file = await anyio.to_thread.run_sync(lambda: site.sample_file(name), limiter=one_by_one)
        return FileResponse(file, media_type="image/png", headers={"cache-control": "max-age=3600"})

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        try:
            entry = site.store.find(request.path_params["token"], client_of(request.cookies) or "")
        except LeaderError as error:
            return _refuse(str(error), 404)
        path = entry.folder / name if name in SERVED else None
        if path is None or not path.is_file():
            return _refuse(GONE, 404)
        saved = name if "save" in request.query_params else None
        return FileResponse(path, filename=saved, headers={"cache-control": "private, no-store"})

    async def health(request: Request) -> Response:
        about = {"running": site.desk.count("running"), "waiting": site.desk.count("waiting"), "kept": len(site.store)}
        return JSONResponse({"status": "ok", **about})

    return [
        Route("/leader/upload", upload, methods=["POST"]),
        Route("/leader/sample/{name}", sample, methods=["POST"]),
        Route("/leader/samples/{name}.png", sample_picture),
        Route("/leader/files/{token}/{name}", file),
        Route(HEALTH, health),
    ]


async def _spool(request: Request, path: Path, most: int) -> None:
    """Writes the body of a request to a file, as far as it is allowed to go."""
    size = 0
    too_large = LeaderError(f"The file has more than the {most / 2**20:.3g} MB that are taken here; make it smaller first.")
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > most:
        raise too_large
    async with await anyio.open_file(path, "wb") as target:
        async for block in request.stream():
            size += len(block)
            if size > most:
                raise too_large
            await target.write(block)


def _refuse(text: str, status: int = 400) -> Response:
    return JSONResponse({"error": text}, status)
