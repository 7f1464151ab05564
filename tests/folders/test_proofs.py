"""A run that is killed anywhere ends in the bytes of one left in peace; and looking for what is done takes linear time."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leader.folders.disk import DiskSource, DiskTarget
from tests.folders.conftest import go, lines, results, save_picture


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="signals")
def test_killed_runs_end_in_the_same_bytes(tmp_path: Path) -> None:
    """The program alone, whose workers see that it is gone, or with its workers; in this process, with one worker and two."""
    draw, source, out, calm = random.Random(1), tmp_path / "in", tmp_path / "out", tmp_path / "calm"
    source.mkdir()
    for number in range(8):
        save_picture(source / f"{number}.png", 32, 32)
    words = ["--task", "denoise", "--sigma", "0.05", "-q", "draft", "--maps", "npy", "--threads", "1", "--no-check"]
    command = [sys.executable, "-c", "from leader.cli import main; main()", "restore", str(source)]
    for number in range(3):
        jobs = ["--jobs", str(number)]
        run = subprocess.Popen([*command, str(out), *words, *jobs], stderr=subprocess.DEVNULL, start_new_session=True)
        end, goal = time.monotonic() + 60, 2 * number + 1
        while run.poll() is None and time.monotonic() < end:
            if (out / "leader-manifest.jsonl").exists() and (out / "leader-manifest.jsonl").read_bytes().count(b"\n") > goal:
                break
            time.sleep(0.02)
        time.sleep(draw.uniform(0, 0.3))
        if number == 1 or run.poll() is not None:
            run.kill()
        else:
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()
    for folder in (out, calm):
        subprocess.run([*command, str(folder), *words], stderr=subprocess.DEVNULL, check=True)
    assert results(out) == results(calm), "and nothing temporary is left"
    assert sorted(line["name"] for line in lines(out) if line["kind"] == "picture") == sorted(os.listdir(source))


def _counting(real: Callable[[Any, str], Any], asked: list[str]) -> Callable[[Any, str], Any]:
    def counted(self: Any, word: str) -> Any:
        asked.append(word)
        return real(self, word)

    return counted


def test_done_files_are_found_in_linear_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: how often the disk is asked, and every line read once."""
    asked: list[str] = []
    for kind, name in ((DiskTarget, "size"), (DiskSource, "sha256"), (DiskTarget, "sha256")):
        monkeypatch.setattr(kind, name, _counting(getattr(kind, name), asked))
    counts = []
    for number in (5, 10):
        source = tmp_path / f"in{number}"
        source.mkdir()
        for index in range(number):
            save_picture(source / f"{index}.png")
        go(source, tmp_path / f"out{number}")
        asked.clear()
        assert go(source, tmp_path / f"out{number}").found == number
        counts.append(len(asked))
    assert counts[1] == 2 * counts[0]
