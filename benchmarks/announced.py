"""Is the time that `leader restore` announces the time it takes? Command lines over tasks, sizes, qualities and looks.

    python benchmarks/announced.py run --images photos/val       # resumes; records/announced.jsonl
    python benchmarks/announced.py table                         # the share within a factor of 1.5, and the longest silence

Each run is a process of its own on one thread, as a user starts it. Announced is the number on the line "This will take
about"; taken is from the line after it until the result is written and named. A run that is not announced counts as right
where it takes less than 3 seconds: from 2 seconds on it should have been. Other programs on the machine change the pace
within a run: the load (of the last minute) is recorded beside. Silence is the longest time without a line while it runs.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from subprocess import PIPE, STDOUT
from typing import Annotated

import numpy as np
import typer
from common import Images, Record, add_missing, locate_records, print_rows, read_crop, read_records, to_image
from PIL import Image, ImageFilter

from leader.bench.images import list_images

RECORDS = locate_records("announced")
FACTOR, UNTOLD = 1.5, 3.0
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
LINE = re.compile(r"This will take (?:about|at most) ([\d.]+) (s|min|h)\b")
BEGUN = "Noise level sigma"
app = typer.Typer(add_completion=False, help=__doc__)


@dataclass(frozen=True)
class Case:
    """A command line: a task, the side of the result in pixels, a quality and a look."""

    task: str
    side: int
    quality: str = "standard"
    look: str = "natural"

    def spoil(self, truth: Image.Image, folder: Path) -> list[str]:
        """Writes the degraded picture; the words of the command line that belong to it."""
        file, options = folder / "in.png", ["--task", self.task]
        if self.task == "jpeg":
            file = folder / "in.jpg"
            truth.save(file, quality=20)
            return [str(file), *options]
        if self.task == "sr":
            truth.resize((self.side // 4, self.side // 4), Image.Resampling.BICUBIC).save(file)
            return [str(file), *options]
        if self.task == "colourise":
            truth.convert("L").save(file)
            return [str(file), *options]
        level = 25.0
        if self.task.startswith("deblur"):
            truth, level = truth.filter(ImageFilter.GaussianBlur(1.5)), 3.0
            options += ["--kernel", "gaussian:1.5" if self.task == "deblur-gaussian" else "auto"]
        if self.task == "inpaint":
            level, mask = 0.0, np.full((self.side, self.side), 255, np.uint8)
            mask[self.side // 3 : self.side // 2, self.side // 4 : self.side // 2] = 0
            Image.fromarray(mask).save(folder / "mask.png")
            options += ["--mask", str(folder / "mask.png")]
        noise = level * np.random.default_rng(self.side).standard_normal((self.side, self.side, 3))
        to_image(np.asarray(truth) + noise).save(file)
        return [str(file), *options]


def list_cases() -> Iterator[Case]:
    """Every task at three sizes, then other qualities and looks."""
    for side in (192, 384, 96):
        for task in ("denoise", "sr", "deblur-gaussian", "deblur", "inpaint", "jpeg"):
            yield Case(task, side)
    yield Case("sr", 256, "draft")
    yield Case("inpaint", 192, "best")
    yield Case("jpeg", 192, "best", "faithful")
    yield Case("colourise", 256, "standard", "faithful")


def measure(case: Case, photograph: Path) -> Record:
    """What one command line announces and takes."""
    with tempfile.TemporaryDirectory() as name:
        words = case.spoil(read_crop(photograph, case.side), Path(name))
        chosen = ["--quality", case.quality, "--look", case.look, "--keep-failed"]
        command = [sys.executable, "-c", "from leader.cli import main; main()", "restore", words[0], f"{name}/out.png"]
        announced, marks, begun, named = None, [time.monotonic()], None, None
        whole_line, environment = [*command, *words[1:], *chosen], {**os.environ, "OMP_NUM_THREADS": "1"}
        with subprocess.Popen(whole_line, stdout=PIPE, stderr=STDOUT, text=True, env=environment) as process:
            assert process.stdout is not None
            for line in process.stdout:
                marks.append(time.monotonic())
                if line.strip() == command[-1]:
                    named = marks[-1]
                if found := LINE.match(line):
                    announced = float(found[1]) * UNITS[found[2]]
                if begun is None and line.startswith(BEGUN):
                    begun = marks[-1]
        if begun is None or named is None or process.returncode != 0:
            raise SystemExit(f"{case} ended with exit code {process.returncode}.")
    silence = max(after - now for now, after in pairwise(mark for mark in marks if begun <= mark <= named))
    load = round(os.getloadavg()[0], 1)
    return {"announced": announced, "taken": round(named - begun, 2), "silence": round(silence, 1), "load": load}


def is_right(record: Record) -> bool:
    """Whether a run took what was announced, within the factor."""
    announced, taken = record["announced"], float(record["taken"])
    return taken <= UNTOLD if announced is None else max(announced / taken, taken / announced) <= FACTOR


@app.command()
def run(
    images: Images,
    budget: Annotated[float, typer.Option(help="Ends after so many seconds.")] = 1e9,
) -> None:
    """Run what has no record yet."""
    photographs = list_images(images)
    jobs = (
        (asdict(case), partial(measure, case, photographs[number % len(photographs)]))
        for number, case in enumerate(list_cases())
    )
    add_missing(RECORDS, jobs, budget)


@app.command()
def table() -> None:
    """Print every run, and the share that took what was announced."""
    records = read_records(RECORDS)
    print("| task | side | quality, look | announced | taken | longest silence | load |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: |")
    for one in records:
        announced = "-" if one["announced"] is None else f"{one['announced']:.0f} s"
        wrong = "" if is_right(one) else " **"
        cells = (one["task"], one["side"], f"{one['quality']}, {one['look']}", announced, f"{one['taken']:.1f} s{wrong}")
        print_rows([[*cells, f"{one['silence']} s", one["load"]]])
    right, told = sum(map(is_right, records)), [one for one in records if one["announced"] is not None]
    ratios = sorted(one["announced"] / one["taken"] for one in told)
    print(
        f"\nWithin a factor of {FACTOR}: {right} of {len(records)}, of {len(told)} announced {sum(map(is_right, told))}; "
        f"announced over taken {ratios[0]:.2f} to {ratios[-1]:.2f}, median {median(ratios):.2f}; "
        f"longest silence {max(one['silence'] for one in records)} s."
    )


if __name__ == "__main__":
    app()
