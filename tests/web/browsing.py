"""A server of our own and a real browser, for the tests of the page."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.cheap_prior import photograph

ROOT = Path(__file__).resolve().parents[2]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 300_000
"""Milliseconds a test waits for what the page owes it, on a machine with other work."""


def chromium() -> str | None:
    """Debian's Chromium, or another one on the path."""
    return next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


def axe() -> Path | None:
    """axe-core's script, where `make test-web` put it, or where AXE says."""
    places = [Path(os.environ["AXE"])] if "AXE" in os.environ else []
    places.append(ROOT / ".venv" / "npm" / "node_modules" / "axe-core" / "axe.min.js")
    return next((place for place in places if place.is_file()), None)


def free_port() -> int:
    """A port to listen on, out of the range from which the system gives ports to whoever asks for any."""
    first = 20_000 + os.getpid() % 10_000
    for port in range(first, first + 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise RuntimeError("No port is free.")


def command(*words: str) -> list[str]:
    """`leader` with these words, in a process of its own."""
    return [sys.executable, "-c", "from leader.cli import main; main()", *words]


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[str]:
    """The address of `leader web`, as long as the block lasts; its temporary files lie in `folder`."""
    port = free_port()
    log = folder / "log.txt"
    environment = {**os.environ, "TMPDIR": str(folder), "OMP_NUM_THREADS": "1"}
    with log.open("wb") as output:
        words = command("web", "--port", str(port), "--jobs", "1", "--threads", "1", *options)
        process = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, env=environment)
        try:
            address = f"http://127.0.0.1:{port}"
            _wait(address, process, log)
            yield address
        finally:
            process.terminate()
            process.wait(300)


def _wait(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until the server answers and has learned how fast this machine is."""
    end = time.monotonic() + 600
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(log.read_text(errors="replace"))
        with suppress(urllib.error.URLError, OSError):
            found = json.load(urllib.request.urlopen(f"{address}/health", timeout=5))
            if found["running"] == found["waiting"] == 0:
                return
        time.sleep(0.3)
    raise RuntimeError("The server did not answer.")


def small_picture(path: Path, height: int = 48, width: int = 48) -> Path:
    """A photograph of few pixels, with a little noise."""
    pixels = photograph(height, width).permute(1, 2, 0).numpy()
    noisy = pixels + np.random.default_rng(0).normal(0, 0.02, pixels.shape)
    Image.fromarray(np.round(noisy.clip(0, 1) * 255).astype(np.uint8)).save(path)
    return path


def hand_in(page: Any, *paths: Path) -> None:
    """Chooses files and waits until the program has looked at the first one."""
    page.set_input_files("#file", [str(path) for path in paths])
    page.wait_for_selector("#repairs input:enabled", timeout=PATIENCE)


def choose(page: Any, *kinds: str, quality: str = "draft") -> None:
    """Chooses kinds of damage, and no others, and a quality."""
    for kind in ("missing", "noisy", "jpeg", "blurred", "grey", "small"):
        page.set_checked(f"#repairs input[value={kind}]", kind in kinds)
    page.locator(f"#quality-{quality}").click()


def finish(page: Any) -> None:
    """Waits for the end of a run, which must have a result."""
    page.wait_for_function("document.querySelector('#busy').hidden", timeout=PATIENCE)
    assert page.locator("#told").is_hidden(), page.inner_text("#told")
    page.wait_for_selector("#result .verdict", timeout=PATIENCE)


def restore(page: Any) -> None:
    page.click("#start")
    finish(page)


def look_at(page: Any) -> dict[str, float]:
    """The place of the picture on the screen."""
    found: dict[str, float] = page.locator(".frame").first.bounding_box()
    return found


def save(page: Any, act: Any, path: Path) -> bytes:
    """What `act` downloads."""
    with page.expect_download(timeout=PATIENCE) as waiting:
        act()
    waiting.value.save_as(path)
    return path.read_bytes()
