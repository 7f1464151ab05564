"""Short paths against the papers' path: candidates for what --quality and --look stand for (src/leader/presets/paths.toml).

    python benchmarks/paths.py run --images photos/val          # resumes; records in benchmarks/records/paths.jsonl
    python benchmarks/paths.py table                            # differences from DDNM + LEADer, 100 uniform steps
    python benchmarks/paths.py test                             # what was chosen, on the shipped test crops

128 px central crops of photographs at half size, one seed, the noise of the photograph's position, presets on, one thread.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import torch
import typer

from leader import Prior, Problem, Sampler, load_prior
from leader.bench.images import list_images, load_image
from leader.bench.statistics import bootstrap_interval
from leader.metrics import lpips, psnr
from leader.operators import build_task, random_mask
from leader.presets.paths import LOOKS, find_path

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


def chosen(index: int) -> Iterator[tuple[str, Point, dict[str, Any]]]:
    """(name, point, settings) of the papers' path and of the standard quality's looks, for every task."""
    for task, (name, sigma) in TASKS.items():
        yield "paper", (task, *PAPER, index), {}
        for look in LOOKS:
            path = find_path("embedded", "sr-bicubic" if name == "sr" else name, sigma, "standard", look)
            if (path.method, path.plugins, path.steps, path.grid) != PAPER:
                yield look, (task, path.method, path.plugins, path.steps, path.grid, index), path.settings


def measure(
    point: Point, photograph: Path, seed: int = 0, fit: str = "half", settings: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The record of one run."""
    task, host, plugins, steps, grid, index = point
    name, sigma = TASKS[task]
    options: dict[str, Any] = {"seed": index} if name == "deblur-motion" else {}
    if name == "inpaint":
        options = {"mask": random_mask(SIZE, SIZE, 0.5, index)}
    picture = load_image(photograph, fit, SIZE)
    problem = Problem.simulate(picture, build_task(name, (3, SIZE, SIZE), **options), sigma, seed, ids=[index])
    started = time.perf_counter()
    sampler = Sampler(_prior(), host, plugins, steps, grid=grid, **(settings or {}))
    result = sampler.run(problem, seed, ids=[index])
    seconds = time.perf_counter() - started
    shown = ((result.images + 1) / 2).clamp(0, 1)
    total = result.ledger.total
    return {
        "key": [task, host, list(plugins), steps, grid, index],
        "psnr": round(float(psnr(shown, picture)), 4),
        "lpips": round(float(lpips(shown, picture)), 5),
        "calls": total.calls,
        "work": round(total.pixels / SIZE**2, 2),
        "s": round(seconds, 2),
    }


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
def test(seeds: Annotated[int, typer.Option(help="Runs of every crop, 0, 1, ...")] = 1) -> None:
    """Run the papers' path and the standard quality on the 16 test crops, then print paired differences."""
    torch.set_num_threads(1)
    lines = TESTED.read_text(encoding="utf-8").splitlines() if TESTED.exists() else []
    records = {json.dumps(record["key"]): record for record in map(json.loads, lines)}
    for seed in range(seeds):
        for index, photograph in enumerate(list_images("test")):
            for look, point, settings in chosen(index):
                key = [look, point[0], point[1], list(point[2]), *point[3:], seed]
                if json.dumps(key) not in records:
                    found = {**measure(point, photograph, seed, "crop", settings), "key": key}
                    records[json.dumps(key)] = found
                    with TESTED.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(found) + "\n")
    typer.echo("| task | look | runs | PSNR | LPIPS | PSNR against paper | LPIPS against paper | work |")
    typer.echo("| --- | --- | ---: | ---: | ---: | --- | --- | ---: |")
    rows: dict[tuple[str, str], dict[tuple[int, int], dict[str, Any]]] = {}
    for record in records.values():
        rows.setdefault((record["key"][1], record["key"][0]), {})[(record["key"][-2], record["key"][-1])] = record
    for (task, look), tried in rows.items():
        typer.echo(f"| {task} | {look} | {len(tried)} | {_compared(tried, rows[(task, 'paper')])} |")


def _compared(found: dict[Any, dict[str, Any]], paper: dict[Any, dict[str, Any]]) -> str:
    """Means, paired differences with 95 % intervals, work."""
    shared = sorted(found.keys() & paper.keys())
    cells = []
    for name, digits in (("psnr", 2), ("lpips", 3)):
        change = [found[i][name] - paper[i][name] for i in shared]
        low, high = bootstrap_interval(change)
        cells.append(f"{mean(change):+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]")
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
