"""What a restoration costs around its loop, part by part: `leader restore` on pictures of 256 px, task by task.

    python benchmarks/around.py --images photos/val                     # three pictures in turns, both precisions: tables in Markdown
    python benchmarks/around.py --images photos/val --task jpeg --task none --pictures 5 --dtype auto

Each run is a process of its own, as a user starts it; milliseconds of CPU time of one thread, so that other load on the machine
matters little, medians over pictures. Import is all from the start of Python to the first line of the command, torch's part of it
(an empty process that imports torch) beside; weights are those of prior and referee. Around is the share of everything but the
loop; the last column is the same without the import, as for `leader.restore` in a program that runs already.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from announced import Case
from common import Images, print_rows, read_crop
from PIL import Image

SIDE = 256
NONE = "none"
TASKS = ("sr", "deblur-gaussian", "jpeg", "denoise", "inpaint", NONE)
PARTS = ("import", "weights", "reading", "preparation", "loop", "map", "verdict", "writing", "rest")
CLOCK = "import around; around.clock_command()"


class Clock:
    """CPU milliseconds by part; a part within another does not count for that."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self.part, self.since = "import", 0.0

    def enter(self, part: str) -> str:
        """Counts for `part` from now on; returns the part before."""
        now, before = 1000 * time.process_time(), self.part
        self.spent[before] += now - self.since
        self.part, self.since = part, now
        return before

    def watch(self, owner: Any, name: str, part: str, within: str | None = None) -> None:
        """Counts a function for a part, only while another one is counted where `within` names it."""
        inner: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            if within not in (None, self.part):
                return inner(*args, **kwargs)
            before = self.enter(part)
            try:
                return inner(*args, **kwargs)
            finally:
                self.enter(before)

        setattr(owner, name, timed)


def clock_command() -> None:
    """In a process of its own: runs the command line given as arguments, and prints milliseconds by part."""
    from leader.cli.app import main
    from leader.cli.results import Results
    from leader.cli.running import run_and_tell  # noqa: F401 - what the command imports
    from leader.priors.base import Prior
    from leader.restoration import ensemble, restore
    from leader.trust import error_map

    clock = Clock()
    clock.enter("rest")
    clock.watch(restore, "prepare", "preparation")
    clock.watch(restore, "_load_prior", "weights")
    clock.watch(error_map, "referee_of", "weights")
    clock.watch(restore, "as_picture", "reading")
    clock.watch(ensemble, "drain", "loop")
    clock.watch(Prior, "predict", "network", within="loop")
    clock.watch(ensemble, "add_errors", "map")
    clock.watch(restore, "measure", "verdict")
    clock.watch(Results, "write", "writing")
    try:
        main()
    finally:
        clock.enter("rest")
        print(json.dumps(clock.spent))


def measure(task: str, truth: Image.Image, dtype: str) -> dict[str, float]:
    """Milliseconds by part of one run."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as name:
        words = Case("denoise" if task == NONE else task, SIDE).spoil(truth, Path(name))
        if task == NONE:
            words = [f"{name}/in.jpg"]
            with Image.open(f"{name}/in.png") as noisy:
                noisy.save(words[0], quality=80)
        command = [sys.executable, "-c", CLOCK, "restore", words[0], f"{name}/out.png", *words[1:], "--dtype", dtype]
        here, options = Path(__file__).parent, ["--keep-failed"]
        run = subprocess.run([*command, *options], cwd=here, env=environment, capture_output=True, text=True)
        if run.returncode:
            raise SystemExit(run.stderr)
    found: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return found


def main(
    images: Images,
    task: Annotated[list[str] | None, typer.Option(help="Tasks, none for no task; all by default.")] = None,
    pictures: int = 3,
    dtype: Annotated[list[str] | None, typer.Option(help="Precisions; auto and float32 by default.")] = None,
) -> None:
    from leader.bench.images import list_images

    crops = [read_crop(file, SIDE) for file in list_images(images)[:pictures]]
    for precision in dtype or ("auto", "float32"):
        found: dict[str, list[dict[str, float]]] = {name: [] for name in task or TASKS}
        for crop in crops:
            for name, runs in found.items():
                runs.append(measure(name, crop, precision))
        print(f"\n{precision}\n")
        print_rows([["task", *PARTS, "network", "around", "without import"], ["---", *["---:"] * (len(PARTS) + 3)]])
        for name, runs in found.items():
            spent = {part: median(run.get(part, 0.0) for run in runs) for part in (*PARTS, "network")}
            spent["loop"] += spent["network"]
            whole = sum(spent[part] for part in PARTS)
            shares = (1 - spent["loop"] / whole, 1 - spent["loop"] / (whole - spent["import"]))
            cells = [f"{spent[part]:.0f}" for part in (*PARTS, "network")]
            print_rows([[name, *cells, *(f"{100 * share:.0f} %" for share in shares)]])


if __name__ == "__main__":
    typer.run(main)
