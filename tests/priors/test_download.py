"""Downloads from a server in this process: resumed, checked, and one sentence where there is no network."""

import hashlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from leader.priors import catalogue
from leader.priors.download import download
from tests.sentences import refusal

CONTENT = bytes(range(256)) * 9000  # more than two blocks


class Server(BaseHTTPRequestHandler):
    requests: list[str | None] = []  # noqa: RUF012 (reset by the fixture)
    ranges = True
    cut = 0

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        Server.requests.append(wanted)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and Server.ranges else 0
        body, kind = (
            (b"", "text/html; charset=utf-8") if self.path == "/page" else (CONTENT[start:], "application/octet-stream")
        )
        if self.path == "/gone" or start >= len(CONTENT):
            self.send_error(404 if self.path == "/gone" else 416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Type", kind)
        if body:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) - Server.cut])

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on stderr."""


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("LEADER_CACHE", str(tmp_path / "cache"))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    Server.requests, Server.ranges, Server.cut = [], True, 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def register(monkeypatch: pytest.MonkeyPatch, *urls: str, known: bool = True) -> catalogue.CatalogueEntry:
    digest = hashlib.sha256(CONTENT).hexdigest() if known else None
    entry = replace(catalogue.ENTRIES["ffhq-256"], name="local", filename="w.pt", urls=urls, sha256=digest)
    monkeypatch.setitem(catalogue.ENTRIES, "local", entry)
    return entry


def test_download_reports_progress_and_checks_the_hash(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = register(monkeypatch, f"{address}/file")
    seen: list[tuple[int, int | None]] = []
    result = download("local", lambda have, total: seen.append((have, total)))
    assert result.path == entry.path and entry.path.read_bytes() == CONTENT and entry.on_disk
    assert result.verified is True and result.sha256 == entry.sha256
    assert len(seen) > 1 and seen[-1] == (len(CONTENT), len(CONTENT)) and seen == sorted(seen)
    assert [row["on_disk"] for row in catalogue.list_entries() if row["name"] == "local"] == [True]
    assert download("local").verified is True and Server.requests == [None]  # there already: no second request


@pytest.mark.parametrize("ranges", [True, False])
def test_download_resumes(address: str, monkeypatch: pytest.MonkeyPatch, ranges: bool) -> None:
    entry = register(monkeypatch, f"{address}/file")
    Server.ranges, Server.cut = ranges, 1000
    told = refusal(download, "local")
    assert "which are kept" in told or "IncompleteRead" in told
    assert not entry.on_disk
    Server.cut = 0
    download("local")
    assert entry.path.read_bytes() == CONTENT
    assert Server.requests == [None, f"bytes={len(CONTENT) - 1000}-"]


def test_an_unknown_hash_is_said_to_be_unknown(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, f"{address}/file", known=False)
    result = download("local")
    assert result.verified is None and result.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert result.sha256 in str(result) and "no published hash" in str(result)
    assert {row["sha256"] for row in catalogue.list_entries() if row["name"] == "celebahq-256"} == {"unknown"}


def test_another_file_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = replace(register(monkeypatch, f"{address}/file"), sha256="0" * 64)
    monkeypatch.setitem(catalogue.ENTRIES, "local", entry)
    assert "damaged or a different file" in refusal(download, "local")
    assert not entry.on_disk


def test_mirrors_are_tried_and_pages_are_no_files(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = register(monkeypatch, f"{address}/page", f"{address}/file")
    assert download("local").path.read_bytes() == CONTENT
    entry.path.unlink()
    entry.path.with_name("w.pt.part").write_bytes(CONTENT[:1000])
    register(monkeypatch, f"{address}/gone")
    assert "Not Found" in refusal(download, "local")
    entry.path.with_name("w.pt.part").unlink()
    register(monkeypatch, f"{address}/page")
    assert "answered with a page instead of the file" in refusal(download, "local")


def test_without_network_one_sentence(tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = register(monkeypatch, "http://127.0.0.1:9/file")
    told = refusal(download, "local", timeout=5)
    assert "connect to the network" in told and str(entry.path) in told
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes the call and never answers
        register(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}/file")
        begin = time.monotonic()
        assert "timed out" in refusal(download, "local", timeout=0.2)
        assert time.monotonic() - begin < 10
    assert "Unknown prior" in refusal(download, "nothing")


@pytest.mark.parametrize(("there", "ranges"), [(1_000_000, True), (1_000_000, False), (len(CONTENT), True)])
def test_a_continued_download_counts_what_was_there(
    address: str, monkeypatch: pytest.MonkeyPatch, there: int, ranges: bool
) -> None:
    Server.ranges = ranges
    entry = register(monkeypatch, f"{address}/file")
    entry.path.parent.mkdir(parents=True)
    entry.path.with_name("w.pt.part").write_bytes(CONTENT[:there])
    told: list[tuple[int, int | None]] = []
    assert download("local", lambda have, total: told.append((have, total))).verified is True and entry.on_disk
    assert {so_far[1] for so_far in told} <= {len(CONTENT)} and (not told or told[-1][0] == len(CONTENT))
    assert bool(told) == (there < len(CONTENT)), "a complete part needs no more"


def test_the_cache_folder_has_a_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LEADER_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert catalogue.cache_folder() == tmp_path / ".cache" / "leader"
    monkeypatch.setenv("LEADER_CACHE", "~/mine")
    assert catalogue.cache_folder() == tmp_path / "mine"
