"""Short paths against the papers' path: what --quality and --look stand for (src/leader/presets/paths.toml) on the test crops.

    python benchmarks/paths.py test --seeds 3              # what was chosen, on the shipped test crops, with a verdict
    python benchmarks/paths.py test --against before       # beside what it was without the metric of Sigma

128 px central crops, the noise of the photograph's position, presets on, one thread. The trials on development photographs from
which they were chosen are those of benchmarks/tuning.py.
"""

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import torch
import typer
from common import Record, add_missing, locate_records, print_rows, read_records
from torch import Tensor

from leader import Prior, Problem, Sampler, load_prior
from leader.bench.images import list_images, load_image
from leader.bench.statistics import change_of
from leader.metrics import lpips, psnr
from leader.operators import build_task, random_mask
from leader.presets.paths import LOOKS, RunPath, find_path
from leader.schedule import Grid

RECORDS = locate_records("paths-test")
SIZE = 128
TASKS = {
    "sr-clean": ("sr", 0.0),
    "sr": ("sr", 0.05),
    "gauss": ("deblur-gaussian", 0.05),
    "motion": ("deblur-motion", 0.05),
    "cs": ("cs", 0.05),
    "inpaint": ("inpaint", 0.0),
}
OTHERS = {
    "sr 0.002": ("sr", 0.002),
    "sr 0.01": ("sr", 0.01),
    "sr 0.02": ("sr", 0.02),
    "sr 0.1": ("sr", 0.1),
    "hole": ("inpaint", 0.0),
    "noisy hole": ("inpaint", 0.02),
    "noisy half": ("inpaint", 0.05),
    "lines": ("inpaint", 0.0),
    "sparse": ("inpaint", 0.0),
}
"""Further noise levels and masks, on which choices for the six tasks are tried."""
PAPER = ("ddnm", ("ucpm", "satp"), 100, None)
LATE = (999, 902, 809, 722, 639, 562, 490, 422, 360, 302, 250, 205, 170, 140, 113, 90, 70, 52, 36, 22, 10, -1)
NOISY = (999, 902, 809, 722, 639, 562, 490, 422, 360, 302, 252, 212, 178, 149, 124, 102, 83, 66, 51, 37, 24, -1)
SHARP = (990, 300, 252, 208, 169, 133, 102, 75, 52, 33, 19, 8, 2, 0, -1)
_MASKED = RunPath("projdiff", 21, "0.1.0", "quadratic", settings={"step": 1.5})
BEFORE = {
    **dict.fromkeys(("inpaint", "sparse", "hole", "lines"), _MASKED),
    **dict.fromkeys(("noisy hole", "noisy half"), RunPath("projdiff", 21, "0.1.0", "quadratic", settings={"early_step": 1.3})),
    "sr-clean": RunPath("projdiff", 21, "0.1.0", settings={"step": 1.3}, times=LATE),
    "sr": RunPath("projdiff", 21, "0.1.0", settings={"step": 0.5, "early_step": 1.8}, times=NOISY),
    "gauss": RunPath("projdiff", 14, "0.1.0", times=SHARP),
    "motion": RunPath("ddnm", 21, "0.1.0", "quadratic", settings={"eta": 0.7}),
    "cs": RunPath("projdiff", 32, "0.1.0", "quadratic", ("start",), {"early_step": 1.3, "start": {"time": 150}}),
}
"""Quality standard, natural look, of version 0.1.0: no data step in the metric of Sigma."""
Point = tuple[str, str, tuple[str, ...], int, str | None, int]


@dataclass(frozen=True)
class Choice:
    """A path on a task: the papers' or what a look of the standard quality stands for."""

    name: str
    task: str
    path: RunPath

    def key(self, index: int, seed: int) -> list[Any]:
        """What a record of it on a crop is stored under: all that its numbers depend on."""
        path = self.path
        said = [path.method, list(path.plugins), path.steps, path.grid, path.settings, list(path.times), path.average]
        found: list[Any] = json.loads(json.dumps([self.name, self.task, *said, index, seed]))
        return found

    def measure(self, index: int, photograph: Path, seed: int) -> Record:
        """The record of it on a crop."""
        path = self.path
        assert isinstance(path.method, str), "a path that was found has its method by name"
        point = (self.task, path.method, path.plugins, path.steps, path.grid, index)
        return measure(point, photograph, seed, "crop", path.settings, path.times, path.average)


def choices(task: str, looks: Iterable[str] = LOOKS, against: str = "paper") -> Iterator[Choice]:
    """The papers' path, or the standard one of before, and the standard quality's looks."""
    name, sigma = (TASKS | OTHERS)[task]
    paper = RunPath(PAPER[0], PAPER[2], "the papers", PAPER[3], PAPER[1])
    yield Choice(against, task, paper if against == "paper" else BEFORE[task])
    known = float(mask_of(task, 0).mean()) if name == "inpaint" else 1.0
    for look in looks:
        yield Choice(look, task, find_path("embedded", "sr-bicubic" if name == "sr" else name, sigma, "standard", look, known))


def measure(
    point: Point,
    photograph: Path,
    seed: int = 0,
    fit: str = "half",
    settings: dict[str, Any] | None = None,
    times: tuple[int, ...] = (),
    runs: int = 1,
) -> Record:
    """The scores of one run, or of the mean of several; `times` are visited instead of the grid where there are any."""
    task, host, plugins, steps, grid, index = point
    name, sigma = (TASKS | OTHERS)[task]
    options: dict[str, Any] = {"seed": index} if name == "deblur-motion" else {}
    if name == "inpaint":
        options = {"mask": mask_of(task, index)}
    picture = load_image(photograph, fit, SIZE)
    problem = Problem.simulate(picture, build_task(name, (3, SIZE, SIZE), **options), sigma, seed, ids=[index])
    started = time.perf_counter()
    sampler = Sampler(_prior(), host, plugins, steps, grid=Grid(times) if times else grid, **(settings or {}))
    results = [sampler.run(problem, seed + 1000 * k, ids=[index]) for k in range(runs)]
    seconds = time.perf_counter() - started
    shown = ((torch.stack([result.images for result in results]).mean(0) + 1) / 2).clamp(0, 1)
    totals = [result.ledger.total for result in results]
    return {
        "psnr": round(float(psnr(shown, picture)), 4),
        "lpips": round(float(lpips(shown, picture)), 5),
        "calls": sum(total.calls for total in totals),
        "work": round(sum(total.pixels for total in totals) / SIZE**2, 2),
        "s": round(seconds, 2),
    }


def mask_of(task: str, index: int) -> Tensor:
    """Half of the pixels missing; a hole of 40 px; strokes three pixels wide; four of five missing."""
    mask = torch.ones(SIZE, SIZE)
    if task in ("hole", "noisy hole"):
        top, left = torch.randint(16, 64, (2,), generator=torch.Generator().manual_seed(index)).tolist()
        mask[top : top + 40, left : left + 40] = 0
    elif task == "lines":
        rows = torch.arange(SIZE)
        mask[rows % 16 < 3] = 0
        for beside in range(2):
            mask[rows, (rows * 3 // 2 + beside) % SIZE] = 0
    else:
        mask = random_mask(SIZE, SIZE, 0.8 if task == "sparse" else 0.5, index)
    return mask


@cache
def _prior() -> Prior:
    return load_prior("embedded")


app = typer.Typer(add_completion=False, help=__doc__)


@app.callback()
def main() -> None:
    """One command, by its name."""


@app.command()
def test(
    seeds: Annotated[int, typer.Option(help="Runs of every crop, 0, 1, ...")] = 3,
    task: Annotated[list[str] | None, typer.Option(help="These tasks only.")] = None,
    look: Annotated[list[str] | None, typer.Option(help="These looks only.")] = None,
    against: Annotated[str, typer.Option(help="paper, or before: version 0.1.0, natural look, more masks.")] = "paper",
    only_table: Annotated[bool, typer.Option("--only-table", help="Run nothing: print what is recorded.")] = False,
) -> None:
    """Run the papers' path and the standard quality on the 16 test crops, then print paired differences and a verdict."""
    torch.set_num_threads(1)
    looks = look or (LOOKS if against == "paper" else ["natural"])
    crops, names = list_images("test"), task or (TASKS if against == "paper" else BEFORE)
    compared = [(name, list(choices(name, looks, against))) for name in names]
    jobs = (
        ({"key": one.key(index, seed)}, partial(one.measure, index, photograph, seed))
        for seed in range(seeds)
        for _, tried in compared
        for index, photograph in enumerate(crops)
        for one in tried
    )
    if not only_table:
        add_missing(RECORDS, jobs)
    records = {json.dumps(record["key"]): record for record in read_records(RECORDS)}
    print(
        f"| task | look | crops x seeds | PSNR | LPIPS | PSNR against {against} | LPIPS against {against} | work "
        "| least crop | verdict |"
    )
    print("| --- | --- | ---: | ---: | ---: | --- | --- | ---: | ---: | --- |")
    runs = list(product(range(len(crops)), range(seeds)))
    for _, tried in compared:
        named = [{run: json.dumps(one.key(*run)) for run in runs} for one in tried]
        rows = [{run: records[name] for run, name in names.items() if name in records} for names in named]
        for one, row in zip(tried[1:], rows[1:]):
            print_rows([[one.task, one.name, _tested(row, rows[0])]])


Scores = dict[Any, dict[str, Any]]


def _by_crop(found: Scores, paper: Scores) -> tuple[dict[int, dict[str, float]], dict[int, dict[str, float]], int]:
    """Both sides crop by crop, averaged over the seeds that both have, and how many seeds the poorest crop has."""
    seeds: dict[int, list[int]] = {}
    for index, seed in sorted(found.keys() & paper.keys()):
        seeds.setdefault(index, []).append(seed)
    names = ("psnr", "lpips", "work")
    sides = [
        {i: {name: mean(side[(i, k)][name] for k in of) for name in names} for i, of in seeds.items()}
        for side in (found, paper)
    ]
    return sides[0], sides[1], min(map(len, seeds.values()), default=0)


def _tested(found: Scores, paper: Scores) -> str:
    """Crops x seeds, means, paired differences, work, the crop that loses most PSNR, and the verdict."""
    ours, theirs, seeds = _by_crop(found, paper)
    if len(ours) < 2:
        return f"{len(ours)} | not measured"
    words = []
    for name in ("psnr", "lpips"):
        change = change_of(name, [ours[i][name] - theirs[i][name] for i in ours])
        words += [f"{name.upper()} inferior"] * change.inferior + [f"{name.upper()} better"] * (
            change.better and not change.inferior
        )
    verdict = "; ".join(words) if any("inferior" in word for word in words) else "; ".join(["not inferior", *words])
    least = min(ours[i]["psnr"] - theirs[i]["psnr"] for i in ours)
    return f"{len(ours)} x {seeds} | {_compared(ours, theirs)} | {least:+.2f} | {verdict}"


def _compared(found: Scores, paper: Scores) -> str:
    """Means, paired differences with 95 % intervals, work."""
    shared = sorted(found.keys() & paper.keys())
    cells = [change_of(name, [found[i][name] - paper[i][name] for i in shared]).words for name in ("psnr", "lpips")]
    values = {name: mean(found[i][name] for i in shared) for name in ("psnr", "lpips", "work")}
    return f"{values['psnr']:.2f} | {values['lpips']:.3f} | {cells[0]} | {cells[1]} | {values['work']:.1f}"


if __name__ == "__main__":
    app()
