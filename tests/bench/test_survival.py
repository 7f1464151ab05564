"""A run that is killed outright five times ends with the bytes of one that was left alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.tiny import write_tiny

SCRIPT = """
import os, random, signal, sys, time
from pathlib import Path
from leader.bench.experiment_file import load_experiment
from leader.bench.records import Store
from leader.bench.run import run_experiment
from leader.engines import make_engine

experiment = load_experiment(Path(sys.argv[1]))

def start(folder):
    # Forked before any computation: a start costs no imports.
    child = os.fork()
    if child == 0:
        run_experiment(experiment, Store(Path(folder), experiment.name), make_engine(), quiet=True)
        os._exit(0)
    return child

def lines(folder):
    path = Path(folder) / f"{experiment.name}.jsonl"
    return path.read_bytes().count(b"\\n") if path.exists() else 0

chance = random.Random(int(sys.argv[4]))
for _ in range(5):
    before, child = lines(sys.argv[2]), start(sys.argv[2])
    target = before + chance.randint(1, 6)
    while lines(sys.argv[2]) < target:
        time.sleep(0.0005)
    time.sleep(chance.random() * 0.02)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the run ended before it was killed"
    print(before, lines(sys.argv[2]))
for folder in sys.argv[2:4]:
    _, status = os.waitpid(start(folder), 0)
    assert status == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.slow
def test_five_kills_and_the_same_bytes(tmp_path: Path) -> None:
    path = write_tiny(tmp_path)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    command = [sys.executable, "-c", SCRIPT, str(path), str(killed), str(whole), "7"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    starts = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(starts) == 5 and all(after > before for before, after in starts)
    assert starts[-1][1] < 40  # the sixth start had something to do
    assert (killed / "tiny-small.jsonl").read_bytes() == (whole / "tiny-small.jsonl").read_bytes()
    assert (whole / "tiny-small.jsonl").read_bytes().count(b"\n") == 40
