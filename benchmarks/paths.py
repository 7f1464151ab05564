"""Short paths against the papers' path: candidates for what --quality and --look stand for (src/leader/presets/paths.toml).

    python benchmarks/paths.py run --images photos/val          # resumes; records in benchmarks/records/paths.jsonl
    python benchmarks/paths.py table                            # differences from DDNM + LEADer, 100 uniform steps
    python benchmarks/paths.py test --seeds 3                   # what was chosen, on the shipped test crops, with a verdict

128 px central crops of photographs at half size, one seed, the noise of the photograph's position, presets on, one thread.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from leader import Prior, Problem, Sampler, load_prior
from leader.bench.images import list_images, load_image
from leader.bench.statistics import change_of
from leader.metrics import lpips, psnr
from leader.operators import build_task, random_mask
from leader.presets.paths import LOOKS, RunPath, find_path
from leader.schedule import Grid

RECORDS = Path(__file__).parent / "records" / "paths.jsonl"
TESTED = RECORDS.with_name("paths-test.jsonl")
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
HOSTS = {
    "sr-clean": ("ddnm", "projdiff"),
    "sr": ("ddnm", "projdiff"),
    "gauss": ("projdiff", "ddnm"),
    "motion": ("ddnm", "ddrm"),
    "cs": ("idpg", "projdiff"),
    "inpaint": ("idpg", "projdiff"),
}
"""The hosts that the screening of benchmarks/front left, by task."""
CHOSEN: dict[str, tuple[str, tuple[str, ...]]] = {
    "sr-clean": ("ddnm", ("leader",)),
    "sr": ("ddnm", ("leader",)),
    "gauss": ("projdiff", ()),
    "motion": ("ddnm", ("ucpm",)),
    "cs": ("ddnm", ()),
    "inpaint": ("projdiff", ()),
}
"""What is taken to other lengths, on four photographs."""
PAPER = ("ddnm", ("leader",), 100, None)
Point = tuple[str, str, tuple[str, ...], int, str | None, int]

app = typer.Typer(add_completion=False, help=__doc__)


def points(photographs: int) -> Iterator[Point]:
    """(task, host, plug-ins, steps, grid, photograph), comparable ones close in time."""
    for index in range(photographs):
        for task, hosts in HOSTS.items():
            yield task, *PAPER, index
            for host in hosts:
                for plugins in ((), ("leader",), ("ucpm",)):
                    yield task, host, plugins, 23, "quadratic", index
        yield "cs", "ddnm", (), 23, "quadratic", index
        for task, (host, added) in CHOSEN.items():
            if index < 4:
                yield from ((task, host, added, steps, "quadratic", index) for steps in (10, 60))


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
        return [self.name, self.task, *said, index, seed]


def choices(task: str, looks: Iterable[str] = LOOKS) -> Iterator[Choice]:
    """The papers' path and the standard quality's looks."""
    name, sigma = TASKS[task]
    yield Choice("paper", task, RunPath(PAPER[0], PAPER[2], "the papers", PAPER[3], PAPER[1]))
    for look in looks:
        yield Choice(look, task, find_path("embedded", "sr-bicubic" if name == "sr" else name, sigma, "standard", look))


def measure(
    point: Point,
    photograph: Path,
    seed: int = 0,
    fit: str = "half",
    settings: dict[str, Any] | None = None,
    times: tuple[int, ...] = (),
    runs: int = 1,
) -> dict[str, Any]:
    """The record of one run, or of the mean of several; `times` are visited instead of the grid where there are any."""
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
        "key": [task, host, list(plugins), steps, grid, index],
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


def stored() -> dict[str, dict[str, Any]]:
    lines = RECORDS.read_text(encoding="utf-8").splitlines() if RECORDS.exists() else []
    return {json.dumps(record["key"]): record for record in map(json.loads, lines)}


@app.command()
def run(
    images: Annotated[str, typer.Option(help="A folder of development photographs.")],
    photographs: Annotated[int, typer.Option(help="How many of them.")] = 8,
) -> None:
    """Run what has no record yet."""
    torch.set_num_threads(1)
    files, done, todo = list_images(images), stored(), list(points(photographs))
    RECORDS.parent.mkdir(exist_ok=True)
    for number, point in enumerate(todo):
        if json.dumps([point[0], point[1], list(point[2]), *point[3:]]) in done:
            continue
        with RECORDS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(measure(point, files[point[-1]])) + "\n")
        typer.echo(f"{number + 1} of {len(todo)}", err=True)


@app.command()
def test(
    seeds: Annotated[int, typer.Option(help="Runs of every crop, 0, 1, ...")] = 3,
    task: Annotated[list[str] | None, typer.Option(help="These tasks only.")] = None,
    look: Annotated[list[str] | None, typer.Option(help="These looks only.")] = None,
    only_table: Annotated[bool, typer.Option("--only-table", help="Run nothing: print what is recorded.")] = False,
) -> None:
    """Run the papers' path and the standard quality on the 16 test crops, then print paired differences and a verdict."""
    torch.set_num_threads(1)
    lines = TESTED.read_text(encoding="utf-8").splitlines() if TESTED.exists() else []
    records = {json.dumps(record["key"]): record for record in map(json.loads, lines)}
    crops, compared = list_images("test"), [(name, list(choices(name, look or LOOKS))) for name in task or TASKS]
    for seed in range(0 if only_table else seeds):
        for _, tried in compared:
            for index, photograph in enumerate(crops):
                for one in tried:
                    key = one.key(index, seed)
                    if json.dumps(key) in records:
                        continue
                    path = one.path
                    assert isinstance(path.method, str), "a path that was found has its method by name"
                    point = (one.task, path.method, path.plugins, path.steps, path.grid, index)
                    found = {**measure(point, photograph, seed, "crop", path.settings, path.times, path.average), "key": key}
                    records[json.dumps(key)] = found
                    with TESTED.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(found) + "\n")
    typer.echo(
        "| task | look | crops x seeds | PSNR | LPIPS | PSNR against paper | LPIPS against paper | work "
        "| least crop | verdict |"
    )
    typer.echo("| --- | --- | ---: | ---: | ---: | --- | --- | ---: | ---: | --- |")
    for _, tried in compared:
        rows = [
            {
                (i, seed): records[name]
                for i in range(len(crops))
                for seed in range(seeds)
                if (name := json.dumps(one.key(i, seed))) in records
            }
            for one in tried
        ]
        for one, row in zip(tried[1:], rows[1:]):
            typer.echo(f"| {one.task} | {one.name} | {_tested(row, rows[0])} |")


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


@app.command()
def table() -> None:
    """Print means and paired differences from the papers' path, with 95 % intervals over photographs."""
    rows: dict[tuple[Any, ...], dict[int, dict[str, Any]]] = {}
    for record in stored().values():
        task, host, plugins, steps, grid, index = record["key"]
        rows.setdefault((task, host, tuple(plugins), steps, grid), {})[index] = record
    typer.echo(
        "| task | host | plug-ins | steps | photographs | PSNR | LPIPS | PSNR against paper | LPIPS against paper | work |"
    )
    typer.echo("| --- | --- | --- | ---: | ---: | ---: | ---: | --- | --- | ---: |")
    for (task, host, plugins, steps, grid), found in rows.items():
        words = f"{task} | {host} | {'+'.join(plugins) or '-'} | {steps} {grid or 'uniform'} | {len(found)}"
        typer.echo(f"| {words} | {_compared(found, rows[(task, *PAPER)])} |")


if __name__ == "__main__":
    app()
