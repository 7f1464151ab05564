"""What a restoration costs around its loop, part by part: `leader restore` on pictures of 256 px, task by task.

    python benchmarks/around.py --images photos/val             # three pictures in turns, both precisions: tables in Markdown
    python benchmarks/around.py --images photos/val --task jpeg --task none --pictures 5 --dtype auto

Each run is a process of its own, as a user starts it; milliseconds of CPU time of one thread, so that other load on the machine
matters little, medians over pictures. Import is all from the start of Python to the first line of the command; what an empty
process spends on importing torch is printed below. Weights are those of prior and referee; rest is the command line and the
measurement of the pace. Around is the share of all but the loop; the last column is the same without the import, as for
`leader.restore` in a program that runs already.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from announced import Case
from common import Images, print_rows, read_crop
from PIL import Image

from leader.bench.images import list_images

SIDE = 256
NONE = "none"
TASKS = ("sr", "deblur-gaussian", "jpeg", "denoise", "inpaint", NONE)
PARTS = ("import", "weights", "reading", "preparation", "loop", "map", "verdict", "writing", "rest")
TORCH = "import torch, time; print(1000 * time.process_time())"


def run_python(*words: str) -> str:
    """The last line that a new process prints; compiled files are kept, as an installation has them."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    run = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(run.stderr)
    return run.stdout.splitlines()[-1]


def measure(task: str, truth: Image.Image, dtype: str) -> dict[str, float]:
    """Milliseconds by part of one run."""
    with tempfile.TemporaryDirectory() as name:
        words = Case("denoise" if task == NONE else task, SIDE).spoil(truth, Path(name))
        if task == NONE:
            words = [f"{name}/in.jpg"]
            with Image.open(f"{name}/in.png") as noisy:
                noisy.save(words[0], quality=80)
        command = ("restore", words[0], f"{name}/out.png", *words[1:], "--dtype", dtype, "--keep-failed")
        found: dict[str, float] = json.loads(run_python(str(Path(__file__).with_name("around_clock.py")), *command))
    return found


def main(
    images: Images,
    task: Annotated[list[str] | None, typer.Option(help="Tasks, none for no task; all by default.")] = None,
    pictures: int = 3,
    dtype: Annotated[list[str] | None, typer.Option(help="Precisions; auto and float32 by default.")] = None,
) -> None:
    crops = [read_crop(file, SIDE) for file in list_images(images)[:pictures]]
    measure(NONE, crops[0], "auto")  # compiles what has not been compiled
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
    print(f"\nAn empty process that imports torch: {median(float(run_python('-c', TORCH)) for _ in range(5)):.0f} ms.")


if __name__ == "__main__":
    typer.run(main)
