"""A real S3 server on this machine (moto), asked by workers in other processes."""

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.folders.conftest import go, results

pytest.importorskip("moto.server")
s3fs = pytest.importorskip("s3fs")


@pytest.fixture
def store(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    words = {
        "ENDPOINT_URL": f"http://{host}:{port}",
        "ACCESS_KEY_ID": "x",
        "SECRET_ACCESS_KEY": "x",
        "DEFAULT_REGION": "us-east-1",
    }
    urllib.request.urlopen(urllib.request.Request(f"{words['ENDPOINT_URL']}/moto-api/reset", method="POST")).read()
    for name, value in words.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    s3fs.S3FileSystem.clear_instance_cache()
    made = s3fs.S3FileSystem()
    made.mkdir("pictures")
    made.put(str(tree), "pictures/in", recursive=True)
    yield made
    server.stop()
    s3fs.S3FileSystem.clear_instance_cache()


def objects(store: Any) -> dict[str, bytes]:
    return {path.removeprefix("pictures/out/"): store.cat_file(path) for path in store.find("pictures/out")}


def test_s3_gives_what_a_disk_gives(tree: Path, tmp_path: Path, store: Any) -> None:
    go(tree, tmp_path / "out", maps=".npy")
    assert go("s3://pictures/in", "s3://pictures/out", maps=".npy").restored == 3
    there = objects(store)
    assert {name: data for name, data in there.items() if not name.startswith(".leader/")} == results(tmp_path / "out")
    assert go("s3://pictures/in", "s3://pictures/out", maps=".npy").found == 3
    store.pipe_file("pictures/in/a.png", (tree / "b.png").read_bytes())
    outcome = go("s3://pictures/in", "s3://pictures/out", maps=".npy")
    assert (outcome.restored, outcome.found) == (1, 2)
