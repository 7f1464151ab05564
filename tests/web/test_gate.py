"""The gate: name and password, one mark per browser, nothing from elsewhere; and the routes behind it."""

import asyncio
import base64
import io
import json
import threading
import time
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms

starlette = pytest.importorskip("starlette.applications", reason="the page needs the extra web")

from starlette.testclient import TestClient  # noqa: E402

from leader import defaults  # noqa: E402
from leader.errors import LeaderError  # noqa: E402
from leader.pictures import Picture, read_picture, write_picture  # noqa: E402
from leader.pictures.exif import ASCII, Tag  # noqa: E402
from leader.pictures.metadata import Metadata  # noqa: E402
from leader.presets.paths import LOOKS, QUALITIES  # noqa: E402
from leader.priors.catalogue import ENTRIES  # noqa: E402
from leader.restoration.degrade import degrade_file  # noqa: E402
from leader.trust.maps import legend_entries  # noqa: E402
from leader.web import routes, work  # noqa: E402
from leader.web import site as sites  # noqa: E402
from leader.web.gate import COOKIE, Gate, client_of  # noqa: E402
from leader.web.jobs import Job  # noqa: E402
from leader.web.routes import MOST_BODY, list_routes  # noqa: E402
from leader.web.samples import SAMPLES  # noqa: E402
from leader.web.site import Site  # noqa: E402
from tests.pictures.test_pictures import header_only  # noqa: E402

STATIC = Path(str(resources.files("leader.web"))) / "static"


def opened(site: Site, auth: tuple[str, str] | None = None) -> Any:
    app = starlette.Starlette(routes=list_routes(site))
    client = TestClient(Gate(app, auth), base_url="http://127.0.0.1")
    client.cookies.set(COOKIE, "0" * 32)
    return client


def png(width: int = 16, height: int = 16) -> bytes:
    buffer = io.BytesIO()
    values = np.random.default_rng(0).integers(0, 255, (height, width, 3), dtype=np.uint8)
    Image.fromarray(values).save(buffer, "PNG")
    return buffer.getvalue()


def test_name_and_password_are_asked_for_everywhere_but_at_the_health_endpoint(site: Site) -> None:
    client = opened(site, ("ann", "pass:word"))
    assert client.get("/health").json()["status"] == "ok"
    for address in ("/", "/api/site", "/static/main.js", "/api/samples/small.png", "/health/x"):
        answer = client.get(address)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Basic")
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    for wrong in ("ann:pass", "bob:pass:word", "ann:pass:word "):
        token = base64.b64encode(wrong.encode()).decode()
        assert client.get("/api/files/x/y", headers={"authorization": f"Basic {token}"}).status_code == 401
    right = base64.b64encode(b"ann:pass:word").decode()
    for header in ("Basic %%%", f"Bearer {right}", right):
        assert client.get("/api/files/x/y", headers={"authorization": header}).status_code == 401
    assert client.get("/api/files/x/y", auth=("ann", "pass:word")).status_code == 404


def test_a_browser_gets_one_mark_and_keeps_it(site: Site) -> None:
    client = opened(site)
    assert "set-cookie" not in client.get("/").headers
    client.cookies.clear()
    assert "set-cookie" not in client.get("/static/main.js").headers, "files come together: each would bring a mark of its own"
    mark = client.get("/").headers["set-cookie"]
    assert client_of({COOKIE: mark.split("=")[1].split(";")[0]}) is not None, "one that is known again"
    assert mark.startswith(COOKIE)
    assert "HttpOnly" in mark and "SameSite=Strict" in mark
    client.cookies.clear()
    client.cookies.set(COOKIE, "not one of ours")
    assert "set-cookie" in client.get("/").headers
    client.cookies.clear()
    assert client.get("/", headers={"cookie": "a[b]=c; \x00=d"}).status_code == 200
    assert client_of({COOKIE: 32 * "a"}) == 32 * "a"
    assert client_of({COOKIE: 33 * "a"}) is None and client_of({COOKIE: 31 * "a"}) is None and client_of({}) is None


def test_nothing_may_be_loaded_from_elsewhere_and_no_script_stands_in_the_page(site: Site) -> None:
    client = opened(site)
    page = client.get("/")
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'self';") and "unsafe" not in policy and "http" not in policy
    assert "frame-ancestors 'none'" in policy, "and no other page shows this one inside itself"
    assert page.headers["referrer-policy"] == "no-referrer", "nor hears of it"
    files = [client.get(f"/static/{path.name}") for path in STATIC.iterdir() if path.name != "index.html"]
    assert all(file.status_code == 200 and file.headers["x-content-type-options"] == "nosniff" for file in files)
    kinds = {path.suffix: client.get(f"/static/{path.name}").headers["content-type"].split(";")[0] for path in STATIC.iterdir()}
    kinds[".html"] = page.headers["content-type"].split(";")[0]
    wanted = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    assert kinds == wanted, "a browser that may not guess takes no others"
    weight = len(page.content) + sum(len(file.content) for file in files) + len(client.get("/api/site").content)
    assert weight < 200_000, "a page that is there at once; the five samples come after it"
    script = client.get("/static/main.js").headers
    assert script["content-type"].startswith("text/javascript") and script["cache-control"] == "no-cache", "the one of today"
    about = client.get("/api/site").json()
    assert (about["formats"], about["looks"], about["qualities"]) == (["png", "jpg", "webp"], list(LOOKS), list(QUALITIES))
    assert about["canvas"] == sites.CANVAS and [(item["colour"], item["words"]) for item in about["legend"]] == [
        (f"#{red:02x}{green:02x}{blue:02x}", words) for (red, green, blue), words in legend_entries()
    ]
    assert (about["upload_bytes"], about["pixels"], about["quality"]) == (100_000, 10_000, defaults.QUALITY)
    assert (
        set(about["samples"]) == set(SAMPLES) and "embedded" in about["menus"]["prior"] and "ddrm" in about["menus"]["method"]
    )
    assert about["menus"]["prior"] == ["embedded", *(name for name, entry in ENTRIES.items() if entry.on_disk)]
    for address in ("/static/../routes.py", "/static/%2e%2e/routes.py", "/static/index.html", "/static/"):
        assert client.get(address).status_code == 404


def test_an_upload_is_kept_for_its_client_under_no_name_of_theirs(site: Site) -> None:
    client = opened(site)
    about = client.post("/api/pictures", content=png(16, 12)).json()
    token = about["token"]
    assert about == {"token": token, "size": [16, 12], "view": f"api/files/{token}/view.png"}
    view = client.get(f"/{about['view']}")
    assert "no-store" in view.headers["cache-control"], "nobody else at this machine finds it later"
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(view.content))), np.asarray(Image.open(io.BytesIO(png(16, 12)))))
    for name in ("picture", "..%2fpicture", "run.json"):  # only what we made is served
        assert client.get(f"/api/files/{token}/{name}").status_code == 404
    assert {path.name for path in site.store.root.rglob("*") if path.is_file()} == {"picture", "view.png"}
    client.cookies.set(COOKIE, "1" * 32)
    wish = {"picture": token, "repairs": [{"kind": "noisy"}]}
    assert client.get(f"/{about['view']}").status_code == 404
    for path in (f"/api/pictures/{token}/findings", f"/api/pictures/{token}/damage", f"/api/export/{token}/png"):
        assert client.get(path).status_code == 404, "nor anything that is known of it"
    for path in ("/api/estimate", "/api/restore"):
        assert client.post(path, json=wish).status_code == 404, "nor what can be made of it"
    client.cookies.clear()
    for path in ("/api/pictures", "/api/samples/small", "/api/restore", "/api/estimate", "/api/stop"):
        answer = client.post(path, content=png())
        assert answer.status_code == 403 and "cookies" in answer.json()["error"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        *((bytes(100_001), "the limit of 0.0954 MB"), (png(101, 100), "101 x 100 pixels")),
        *((header_only(100_000, 100_000), "limit here is 0.01 million"), (b"GIF89a", "picture"), (b"", "empty")),
    ],
)
def test_what_is_refused_leaves_nothing_behind(site: Site, content: bytes, told: str) -> None:
    answer = opened(site).post("/api/pictures", content=content)
    assert answer.status_code == 400 and told in answer.json()["error"] and str(site.store.root) not in answer.text
    assert not list(site.store.root.iterdir())


@pytest.mark.parametrize(
    ("path", "block", "taken"),
    [
        *(
            ("/api/pictures", 1000, 101),
            ("/api/restore", 1 << 20, MOST_BODY // 2**20 + 1),
            ("/api/pictures", 9, 2),
            ("/api/estimate", 9, 2),
        ),
        ("/api/pictures", 5, 0),
    ],
)
def test_a_body_without_a_length_ends_at_the_limit_or_with_its_visitor(site: Site, path: str, block: int, taken: int) -> None:
    """In blocks of which none is too large: it is not read to its end, which it may not have. The last visitor leaves."""
    asked, answers = [], list[Any]()

    async def receive() -> dict[str, Any]:
        asked.append(1)
        assert len(asked) < 200, "it would go on for ever"
        gone = block == 9 and len(asked) == 2
        return {"type": "http.disconnect"} if gone else {"type": "http.request", "body": bytes(block), "more_body": True}

    async def send(message: Any) -> None:
        answers.append(message)

    headers = [(b"cookie", f"{COOKIE}={'0' * 32}".encode()), (b"transfer-encoding", b"chunked")]
    headers += [(b"content-length", b"100001")] if block == 5 else []  # too long by its own word
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b""}
    asyncio.run(starlette.Starlette(routes=list_routes(site))(scope, receive, send))
    assert answers[0]["status"] == 400 and len(asked) == taken and not list(site.store.root.iterdir())


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b"null", b"[" * 100_000, b"\xff", b'{"picture": 1}', b'{"repairs": []}']
)
def test_a_wish_of_another_form_is_refused_in_a_sentence(site: Site, content: bytes) -> None:
    client = opened(site)
    for path in ("/api/restore", "/api/estimate"):
        answer = client.post(path, content=content)
        assert answer.status_code in (400, 404) and answer.json()["error"].endswith(".")
    assert (
        client.post("/api/restore", content=b" " * (MOST_BODY + 1)).json()["error"].startswith("The painted mask is too large")
    )


def test_half_a_letter_in_a_wish_is_refused_in_a_sentence(site: Site) -> None:
    client = opened(site)
    token = client.post("/api/pictures", content=png()).json()["token"]
    answer = client.post("/api/estimate", content=f'{{"picture": "{token}", "repairs": [{{"kind": "\\ud800"}}]}}'.encode())
    assert answer.status_code == 400 and answer.json()["error"].endswith(r"found '\ud800'.")


def test_samples(site: Site, tmp_path: Path) -> None:
    client = opened(site)
    assert client.post("/api/samples/nonsense").status_code == 404
    assert client.get("/api/samples/nonsense.png").status_code == 404
    drawn = {name: client.get(f"/api/samples/{name}.png").content for name in SAMPLES}
    assert len(set(drawn.values())) == len(SAMPLES) == 5
    for name, sample in SAMPLES.items():
        if sample.task != "scratch":
            photograph = resources.files("leader.samples") / "test" / sample.photograph
            degrade_file(str(photograph), tmp_path / "x.png", sample.task, sigma=sample.sigma, **sample.options)
            assert (tmp_path / "x.png").read_bytes() == drawn[name], "as `leader degrade` writes it, the same for everybody"
    (tmp_path / "x.png").unlink()
    sides = [Image.open(io.BytesIO(drawn[name])).width for name in ("small", "noisy")]
    assert sides[0] * SAMPLES["small"].repair["factor"] == sides[1], "what is proposed undoes it"
    noisy = np.asarray(Image.open(io.BytesIO(drawn["noisy"])), dtype=float)
    clean = np.asarray(Image.open(str(resources.files("leader.samples") / "test" / SAMPLES["noisy"].photograph)), dtype=float)
    middle = (clean > 80) & (clean < 175)
    assert (noisy - clean)[middle].std() / 255 == pytest.approx(SAMPLES["noisy"].sigma, rel=0.1)


def test_a_picture_is_taken_away_in_the_format_and_quality_asked_for(site: Site, tmp_path: Path) -> None:
    client = opened(site)
    token = client.post("/api/pictures", content=png(40, 30)).json()["token"]
    found = {
        (kind, quality): client.get(f"/api/export/{token}/{kind}?quality={quality}").content
        for kind in ("png", "jpg", "webp")
        for quality in (20, 95)
    }
    assert {(kind, Image.open(io.BytesIO(content)).format) for (kind, _), content in found.items()} == {
        ("png", "PNG"),
        ("jpg", "JPEG"),
        ("webp", "WEBP"),
    }
    assert all(Image.open(io.BytesIO(content)).size == (40, 30) for content in found.values())
    assert len(found["png", 20]) == len(found["png", 95]) and len(found["jpg", 20]) < len(found["jpg", 95])
    assert len(found["webp", 20]) < len(found["webp", 95])
    unsaid = len(client.get(f"/api/export/{token}/jpg").content)
    assert 2 * len(found["jpg", 20]) < unsaid < len(found["jpg", 95]), "a good one"
    assert "no-store" in client.get(f"/api/export/{token}/png").headers["cache-control"]
    for bad in ("gif", "png?quality=0", "jpg?quality=101", "jpg?quality=x", "jpg?quality=%C2%B2", f"jpg?quality={'9' * 5000}"):
        assert client.get(f"/api/export/{token}/{bad}").status_code == 400
    assert not list(site.store.root.glob("*/tmp*")), "nothing is left of it"
    place = Metadata(gps={1: Tag(ASCII, b"N\0")})
    write_picture(tmp_path / "placed.jpg", Picture(np.full((12, 16, 3), 0.5, np.float32), metadata=place), location=True)
    token = client.post("/api/pictures", content=(tmp_path / "placed.jpg").read_bytes()).json()["token"]
    (tmp_path / "placed.jpg").write_bytes(client.get(f"/api/export/{token}/jpg").content)
    assert read_picture(tmp_path / "placed.jpg").metadata.gps == {}, "nor told where it was taken"
    (tmp_path / "placed.jpg").unlink()


def test_a_view_has_the_colours_of_its_picture_and_is_light_where_that_is_large(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, icc = opened(site), ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    values = np.random.default_rng(0).integers(0, 255, (30, 40, 4), dtype=np.uint8)
    monkeypatch.setattr(sites, "LARGE_VIEW", 1000)
    views = {}
    for name, pixels in (("opaque", values[..., :3]), ("transparent", values), ("small", values[:10, :, :3])):
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "PNG", icc_profile=icc)
        view = client.get("/" + client.post("/api/pictures", content=buffer.getvalue()).json()["view"]).content
        views[name] = Image.open(io.BytesIO(view))
    assert [views[name].format for name in ("opaque", "transparent", "small")] == ["JPEG", "PNG", "PNG"]
    assert np.abs(np.asarray(views["opaque"], float) - values[..., :3]).mean() < 8, "hardly coarser"
    assert np.array_equal(np.asarray(views["transparent"]), values) and {
        view.info["icc_profile"] for view in views.values()
    } == {icc}


def test_no_more_pictures_are_looked_at_at_once_than_jobs_run(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may take hundreds of megabytes, whoever asks."""
    token = opened(site).post("/api/pictures", content=png()).json()["token"]
    wish = {"picture": token, "repairs": [{"kind": "noisy"}], "sigma": "0.1", "quality": "draft"}
    there, most, lock = list[int](), list[int](), threading.Lock()

    def slowly(*_: Any, **__: Any) -> Any:
        with lock:
            there.append(1)
            most.append(len(there))
        time.sleep(0.02)
        there.pop()
        raise LeaderError("enough")

    for owner, name in ((Site, "receive"), (Site, "sample"), (Site, "sample_file"), (Site, "diagnose"), (Site, "find_damage")):
        monkeypatch.setattr(owner, name, slowly)
    monkeypatch.setattr(routes, "_convert", slowly)
    monkeypatch.setattr(work, "predict_seconds", slowly)
    asked = [("POST", "/api/pictures", b"x"), ("POST", "/api/samples/small", b""), ("GET", "/api/samples/small.png", b"")]
    asked += [("POST", "/api/estimate", json.dumps(wish).encode()), ("GET", f"/api/export/{token}/png", b"")]
    asked += [("GET", f"/api/pictures/{token}/{kind}", b"") for kind in ("findings", "damage")]
    app = starlette.Starlette(routes=list_routes(site))

    async def ask(method: str, path: str, body: bytes) -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None: ...

        headers = [(b"cookie", f"{COOKIE}={'0' * 32}".encode())]
        scope = {"type": "http", "method": method, "path": path, "headers": headers, "query_string": b""}
        with suppress(LeaderError):
            await app(scope, receive, send)

    async def ask_all() -> None:
        await asyncio.gather(*(ask(*one) for one in asked))

    asyncio.run(ask_all())
    assert most == [1] * len(asked)


def test_a_job_is_counted_and_stopped_by_its_client_alone(site: Site) -> None:
    def work(job: Job) -> None:
        for _ in range(4000):
            job.check()
            time.sleep(0.005)

    client, job = opened(site), site.desk.submit("0" * 32, work)
    client.post("/api/pictures", content=png())
    while job.state == "waiting":
        time.sleep(0.005)
    assert client.get("/health").json() == {"status": "ok", "running": 1, "waiting": 0, "kept": 1}
    for number, state in (("1", "running"), ("0", "stopped")):
        client.cookies.set(COOKIE, number * 32)
        client.post("/api/stop")
        while number == "0" and not job.over:
            time.sleep(0.005)
        assert job.state == state
