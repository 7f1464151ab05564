"""This package beside what people would use instead: the same pictures in one run, each program in a process of its own.

    python benchmarks/peers.py setup                           # out/peers: an environment with the rivals, about 2 GB
    out/peers/bin/python benchmarks/peers.py run --images photos/test --count 8     # resumes; records/peers.jsonl
    python benchmarks/peers.py table                           # medians with quartiles, by task
    out/peers/bin/python benchmarks/peers.py sheet --images photos/test --out peers.webp

Central crops of 256 px of photographs at half size. Programs take turns at every picture, so that load on the machine falls on
all of them; seconds are processor seconds on one thread, without loading; memory is the process's largest, libraries and all.
"""

import os
import resource
import subprocess
import sys
import time
import venv
from contextlib import ExitStack, closing
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
import torch
import typer
from common import Images, append_records, locate_records, print_rows, read_records
from numpy.typing import NDArray
from peer_cases import MARGIN, SIDE, TASKS, Bytes, Case, make_case
from peer_rows import ROWS, Restore, Row
from PIL import Image, ImageDraw

from leader import __version__
from leader.bench.images import list_images, load_image, to_pixels
from leader.engines import Engine, make_engine
from leader.metrics import lpips, psnr

ROOT = Path(__file__).parent.parent
RECORDS = locate_records("peers")
Answer = tuple[NDArray[np.float32], float, float]
HEADS = {
    "enlarge": "thumbnail x 4",
    "noise": "noise of 50",
    "jpeg": "JPEG 20",
    "blur": "blur of 2 pixels",
    "hole": "hole of 76 pixels",
}
app = typer.Typer(add_completion=False, help=__doc__)


@app.command()
def setup(folder: Path = ROOT / "out" / "peers") -> None:
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt")]
    lines = (Path(__file__).parent / "peers.txt").read_text().split("# no dependencies\n")
    first, bare = ([line for line in part.splitlines() if line and not line.startswith("#")] for part in lines)
    subprocess.run([*pip, "torch"], check=True)
    subprocess.run([*pip, *first], check=True)
    subprocess.run([*pip, "--no-deps", *bare], check=True)
    subprocess.run([*pip, "--editable", str(ROOT)], check=True)


@app.command()
def run(images: Images = "photos/test", count: int = 8, task: list[str] = list(TASKS), budget: float = 1e9) -> None:  # noqa: B006
    """Restore every picture with every program, in turn; ends after `budget` seconds."""
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    end, done = time.monotonic() + budget, {(r["task"], r["picture"], r["row"]) for r in read_records(RECORDS)}
    for name in task:
        able = [row for row in ROWS if name in row.tasks]
        with ExitStack() as stack:
            workers = {row.name: stack.enter_context(closing(make_engine(1))) for row in able}
            for number, path in enumerate(list_images(images)[:count]):
                case, truth = make_case(name, _load(path), number)
                for row in able:
                    if (name, path.stem, row.name) in done or time.monotonic() > end:
                        continue
                    found = _ask(workers[row.name], row, case)
                    if found is None:
                        continue
                    what = {"task": name, "picture": path.stem, "row": row.name}
                    append_records(RECORDS, {**what, **_score(found, truth), "version": __version__})
                    typer.echo(f"{name:8} {path.stem[:24]:24} {row.name}")


def _ask(worker: Engine, row: Row, case: Case) -> Answer | None:
    """What a program makes of a case; None if it failed: a rival may do so in any way, and the others go on."""
    try:
        ((_, found),) = worker.map(partial(_answer, ROWS.index(row)), [case])
    except Exception as error:
        typer.echo(f"{row.name} failed: {type(error).__name__}: {error}", err=True)
        return None
    return found


_LOADED: dict[int, Restore] = {}


def _answer(index: int, case: Case) -> Answer:
    """What a program makes of a case in [0, 1], processor seconds and megabytes; in a process of its own."""
    if index not in _LOADED:
        _LOADED[index] = ROWS[index].load()
        _LOADED[index](case)  # the first use of anything costs more
    began = time.process_time()
    found = np.asarray(_LOADED[index](case))
    seconds = time.process_time() - began
    unit = found / 255 if found.dtype == np.uint8 else found
    return unit.astype(np.float32), seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _score(found: Answer, truth: Bytes) -> dict[str, Any]:
    """PSNR and LPIPS of the picture as 8 bits, processor seconds and megabytes."""
    picture, seconds, memory = found
    restored = torch.from_numpy((picture.clip(0, 1) * 255).round() / 255).permute(2, 0, 1)[None].float()
    wanted = torch.from_numpy(truth.copy()).permute(2, 0, 1)[None].float() / 255
    return {
        "psnr": round(float(psnr(restored, wanted)), 3),
        "lpips": round(float(lpips(restored, wanted)), 4),
        "seconds": round(seconds, 2),
        "memory": round(memory),
    }


def _load(path: Path) -> Bytes:
    return to_pixels(load_image(path, "half", SIDE + 2 * MARGIN)[0])


@app.command()
def table() -> None:
    """Print means of PSNR and LPIPS and the median of seconds with its quartiles, a column a task; the largest memory."""
    records = read_records(RECORDS)
    typer.echo("| program | " + " | ".join(HEADS.values()) + " | MB |\n| --- |" + " ---: |" * (len(HEADS) + 1))
    for row in ROWS:
        own = [r for r in records if r["row"] == row.name]
        cells = [_format([r for r in own if r["task"] == task]) for task in TASKS]
        print_rows([[row.name, *cells, max(r["memory"] for r in own)]])
    counts = {len([r for r in records if (r["row"], r["task"]) == (row.name, task)]) for row in ROWS for task in row.tasks}
    typer.echo(f"\nPhotographs: {' to '.join(str(count) for count in sorted(counts))}. {_name_versions()}")


def _format(rows: list[dict[str, Any]]) -> str:
    if len(rows) < 2:
        return "-"
    seconds = [r["seconds"] for r in rows]
    low, _, high = quantiles(seconds, n=4, method="inclusive")
    quality, distance = (sum(r[key] for r in rows) / len(rows) for key in ("psnr", "lpips"))
    return f"{quality:.2f} / {distance:.3f} / {median(seconds):.1f} s ({low:.1f} to {high:.1f})"


def _name_versions() -> str:
    lines = (Path(__file__).parent / "peers.txt").read_text().splitlines()
    pinned = [line.replace("==", " ") for line in lines if "==" in line]
    return "Versions: " + ", ".join([*pinned, f"torch {version('torch')}"]) + f"; Python {sys.version.split()[0]}."


@app.command()
def sheet(images: Images = "photos/test", number: int = 0, out: Path = Path("peers.webp"), size: int = 160) -> None:
    """Draw what every program made of one photograph: a row a task."""
    photograph = _load(list_images(images)[number])
    cases = {task: make_case(task, photograph, number) for task in TASKS}
    lines = {task: [("truth", truth)] for task, (_, truth) in cases.items()}
    for row in ROWS:
        with closing(make_engine(1)) as worker:
            for task in row.tasks:
                found = _ask(worker, row, cases[task][0])
                if found is not None:
                    lines[task].append((row.name, (found[0].clip(0, 1) * 255).round().astype(np.uint8)))
    _draw(list(lines.values()), size).save(out, quality=62)


def _draw(lines: list[list[tuple[str, Bytes]]], size: int) -> Image.Image:
    page = Image.new("RGB", (max(map(len, lines)) * size, len(lines) * (size + 14)), "white")
    pen = ImageDraw.Draw(page)
    for i, line in enumerate(lines):
        for j, (name, picture) in enumerate(line):
            inner = Image.fromarray(picture).resize((size - 4, size - 4), Image.Resampling.LANCZOS)
            page.paste(inner, (j * size + 2, i * (size + 14) + 14))
            pen.text((j * size + 2, i * (size + 14) + 2), name[:26], fill="black")
    return page


if __name__ == "__main__":
    app()
