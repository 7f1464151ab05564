"""Proofs about whole folders, each a command; every one appends its figures to --records (JSON lines).

python benchmarks/folders.py kill        SIGKILL at 20 random moments: the same bytes as an uninterrupted run
python benchmarks/folders.py memory      500 tiny pictures: the memory of worker and parent stays flat
python benchmarks/folders.py listing     2,000 done files against 500: no quadratic step
python benchmarks/folders.py throughput  two workers on two cores against one worker with two threads
python benchmarks/folders.py ray         three Ray nodes, one killed: the same bytes as a local run (needs ray)
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import append_records, locate_records, to_image

from leader.engines import Engine, LocalEngine, ProcessEngine
from leader.folders.choices import FolderChoices
from leader.folders.names import MANIFEST
from leader.folders.run import FolderOutcome, Watcher, run_folder
from leader.restoration.request import RestoreRequest

START = "from leader.cli import main; main()"
DENOISE = ("--task", "denoise", "--sigma", "0.05")
DRAFT = RestoreRequest("denoise", 0.05, quality="draft")
Figures = dict[str, Any]
RECORDS = locate_records("folders")


def make_pictures(folder: Path, count: int, side: int) -> Path:
    """`count` noisy pictures of `side` pixels, every third one in a folder of its own."""
    rows, columns = np.mgrid[:side, :side] / side
    for number in range(count):
        draw = np.random.default_rng(number)
        planes = [0.5 + 0.3 * np.sin(6 * rows + (3 + c) * columns + number) for c in range(3)]
        values = np.stack(planes, -1) + 0.05 * draw.standard_normal((side, side, 3))
        place = folder / ("more" if number % 3 == 0 else "") / f"{number:05d}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        to_image(255 * values).save(place)
    return folder


def results(out: Path) -> dict[str, bytes]:
    """Every file of an output folder but the manifest, hidden ones too."""
    files = (path for path in out.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


def manifest_lines(out: Path) -> list[Figures]:
    """The lines of a manifest without seconds; a torn end is left out."""
    if not (out / MANIFEST).exists():
        return []
    lines = [json.loads(text) for text in (out / MANIFEST).read_bytes().split(b"\n")[:-1]]
    for line in lines:
        line.pop("seconds", None)
        (line.get("run") or {}).pop("seconds", None)
    return lines


def kill(count: int = 60, side: int = 64, kills: int = 20, seed: int = 0) -> Figures:
    """A folder whose run is killed `kills` times, the parent alone or with its workers, against one left in peace."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        source = make_pictures(root / "in", count, side)
        out = root / "killed"
        words = [str(source), str(out), *DENOISE, "-q", "draft", "--maps", "npy", "--threads", "1"]
        whole_runs = 0
        for number in range(kills):
            before = len(manifest_lines(out)) - 1
            # early ones too, before the first picture of a run; one or two more are done before the signal arrives
            goal = max(before, 0) + draw.randint(0, max(0, 2 * (count - before) // (kills - number) - 3))
            jobs = str(number % 3)  # in this process, one worker, two workers
            process = subprocess.Popen(
                [sys.executable, "-c", START, "restore", *words, "--jobs", jobs],
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            while process.poll() is None and len(manifest_lines(out)) - 1 < goal:
                time.sleep(0.02)
            # then anywhere in the start of the program, in a picture, or between its files and its line
            end = time.monotonic() + draw.uniform(0, 8.0)
            while process.poll() is None and time.monotonic() < end and len(manifest_lines(out)) - 1 <= goal + 1:
                time.sleep(0.02)
            whole_runs += process.poll() is not None
            if draw.random() < 0.5:
                process.kill()  # its workers see that it is gone
            elif process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            print(f"kill {number + 1}: --jobs {jobs}, {len(manifest_lines(out)) - 1} of {count} recorded", flush=True)
        ended = subprocess.run([sys.executable, "-c", START, "restore", *words], stderr=subprocess.PIPE, text=True)
        calm = root / "calm"
        words[1] = str(calm)
        subprocess.run([sys.executable, "-c", START, "restore", *words], stderr=subprocess.DEVNULL, check=True)
        lines = [line for line in manifest_lines(out) if line["kind"] == "picture"]
        peace = {line["name"]: line for line in manifest_lines(calm) if line["kind"] == "picture"}
        same_lines = all(peace[line["name"]] == line for line in lines)
        return {
            "pictures": count,
            "side": side,
            "kills": kills,
            "kills_after_the_end": whole_runs,
            "exit_code": ended.returncode,
            "same_files": results(out) == results(calm),
            "same_lines": same_lines and len(lines) == len(peace),
            "restored_twice_once_recorded": len(lines) - len({line["name"] for line in lines}),
            "temporary_files": len([name for name in results(out) if name.startswith(".leader")]),
        }


def memory(count: int = 500, side: int = 16) -> Figures:
    """Resident memory of parent and worker while many tiny pictures are restored."""
    seen: list[tuple[int, float, float]] = []

    def finished(name: str, error: str | None) -> None:
        workers = [_resident(pid) for pid in _children(os.getpid())]
        seen.append((len(seen) + 1, _resident(os.getpid()), max(workers, default=0.0)))

    with tempfile.TemporaryDirectory() as name:
        source = make_pictures(Path(name) / "in", count, side)
        outcome = run_folder(
            str(source),
            f"{name}/out",
            FolderChoices(DRAFT),
            ProcessEngine(1, 1),
            maps=".npy",
            watcher=Watcher(finished=finished),
        )
    marks = [seen[index - 1] for index in (count // 10, count // 5, count // 2, count)]
    return {
        "pictures": outcome.restored,
        "side": side,
        "parent_mb": {number: round(parent, 1) for number, parent, _ in marks},
        "worker_mb": {number: round(worker, 1) for number, _, worker in marks},
        "worker_growth": round(marks[-1][2] / marks[1][2] - 1, 4),
        "parent_growth": round(marks[-1][1] / marks[1][1] - 1, 4),
    }


def listing(few: int = 500, many: int = 2000) -> Figures:
    """What a run takes that finds everything done, start of the program included."""
    figures: Figures = {"few": few, "many": many}
    quick = FolderChoices(RestoreRequest("denoise", 0.05, method="ddnm", plugins=(), steps=1), check=False, keep_failed=False)
    with tempfile.TemporaryDirectory() as name:
        for count in (few, many):
            source = make_pictures(Path(name) / f"in{count}", count, 16)
            out = f"{name}/out{count}"
            run_folder(str(source), out, quick, LocalEngine(1))
            inside, whole = [], []
            for _ in range(3):
                begin = time.process_time()
                assert run_folder(str(source), out, quick, LocalEngine(1)).found == count
                inside.append(time.process_time() - begin)
                whole.append(_command_seconds(str(source), out, count))
            figures[f"inside_{count}"], figures[f"command_{count}"] = round(min(inside), 3), round(min(whole), 3)
    figures["ratio_inside"] = round(figures[f"inside_{many}"] / figures[f"inside_{few}"], 2)
    figures["ratio_command"] = round(figures[f"command_{many}"] / figures[f"command_{few}"], 2)
    return figures


def _command_seconds(source: str, out: str, count: int) -> float:
    """Processor seconds of `leader restore` on a folder that is done."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["restore", source, out, *DENOISE, "--method", "ddnm", "--plugin", "none", "--steps", "1"]
    done = subprocess.run([sys.executable, "-c", START, *words, "--no-check"], capture_output=True, text=True, check=True)
    assert f"{count} found done" in done.stderr, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def throughput(count: int = 24, side: int = 128, rounds: int = 3) -> Figures:
    """Pictures per second once all workers run: the clock starts with the second answer. Rounds take turns.

    Other work on the machine slows two threads that wait for each other more than two processes that do not, so what it
    took of the cores is kept beside every pace.
    """
    paces: dict[str, list[float]] = {"1 x 2": [], "2 x 1": []}
    others: dict[str, list[float]] = {"1 x 2": [], "2 x 1": []}
    peaks: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        source = make_pictures(Path(name) / "in", count + 2, side)
        for number in range(rounds):
            for label, workers in (("1 x 2", ProcessEngine(1, 2)), ("2 x 1", ProcessEngine(2, 1))):
                times: list[float] = []
                most: list[float] = []

                def finished(name: str, error: str | None, times: list[float] = times, most: list[float] = most) -> None:
                    times.append(time.monotonic())
                    most.extend(_peak(pid) for pid in _children(os.getpid()))

                before = _processor_seconds()
                outcome = run_folder(
                    str(source), f"{name}/{label}{number}", FolderChoices(DRAFT), workers, watcher=Watcher(finished=finished)
                )
                own, busy, there = (after - first for after, first in zip(_processor_seconds(), before))
                others[label].append(max(0.0, busy - own) / there)
                assert outcome.restored == count + 2
                paces[label].append((len(times) - 2) / (times[-1] - times[1]))
                peaks[label] = max(most)
                print(label, f"{paces[label][-1]:.3f} pictures per second, others {others[label][-1]:.0%}", flush=True)
    ratios = [two / one for one, two in zip(paces["1 x 2"], paces["2 x 1"])]
    return {
        "pictures": count,
        "side": side,
        "one_worker_two_threads": [round(pace, 3) for pace in paces["1 x 2"]],
        "two_workers_one_thread": [round(pace, 3) for pace in paces["2 x 1"]],
        "ratio": round(sorted(ratios)[len(ratios) // 2], 2),
        "peak_mb_per_worker": {label: round(peak) for label, peak in peaks.items()},
        "others": {label: [round(share, 3) for share in shares] for label, shares in others.items()},
    }


def _processor_seconds() -> tuple[float, float, float]:
    """Of this program with the processes it has waited for, of all programs, and of all cores busy or not."""
    own = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    words = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]  # guests count as users already
    ticks = [int(word) / os.sysconf("SC_CLK_TCK") for word in words]
    return own, sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def ray(count: int = 24, side: int = 64) -> Figures:
    """Three nodes of a Ray cluster, one killed after the third picture."""
    import ray as library
    from ray.cluster_utils import Cluster

    from leader.engines.ray import RayEngine

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 80 << 20})
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=80 << 20) for _ in range(3)]
    cluster.wait_for_nodes()
    library.init(address=cluster.address, log_to_driver=False)
    arrived: list[str] = []

    def finished(name: str, error: str | None) -> None:
        arrived.append(name)
        if len(arrived) == 3:
            cluster.remove_node(nodes[0], allow_graceful=False)

    with tempfile.TemporaryDirectory() as name:
        source = make_pictures(Path(name) / "in", count, side)

        def run(out: str, workers: Engine, watcher: Watcher) -> FolderOutcome:
            return run_folder(str(source), f"{name}/{out}", FolderChoices(DRAFT), workers, maps=".npy", watcher=watcher)

        outcome = run("ray", RayEngine(threads=1), Watcher(finished=finished))
        left = sum(1 for node in library.nodes() if node["Alive"]) - 1
        library.shutdown()
        cluster.shutdown()
        run("here", LocalEngine(1), Watcher())
        same = results(Path(name) / "ray") == results(Path(name) / "here")
    return {
        "pictures": count,
        "side": side,
        "restored": outcome.restored,
        "failed": len(outcome.failed),
        "nodes_left": left,
        "same_files": same,
    }


def _children(parent: int) -> list[int]:
    """The processes that a process started and that still run."""
    text = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii")
    return [int(word) for word in text.split()]


def _resident(process: int) -> float:
    """MB in memory now; 0 where it has ended."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _peak(process: int) -> float:
    """MB in memory at most so far; 0 where it has ended."""
    try:
        text = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return next((int(line.split()[1]) / 1e3 for line in text.splitlines() if line.startswith("VmHWM")), 0.0)


PROOFS: dict[str, Callable[..., Figures]] = {
    "kill": kill,
    "memory": memory,
    "listing": listing,
    "throughput": throughput,
    "ray": ray,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("proof", choices=PROOFS)
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--seed", type=int, help="of the moments of kill")
    parser.add_argument("--rounds", type=int, help="of throughput")
    given = parser.parse_args()
    words = {name: getattr(given, name) for name in ("seed", "rounds") if getattr(given, name) is not None}
    figures = PROOFS[given.proof](**words)
    line = {"proof": given.proof, **figures, "python": platform.python_version(), "machine": platform.machine()}
    given.records.parent.mkdir(parents=True, exist_ok=True)
    append_records(given.records, line)
    print(json.dumps(line, indent=2))


if __name__ == "__main__":
    main()
