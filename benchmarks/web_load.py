"""Many clients at once on one page: is any job lost, does the page answer all the while, does the memory come back?

    python -m benchmarks.web_load [--clients 32] [--jobs 32] [--side 24] [--threads N] [--out FILE]

Starts `leader web` on this machine, lets every client hand in a picture of `side` pixels and ask for four times its size in
draft quality, and looks at the page four times a second until `jobs` pictures have come back. Fails where a job was lost, an
answer took longer than a second, or the memory did not come back to within a tenth of its level.
"""

import argparse
import io
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib import request

import numpy as np
from PIL import Image

WISH = {"repairs": [{"kind": "small", "factor": 4}], "quality": "draft"}
WARM = 4
"""Clients that come before the others, so many at once."""
PAUSE = 0.25
SLOWEST = 1.0
"""Seconds that an answer may take."""
GROWTH = 1.1
"""How much larger than before the memory may be afterwards."""


class Client:
    """A browser as far as the server can tell: it keeps its cookie."""

    def __init__(self, port: int) -> None:
        self.home = f"http://127.0.0.1:{port}"
        self.opener = request.build_opener(request.HTTPCookieProcessor(), request.ProxyHandler({}))
        self.ask("/")

    def ask(self, path: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
        """An answer; one that is no success is an OSError. With a body it is a POST."""
        with self.opener.open(request.Request(self.home + path, body, {"content-type": kind}), timeout=1800) as answer:
            content: bytes = answer.read()
            return content

    def restore(self, picture: bytes) -> bytes:
        """Hands a picture in, waits in line, and takes the restored one away."""
        token = json.loads(self.ask("/api/pictures", picture, "application/octet-stream"))["token"]
        self.ask(f"/api/pictures/{token}/findings")
        stream = self.ask("/api/restore", json.dumps({"picture": token, **WISH}).encode()).decode()
        last = json.loads(stream.splitlines()[-1])
        if last["state"] != "done":
            raise RuntimeError(f"No result came: {last['error']}")
        return self.ask(f"/api/files/{last['outcomes'][-1]['token']}/restored.png")


def memory_of(process: int) -> float:
    """Megabytes of memory that a process holds."""
    text = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def picture_of(side: int, seed: int) -> bytes:
    values = np.random.default_rng(seed).integers(0, 255, (4, 4, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(values).resize((side, side), Image.Resampling.BICUBIC).save(buffer, "PNG")
    return buffer.getvalue()


def measure(port: int, process: int, clients: int, jobs: int, side: int) -> dict[str, Any]:
    """The load, and what became of it."""
    with ThreadPoolExecutor(WARM) as pool:  # what every thread of the server loads once is there before the memory is read
        list(pool.map(lambda seed: Client(port).restore(picture_of(side, seed)), range(WARM)))
    answers: list[float] = []
    errors: list[str] = []
    held: list[float] = []
    before, over = memory_of(process), threading.Event()

    def look() -> None:
        while not over.is_set():
            for path in ("/", "/health"):
                begin = time.perf_counter()
                watcher.ask(path)
                answers.append(time.perf_counter() - begin)
            over.wait(PAUSE)

    def visit(number: int) -> int:
        try:
            found = len(Client(port).restore(picture_of(side, number)))
            held.append(memory_of(process))
            return found
        except (RuntimeError, OSError) as error:
            errors.append(str(error))
            return 0

    watcher = Client(port)
    looking = threading.Thread(target=look)
    looking.start()
    begin = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        sizes = list(pool.map(visit, range(jobs)))
    took = time.perf_counter() - begin
    over.set()
    looking.join()
    time.sleep(3)
    return {
        "clients": clients,
        "jobs": jobs,
        "pixels": f"{4 * side} x {4 * side}",
        "results": sum(size > 0 for size in sizes),
        "errors": errors[:3],
        "seconds": round(took, 1),
        "answers": len(answers),
        "median answer [s]": round(statistics.median(answers), 3),
        "slowest answer [s]": round(max(answers), 3),
        "memory before [MB]": round(before),
        "memory after half of them [MB]": round(held[len(held) // 2]),
        "memory after [MB]": round(memory_of(process)),
        "cores": len(os.sched_getaffinity(0)),
        "load average": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--jobs", type=int, default=32, help="pictures in all")
    parser.add_argument("--side", type=int, default=24)
    parser.add_argument("--threads", type=int, help="of each job of the server; its own choice by default")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    words = [sys.executable, "-c", "from leader.cli import main; main()", "web", "--port", str(port)]
    if asked.threads is not None:
        words += ["--threads", str(asked.threads)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        _wait(port, server)
        found = measure(port, server.pid, asked.clients, asked.jobs, asked.side)
    finally:
        server.terminate()
        server.wait(60)
    print(json.dumps(found, indent=2))
    if asked.out is not None:
        with asked.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
    lost = found["results"] != asked.jobs
    grown = found["memory after [MB]"] > GROWTH * found["memory before [MB]"]
    sys.exit(1 if lost or grown or found["slowest answer [s]"] > SLOWEST else 0)


def _wait(port: int, server: subprocess.Popen[bytes]) -> None:
    """Until the server answers and has learned its pace."""
    end = time.monotonic() + 300
    while time.monotonic() < end and server.poll() is None:
        try:
            if json.loads(Client(port).ask("/health"))["running"] == 0:
                return
        except OSError:
            pass
        time.sleep(0.3)
    raise RuntimeError("The server did not answer.")


if __name__ == "__main__":
    main()
