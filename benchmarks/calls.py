"""How many network calls a picture needs: the informed start and shorter grids against a host's own 100 steps.

    python benchmarks/calls.py run                    # embedded prior, 16 test crops of 128 px, six tasks; resumes
    python benchmarks/calls.py run --model FOLDER     # a DDPM that others trained: FOLDER holds network.py, weights.safetensors
    python benchmarks/calls.py table                  # paired differences with 95 % intervals; also with --model

Calls are what costs on a network of constant cost; the embedded prior's early calls are nearly free, so that its `standard`
path is chosen by work instead (benchmarks/tuning.py). The model of --model is a 63-million-parameter DDPM of anime faces
(64 px, T = 300, cosine); its pictures are drawn by the model itself (DDIM, 25 steps), which flatters it: they show what a path
costs, not how good the model is. Twelve others, drawn the same way, give the spectrum of its informed start. Nothing of that
model is kept here; records are (benchmarks/records/calls-*.jsonl). One thread, images one by one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import torch
import typer
from paths import BARS
from torch import Tensor

from leader import Problem, Sampler, Schedule, load_prior
from leader.bench.images import list_images, load_image
from leader.bench.statistics import bootstrap_interval
from leader.metrics import lpips, psnr
from leader.operators import build_task, random_mask
from leader.priors.adapters import NetworkPrior
from leader.priors.base import Prior
from leader.priors.spectrum import Spectrum
from leader.train.spectrum import Rings

FOLDER = Path(__file__).parent / "records"
HOSTS = ("ddnm", "diffpir")
DRAWN, FITTED = 8, 12
MOST = 35
"""Calls that may take the place of the host's own 100."""

app = typer.Typer(add_completion=False, help=__doc__)


@dataclass(frozen=True)
class Route:
    """A way through the times: name, steps, grid, plug-ins and their settings."""

    name: str
    steps: int
    grid: str | None = None
    plugins: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)


REFERENCE = Route("own 100", 100)
STARTED = Route("informed start, 33", 33, None, ("start",), {"start": {"spread": True}})
ROUTES = (
    REFERENCE,
    Route("quadratic 33", 33, "quadratic"),
    STARTED,
    Route("own 33", 33),
    Route("constant start 300", 100, "uniform", ("start",), {"start": {"time": 300}}),
    Route("informed start, 15", 15, None, ("start",), {"start": {"spread": True}}),
    Route("quadratic 15", 15, "quadratic"),
    Route("uniform 15", 15, "uniform"),
    Route("quadratic 50", 50, "quadratic"),
    Route("uniform 50", 50, "uniform"),
)


@dataclass(frozen=True)
class Study:
    """A prior, the pictures it is tried on [N, 3, S, S] in [0, 1], and the tasks: (operator, noise) by name."""

    name: str
    size: int
    tasks: dict[str, tuple[str, float]]

    @property
    def records(self) -> Path:
        return FOLDER / f"calls-{self.name}.jsonl"

    def stored(self) -> dict[tuple[str, str, str, int], dict[str, Any]]:
        lines = self.records.read_text(encoding="utf-8").splitlines() if self.records.exists() else []
        return {(r["route"], r["task"], r["host"], r["picture"]): r for r in map(json.loads, lines)}


EMBEDDED = Study(
    "embedded",
    128,
    {
        "sr-clean": ("sr", 0.0),
        "sr": ("sr", 0.05),
        "gauss": ("deblur-gaussian", 0.05),
        "motion": ("deblur-motion", 0.05),
        "cs": ("cs", 0.05),
        "inpaint": ("inpaint", 0.0),
    },
)
ANIME = Study("anime64", 64, {"sr-clean": ("sr", 0.0), "gauss": ("deblur-gaussian", 0.05), "inpaint": ("inpaint", 0.0)})


def load_model(folder: Path) -> Prior:
    """The model of a folder as a prior."""
    sys.path.insert(0, str(folder))
    network = __import__("network")
    weights = network.load(str(folder / "weights.safetensors"))
    return NetworkPrior(weights, Schedule(network.betas()), predicts="eps", size=(64, 64), name="anime64")


def drawn(prior: Prior, store: Path) -> Tensor:
    """[DRAWN + FITTED, 3, 64, 64] in [-1, 1]: plain DDIM from t = 288 in 25 steps, kept in `store` between calls."""
    if store.exists():
        kept: Tensor = torch.load(store, weights_only=True)
        return kept
    x = torch.cat([torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(i)) for i in range(DRAWN + FITTED)])
    with torch.no_grad():
        for now, after in pairwise((*range(288, -1, -12), -1)):
            t, level = torch.tensor([now]), prior.schedule.level(torch.tensor([after]), x)
            answers = [prior.predict(one, t) for one in torch.split(x, 1)]
            x = torch.cat([level.signal * answer.x0 + level.noise * answer.eps for answer in answers])
    store.parent.mkdir(parents=True, exist_ok=True)
    torch.save(x.clamp(-1, 1), store)
    return x.clamp(-1, 1)


def picture_spectrum(pictures: Tensor) -> Spectrum:
    """The power of whole pictures by frequency, all that an informed start asks for; errors count as shaped alike."""
    rings = Rings(int(pictures.shape[-2]), int(pictures.shape[-1]))
    colour = pictures.double().mean((0, 2, 3))
    power, means = rings.power(pictures.double() - colour.reshape(1, -1, 1, 1))
    return Spectrum(torch.zeros(1, dtype=torch.float64), rings.radii, power[None], means[None], power, means, colour)


def cells(
    tasks: Iterable[str], hosts: Iterable[str], routes: Sequence[Route], pictures: int
) -> Iterator[tuple[Route, str, str, int]]:
    """(route, task, host, picture), picture by picture, so that a part of it is a comparison on fewer pictures."""
    for index in range(pictures):
        yield from ((route, task, host, index) for task in tasks for host in hosts for route in routes)


def measure(study: Study, prior: Prior, clean: Tensor, route: Route, task: str, host: str, index: int) -> dict[str, Any]:
    """The record of one run on clean [1, 3, S, S] in [0, 1]."""
    name, sigma = study.tasks[task]
    options: dict[str, Any] = {"seed": index} if name == "deblur-motion" else {}
    if name == "inpaint":
        options = {"mask": random_mask(study.size, study.size, 0.5, index)}
    problem = Problem.simulate(clean, build_task(name, (3, study.size, study.size), **options), sigma, 0, ids=[index])
    sampler = Sampler(prior, host, route.plugins, route.steps, grid=route.grid, estimator=None, **route.settings)
    result = sampler.run(problem, 0, ids=[index])
    shown = ((result.images + 1) / 2).clamp(0, 1)
    return {
        "psnr": round(float(psnr(shown, clean)), 4),
        "lpips": round(float(lpips(shown, clean)), 5),
        "calls": result.ledger.total.calls,
        "first": result.trace[index][0].t,
    }


@app.command()
def run(
    model: Annotated[Path | None, typer.Option(help="Folder of the DDPM; the embedded prior by default.")] = None,
    pictures: Annotated[int, typer.Option(help="At most so many: 16 crops, 8 drawn ones.")] = 16,
    host: Annotated[list[str] | None, typer.Option(help="These hosts only.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="These tasks only.")] = None,
    route: Annotated[list[str] | None, typer.Option(help="These paths only, by name.")] = None,
    store: Annotated[Path, typer.Option(help="Where drawn pictures are kept.")] = Path("out/anime64-drawn.pt"),
) -> None:
    """Run what has no record yet."""
    torch.set_num_threads(1)
    if model is None:
        study, prior = EMBEDDED, load_prior("embedded")
        shown = [load_image(path, "crop", study.size) for path in list_images("test")]
    else:
        study, prior = ANIME, load_model(model)
        made = drawn(prior, store)
        prior.spectrum = picture_spectrum(made[DRAWN:])
        shown = [(one[None] + 1) / 2 for one in made[:DRAWN]]
    done = study.stored()
    wanted = [one for one in ROUTES if route is None or one.name in route]
    for one, what, who, index in cells(task or study.tasks, host or HOSTS, wanted, min(pictures, len(shown))):
        if (one.name, what, who, index) in done:
            continue
        found = measure(study, prior, shown[index], one, what, who, index)
        with study.records.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"route": one.name, "task": what, "host": who, "picture": index, **found}) + "\n")
        typer.echo(f"{one.name}, {what}, {who}, picture {index}: {found['psnr']:.2f} dB", err=True)


@app.command()
def table(model: Annotated[bool, typer.Option("--model", help="Of the DDPM that others trained.")] = False) -> None:
    """Means, and paired differences from the host's own 100 steps with 95 % intervals over pictures."""
    study = ANIME if model else EMBEDDED
    records = study.stored()
    typer.echo("| task | host | path | calls | pictures | PSNR | LPIPS | PSNR against 100 | LPIPS against 100 | verdict |")
    typer.echo("| --- | --- | --- | ---: | ---: | ---: | ---: | --- | --- | --- |")
    for task in study.tasks:
        for host in HOSTS:
            for route in ROUTES:
                rows = [
                    (found, records[(REFERENCE.name, task, host, picture)])
                    for (name, what, who, picture), found in records.items()
                    if (name, what, who) == (route.name, task, host) and (REFERENCE.name, task, host, picture) in records
                ]
                if len(rows) > 1:
                    typer.echo(f"| {task} | {host} | {route.name} | {_line(rows)} |")


def _line(rows: list[tuple[dict[str, Any], dict[str, Any]]]) -> str:
    """Means, paired differences, and whether the path is not inferior with at most MOST calls."""
    cells, worse = [], []
    for name, digits, sign in (("psnr", 2, 1), ("lpips", 3, -1)):
        change = [found[name] - reference[name] for found, reference in rows]
        low, high = bootstrap_interval(change)
        cells.append(f"{mean(change):+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]")
        worst = low if sign > 0 else high
        if sign * mean(change) < sign * BARS[name][0] or sign * worst < sign * BARS[name][1]:
            worse.append(f"{name.upper()} inferior")
    values = [mean(found[name] for found, _ in rows) for name in ("calls", "psnr", "lpips")]
    verdict = "; ".join(worse) or ("not inferior" if values[0] <= MOST else "more calls than asked")
    return f"{values[0]:.0f} | {len(rows)} | {values[1]:.2f} | {values[2]:.3f} | {cells[0]} | {cells[1]} | {verdict}"


if __name__ == "__main__":
    app()
