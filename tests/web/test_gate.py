"""The gate: name and password, one mark per browser, nothing from elsewhere; and the routes behind it."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

starlette = pytest.importorskip("starlette.applications", reason="the page needs the extra web")

from starlette.testclient import TestClient  # noqa: E402

from leader.web.front import MOST, Front  # noqa: E402
from leader.web.gate import COOKIE, Gate, client_of  # noqa: E402
from leader.web.limits import Limits  # noqa: E402
from leader.web.routes import routes  # noqa: E402
from leader.web.site import Site  # noqa: E402
from tests.pictures.test_pictures import header_only  # noqa: E402


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = Site(Limits(upload_bytes=100_000, pixels=10_000))
    yield made
    made.close()
    assert not list(tmp_path.iterdir())


def opened(site: Site, auth: tuple[str, str] | None = None) -> Any:
    app = starlette.Starlette(routes=routes(site))
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
    for address in ("/", "/leader/samples/small.png", "/gradio_api/info"):
        answer = client.get(address)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Basic")
    for wrong in ("ann:pass", "bob:pass:word", "ann:pass:word "):
        token = base64.b64encode(wrong.encode()).decode()
        assert client.get("/leader/files/x/y", headers={"authorization": f"Basic {token}"}).status_code == 401
    assert client.get("/leader/files/x/y", headers={"authorization": "Basic %%%"}).status_code == 401
    assert client.get("/leader/files/x/y", auth=("ann", "pass:word")).status_code == 404


def test_a_browser_gets_one_mark_and_keeps_it(site: Site) -> None:
    client = opened(site)
    assert "set-cookie" not in client.get("/").headers
    client.cookies.clear()
    mark = client.get("/").headers["set-cookie"]
    assert mark.startswith(COOKIE)
    assert "HttpOnly" in mark and "SameSite=Strict" in mark
    client.cookies.clear()
    client.cookies.set(COOKIE, "not one of ours")
    assert "set-cookie" in client.get("/").headers
    assert client_of({COOKIE: 32 * "a"}) == 32 * "a"
    assert client_of({COOKIE: 33 * "a"}) is None and client_of({COOKIE: 31 * "a"}) is None and client_of({}) is None


def test_nothing_may_be_loaded_from_elsewhere_and_gradio_takes_no_files(site: Site) -> None:
    client = opened(site)
    policy = client.get("/health").headers["content-security-policy"]
    assert policy.startswith("default-src 'self';") and "connect-src 'self'" in policy and "http" not in policy
    for address in ("/upload", "/upload/x", "/gradio_api/upload", "/gradio_api/upload_progress", "/gradio_api/stream/1/list"):
        answer = client.post(address, content=b"x")
        assert (answer.status_code, answer.text) == (404, "There is nothing here.")


def test_an_upload_is_kept_for_its_client_under_no_name_of_theirs(site: Site) -> None:
    client = opened(site)
    token = client.post("/leader/upload", content=png()).json()["token"]
    assert client.get(f"/leader/files/{token}/view.png").status_code == 200
    assert client.get(f"/leader/files/{token}/picture").status_code == 404  # only what we made is served
    assert {path.name for path in site.store.root.rglob("*") if path.is_file()} == {"picture", "view.png"}
    client.cookies.set(COOKIE, "1" * 32)
    assert client.get(f"/leader/files/{token}/view.png").status_code == 404
    client.cookies.clear()
    answer = client.post("/leader/upload", content=png())
    assert answer.status_code == 403
    assert "cookies" in answer.json()["error"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (bytes(100_001), "more than the 0.0954 MB"),
        (png(101, 100), "101 x 100 pixels"),
        (header_only(100_000, 100_000), "at most 0.01 million"),
        (b"GIF89a", "picture"),
        (b"", "empty"),
    ],
)
def test_what_is_refused_leaves_nothing_behind(site: Site, content: bytes, told: str) -> None:
    answer = opened(site).post("/leader/upload", content=content)
    assert answer.status_code == 400 and told in answer.json()["error"] and str(site.store.root) not in answer.text
    assert not list(site.store.root.iterdir())


def test_an_upload_without_a_length_ends_at_the_limit(site: Site) -> None:
    """In blocks of which none is too large: it is not read to its end, which it may not have."""
    taken, answers = [], list[Any]()

    async def receive() -> dict[str, Any]:
        taken.append(1)
        assert len(taken) < 200, "it would go on for ever"
        return {"type": "http.request", "body": bytes(1000), "more_body": True}

    async def send(message: Any) -> None:
        answers.append(message)

    headers = [(b"cookie", f"{COOKIE}={'0' * 32}".encode()), (b"transfer-encoding", b"chunked")]
    scope = {"type": "http", "method": "POST", "path": "/leader/upload", "headers": headers, "query_string": b""}
    asyncio.run(starlette.Starlette(routes=routes(site))(scope, receive, send))
    assert answers[0]["status"] == 400 and len(taken) == 101 and not list(site.store.root.iterdir())


def test_samples(site: Site) -> None:
    client = opened(site)
    assert client.post("/leader/sample/nonsense").status_code == 404
    assert client.get("/leader/samples/nonsense.png").status_code == 404
    assert client.get("/leader/samples/torn.png").content.startswith(b"\x89PNG")


def test_the_front_page_is_drawn_once_for_every_address_and_marks_every_browser() -> None:
    drawn: list[str] = []

    async def page(scope: Any, receive: Any, send: Any) -> None:
        drawn.append(scope["path"])
        status = 500 if dict(scope["headers"])[b"host"] == b"broken" else 200
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/html")]})
        for part in (b"number ", str(len(drawn)).encode()):
            await send({"type": "http.response.body", "body": part, "more_body": part.startswith(b"n")})

    client = TestClient(Gate(Front(page)), base_url="http://127.0.0.1")
    answers = []
    for _ in range(2):
        client.cookies.clear()
        answers.append(client.get("/"))
    assert [answer.text for answer in answers] == ["number 1"] * 2
    assert answers[0].headers["set-cookie"] != answers[1].headers["set-cookie"], "what is kept holds no visitor's mark"
    assert client.get("/", headers={"host": "elsewhere"}).text == "number 2"
    assert [client.get("/?a=1").text, client.get("/other").text, client.post("/").text] == ["number 3", "number 4", "number 5"]
    assert [client.get("/", headers={"host": "broken"}).text for _ in range(2)] == ["number 6", "number 7"], "no error is kept"
    for number in range(MOST):
        client.get("/", headers={"host": f"h{number}"})
    before = len(drawn)
    client.get("/", headers={"host": f"h{MOST - 1}"})
    assert len(drawn) == before + 1, "a few addresses are kept, not whatever somebody makes up"
