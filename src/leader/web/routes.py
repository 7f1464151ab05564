"""Routes: the page and its files, uploads, jobs as a stream of lines, results, and a health check."""

import asyncio
import base64
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import wraps
from importlib import resources
from pathlib import Path
from typing import Any

import anyio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from leader import defaults
from leader.errors import LeaderError
from leader.files import printable
from leader.pictures import read_picture, write_picture
from leader.pictures.formats import SERVED
from leader.presets.paths import LOOKS, QUALITIES
from leader.trust.maps import legend_entries
from leader.web import work
from leader.web.choices import EXPERT, KINDS, TASK_WORDS, list_menus, read_wish
from leader.web.gate import HEALTH, client_of
from leader.web.jobs import Job
from leader.web.samples import SAMPLES
from leader.web.site import CANVAS, Site
from leader.web.store import GONE, Entry

MEDIA = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
FILES = ("view.png", "view.jpg", work.RESTORED, work.MAP, work.COVER, work.LEVELS, work.RUN)
FORMATS = {"png": "image/png", "jpg": "image/jpeg", "webp": "image/webp"}
"""Download formats of a result."""
MOST_BODY = 12 << 20
"""Largest size of a wish in bytes: a painted mask and a few words."""
PAUSE = 0.2
"""Seconds between two checks of a job."""
NO_COOKIE = "This browser did not keep the page's cookie; allow cookies and reload the page."
NO_WISH = "The request cannot be read; reload the page."

Answer = Callable[[Request, str], Awaitable[Response]]


def list_routes(site: Site) -> list[Route]:
    """All routes of the server."""
    few = anyio.CapacityLimiter(site.limits.jobs)  # decode and examine as many pictures at once as jobs run

    async def upload(request: Request, client: str) -> Response:
        spool = site.store.root / f"incoming-{id(request)}"
        try:
            await _spool(request, spool, site.limits.upload_bytes)
            entry = await anyio.to_thread.run_sync(lambda: site.receive(client, spool.rename), limiter=few)
        finally:
            with contextlib.suppress(FileNotFoundError):
                spool.unlink()
        return JSONResponse(_describe(entry))

    async def take_sample(request: Request, client: str) -> Response:
        name = request.path_params["name"]
        if name not in SAMPLES:
            return refuse("There is no such sample.", 404)
        entry = await anyio.to_thread.run_sync(lambda: site.sample(client, name), limiter=few)
        return JSONResponse(_describe(entry))

    async def show_sample(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in SAMPLES:
            return refuse("There is no such sample.", 404)
        file = await anyio.to_thread.run_sync(lambda: site.sample_file(name), limiter=few)
        return FileResponse(file, media_type="image/png", headers={"cache-control": "max-age=3600"})

    async def diagnose(request: Request, client: str) -> Response:
        entry = site.store.find(request.path_params["token"], client)
        return JSONResponse(await anyio.to_thread.run_sync(lambda: site.diagnose(entry), limiter=few))

    async def find_damage(request: Request, client: str) -> Response:
        entry = site.store.find(request.path_params["token"], client)
        mask = await anyio.to_thread.run_sync(lambda: site.find_damage(entry), limiter=few)
        if mask is None:
            return refuse("No scratches, tears or specks were found; paint over them with the brush.", 404)
        return Response(mask, media_type="image/png")

    async def estimate(request: Request, client: str) -> Response:
        body = await _read_body(request)
        entry, wish = site.store.find(body.get("picture"), client), read_wish(body)
        run = anyio.to_thread.run_sync(lambda: work.predict_seconds(site, entry, wish), limiter=few)
        return JSONResponse(await run)

    async def restore(request: Request, client: str) -> Response:
        body = await _read_body(request)
        entry, wish = site.store.find(body.get("picture"), client), read_wish(body)
        job = site.desk.submit(client, lambda one: work.repair_picture(one, site, entry, wish))
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(follow(site, job, request), media_type="application/x-ndjson", headers=headers)

    async def stop(request: Request, client: str) -> Response:
        site.desk.stop(client)
        return JSONResponse({})

    async def give_file(request: Request, client: str) -> Response:
        entry, name = site.store.find(request.path_params["token"], client), request.path_params["name"]
        path = entry.folder / name if name in FILES else None
        if path is None or not path.is_file():
            return refuse(GONE, 404)
        return FileResponse(path, headers={"cache-control": "private, no-store"})

    async def export(request: Request, client: str) -> Response:
        entry, kind = site.store.find(request.path_params["token"], client), request.path_params["kind"]
        quality = request.query_params.get("quality", "90")
        if kind not in FORMATS or quality not in map(str, range(1, 101)):
            return refuse(f"A result can be downloaded as {', '.join(FORMATS)}, with a quality from 1 to 100.")
        content = await anyio.to_thread.run_sync(lambda: _convert(entry, kind, int(quality)), limiter=few)
        return Response(content, media_type=FORMATS[kind], headers={"cache-control": "private, no-store"})

    async def health(request: Request) -> Response:
        about = {"running": site.desk.count("running"), "waiting": site.desk.count("waiting"), "kept": len(site.store)}
        return JSONResponse({"status": "ok", **about})

    async def describe_site(request: Request) -> Response:
        return JSONResponse(about_site(site))

    return [
        *_list_static(),
        Route("/api/site", describe_site),
        Route("/api/pictures", _for_client(upload), methods=["POST"]),
        Route("/api/samples/{name}", _for_client(take_sample), methods=["POST"]),
        Route("/api/samples/{name}.png", show_sample),
        Route("/api/pictures/{token}/findings", _for_client(diagnose)),
        Route("/api/pictures/{token}/damage", _for_client(find_damage)),
        Route("/api/estimate", _for_client(estimate), methods=["POST"]),
        Route("/api/restore", _for_client(restore), methods=["POST"]),
        Route("/api/stop", _for_client(stop), methods=["POST"]),
        Route("/api/files/{token}/{name}", _for_client(give_file)),
        Route("/api/export/{token}/{kind}", _for_client(export)),
        Route(HEALTH, health),
    ]


def about_site(site: Site) -> dict[str, Any]:
    """What the page needs before there is a picture: its menus, its limits, its samples."""
    return {
        "kinds": {kind: TASK_WORDS[tasks[0].name] for kind, tasks in KINDS.items() if tasks},
        "qualities": list(QUALITIES),
        "quality": defaults.QUALITY,
        "looks": list(LOOKS),
        "expert": EXPERT,
        "menus": list_menus(),
        "samples": {name: sample.title for name, sample in SAMPLES.items()},
        "formats": list(FORMATS),
        "accepted": SERVED,
        "upload_bytes": site.limits.upload_bytes,
        "pixels": site.limits.pixels,
        "canvas": CANVAS,
        "legend": [{"colour": f"#{bytes(colour).hex()}", "words": words} for colour, words in legend_entries()],
    }


async def follow(site: Site, job: Job, request: Request) -> AsyncIterator[bytes]:
    """The progress of a job, a line of JSON for every change; a visitor who leaves stops it."""
    last, shown = "", 0
    try:
        while not job.over:
            if await request.is_disconnected():
                return
            site.store.keep_all(job.client)
            about = _describe_job(job) if job.state != "waiting" else {"state": "waiting", "ahead": site.desk.ahead(job)}
            if job.preview is not None and job.previews != shown:
                shown = job.previews
                about["preview"] = "data:image/jpeg;base64," + base64.b64encode(job.preview).decode("ascii")
            text = json.dumps(about)
            if text != last:
                last = text
                yield text.encode() + b"\n"
            await asyncio.sleep(PAUSE)
        yield json.dumps(_describe_job(job)).encode() + b"\n"
    finally:
        if not job.over:
            site.desk.stop(job.client)


def _describe_job(job: Job) -> dict[str, Any]:
    left = None if job.seconds_left is None else round(job.seconds_left, 1)
    about = {"state": job.state, "words": job.words, "step": job.step, "share": round(job.share, 3), "left": left}
    return {**about, "drafted": job.drafted, "outcomes": job.outcomes, "error": job.error}


def _describe(entry: Entry) -> dict[str, Any]:
    return {"token": entry.token, "size": entry.about["size"], "view": f"api/files/{entry.token}/{entry.about['view']}"}


def _convert(entry: Entry, kind: str, quality: int) -> bytes:
    """A picture of the store in a download format, with its metadata."""
    with tempfile.TemporaryDirectory(dir=entry.folder) as folder:
        target = Path(folder, f"picture.{kind}")
        write_picture(target, read_picture(entry.picture), quality=quality)
        return target.read_bytes()


def _list_static() -> list[Route]:
    """The files of the front end, read once; the page itself is at the root."""
    routes = []
    for file in sorted(resources.files("leader.web").joinpath("static").iterdir(), key=lambda item: item.name):
        suffix = Path(file.name).suffix
        if suffix in MEDIA:
            path = "/" if file.name == "index.html" else f"/static/{file.name}"
            routes.append(Route(path, _answer_with(file.read_bytes(), MEDIA[suffix])))
    return routes


def _answer_with(content: bytes, media: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return Response(content, media_type=media, headers={"cache-control": "no-cache"})

    return answer


def _for_client(answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    """A route for browsers with our cookie; errors are returned as one sentence."""

    @wraps(answer)
    async def checked(request: Request) -> Response:
        client = client_of(request.cookies)
        if client is None:
            return refuse(NO_COOKIE, 403)
        try:
            return await answer(request, client)
        except ClientDisconnect:  # amid the body
            return Response(status_code=400)
        except LeaderError as error:
            return refuse(str(error), 404 if str(error) == GONE else 400)

    return checked


async def _read_body(request: Request) -> Mapping[str, Any]:
    """The JSON object of a request, up to the size limit."""
    content = b""
    async for block in request.stream():
        content += block
        if len(content) > MOST_BODY:
            raise LeaderError("The painted mask is too large; paint the missing parts again.")
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise LeaderError(NO_WISH) from error
    if not isinstance(body, dict):
        raise LeaderError(NO_WISH)
    return body


async def _spool(request: Request, path: Path, most: float) -> None:
    """Writes the body of a request to a file, up to the size limit."""
    size = 0
    too_large = LeaderError(f"The file is larger than the limit of {most / 2**20:.3g} MB; make it smaller first.")
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > most:
        raise too_large
    async with await anyio.open_file(path, "wb") as target:
        async for block in request.stream():
            size += len(block)
            if size > most:
                raise too_large
            await target.write(block)


def refuse(text: str, status: int = 400) -> Response:
    return JSONResponse({"error": printable(text)}, status)
