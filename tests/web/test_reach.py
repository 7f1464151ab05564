"""The whole app answers to its own names, to its own pages, and to proxies only where it was told of one."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from leader.errors import UsageError
from leader.web.limits import Limits
from leader.web.reach import Reach

pytest.importorskip("starlette", reason="the page needs the extra web")

from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from leader.web import server
from leader.web import site as sites
from leader.web.gate import COOKIE
from leader.web.server import make_app

Open = Callable[..., Any]
RUN = "/api/restore"
JOB = {"picture": "x", "repairs": []}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """Opens the real app, as `leader web` serves it, under an address."""
    place: Path = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(place))

        def open_app(base_url: str, reach: Reach | None = None, **headers: str) -> Any:
            client = TestClient(make_app(Limits(upload_bytes=5000), reach=reach), base_url=base_url)
            client.headers.update(headers)
            client.cookies.set(COOKIE, "0" * 32)  # so that nothing is refused for want of one
            return client

        yield open_app


@pytest.mark.parametrize("name", ["127.0.0.1:7860", "localhost:7860", "[::1]:7861", "LocalHost", "localhost."])
def test_it_answers_to_the_names_of_this_machine(opened: Open, name: str) -> None:
    client = opened(f"http://{name}")
    assert client.get("/health").status_code == 200
    assert client.get("/").status_code == 200
    assert client.post("/api/samples/none", headers={"origin": f"http://{name}"}).json()["error"], (
        "it is let in, without a cookie"
    )


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:7860", "x@127.0.0.1", "127.0.0.1/x", "[", "", "10.0.0.9"]
)
def test_another_name_is_not_answered(opened: Open, host: str) -> None:
    client = opened("http://127.0.0.1:7860", host=host)
    for method, path in (("GET", "/"), ("GET", "/api/site"), ("POST", "/api/pictures"), ("POST", RUN), ("GET", "/health")):
        answer = client.request(method, path)
        assert answer.status_code == 421 and "evil" not in answer.text


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "http://127.0.0.1", "file://", "x", "http://[::1"]
)
def test_a_page_elsewhere_starts_nothing(opened: Open, origin: str) -> None:
    client = opened("http://127.0.0.1:7860", origin=origin)
    for path in (RUN, "/api/pictures", "/api/samples/small", "/api/stop", "/api/estimate"):
        assert client.post(path, json=JOB).status_code == 403
    assert client.get("/api/files/x/restored.png").status_code == 403
    assert client.options(RUN, headers={"access-control-request-method": "POST"}).status_code == 403
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(RUN):
        pass


def test_a_form_elsewhere_that_hides_its_origin_starts_nothing(opened: Open) -> None:
    for site in ("cross-site", "same-site"):
        assert opened("http://127.0.0.1:7860", **{"sec-fetch-site": site}).post(RUN, json=JOB).status_code == 403
    own = opened("http://127.0.0.1:7860", origin="http://127.0.0.1:7860", **{"sec-fetch-site": "same-origin"})
    assert own.post(RUN, json=JOB).status_code not in (403, 421)


def test_the_word_of_a_proxy_counts_only_where_there_is_one(opened: Open) -> None:
    told = {"x-forwarded-host": "photos.example", "x-forwarded-proto": "https"}
    alone = opened("http://127.0.0.1:7860", **told)
    assert alone.get("/").status_code == 200 and "photos.example" not in alone.get("/").text
    reach = Reach("127.0.0.1", ("photos.example",), behind_proxy=True)
    behind = opened("http://127.0.0.1:7860", reach, **told)
    assert behind.get("/").status_code == 200
    assert behind.post("/api/pictures", headers={"origin": "https://photos.example"}, content=b"").status_code == 400, "empty"
    assert behind.post(RUN, headers={"origin": "http://127.0.0.1:7860"}, json=JOB).status_code == 403
    for hosts, status in (("evil.example", 421), ("evil.example, photos.example", 200), ("photos.example, evil.example", 421)):
        answer = opened("http://127.0.0.1:7860", reach, **{"x-forwarded-host": hosts}).get("/")
        assert answer.status_code == status, "the nearest proxy's word counts"


def test_a_server_for_others_answers_to_its_address_and_the_names_it_was_given(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "Workbench")
    reach = Reach("0.0.0.0", ("photos.example",))
    for name in ("photos.example", "photos.example:8080", "192.0.2.7:7860", "localhost", "workbench:7860"):
        assert opened(f"http://{name}", reach).get("/health").status_code == 200
    assert opened("http://evil.example", reach).get("/health").status_code == 421
    assert opened("http://localhost", reach, host="0.0.0.0").get("/health").status_code == 421, "a name of nobody"
    twice = [("host", "localhost"), ("host", "localhost")]
    assert opened("http://localhost", reach).get("/health", headers=twice).status_code == 421
    assert opened("http://192.0.2.7:7860", reach, host="192.0.2.8:7860").get("/health").status_code == 421, "not its address"
    assert opened("http://0.0.0.0:7860", Reach("192.0.2.7")).get("/health").status_code == 421
    assert opened("http://localhost", Reach("192.0.2.7")).get("/health").status_code == 421, "it does not listen there"


def test_what_is_served_is_what_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From its start, at which it learns, to its end, which leaves nothing; what is old goes while it runs."""
    served: dict[str, Any] = {}
    learned: list[Any] = []
    monkeypatch.setattr("uvicorn.run", lambda app, **options: served.update(options, app=app))
    monkeypatch.setattr("torch.set_num_threads", lambda count: served.update(threads=count))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(server, "SWEEP", 0.01)
    monkeypatch.setattr(sites.Site, "learn_pace", lambda self: learned.append(self))
    switch = sys.getswitchinterval()
    with monkeypatch.context() as patch:
        patch.setattr(server, "make_app", lambda *_: None)
        server.serve(Reach(), 8123, Limits())
    assert served.pop("proxy_headers") is False, "no proxy, no word of one"
    server.serve(Reach("192.0.2.7", behind_proxy=True), 8123, Limits(threads=3, keep_seconds=0.05), ("ann", "word"))
    assert sys.getswitchinterval() < switch, "the page answers while a job computes"
    sys.setswitchinterval(switch)
    assert served["server_header"] is False and served["timeout_graceful_shutdown"] < 60, "a job cannot hold up its end"
    told = [served[name] for name in ("host", "port", "proxy_headers", "threads")]
    assert told == ["192.0.2.7", 8123, True, 3]
    with TestClient(served["app"], base_url="http://192.0.2.7") as client:
        assert client.get("/").status_code == 401 and client.get("/", auth=("ann", "word")).status_code == 200
        answer = client.post("/api/samples/small", headers={"cookie": f"{COOKIE}={'0' * 32}"}, auth=("ann", "word"))
        assert answer.status_code == 200
        end = time.monotonic() + 20
        while client.get("/health").json()["kept"]:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert len(learned) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["http://a.example", "a.example:80", "", "a/b", "u@a"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="without port"):
        Reach(names=(name,))
