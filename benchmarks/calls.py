"""How many network calls a picture needs: parts of a host's own 100 steps, other grids and the informed start against all 100.

    python benchmarks/calls.py run --images photos/val --pictures 4     # embedded prior, development photographs: every path
    python benchmarks/calls.py run --chosen --seeds 3                   # what was chosen there, on the 16 test crops of 128 px
    python benchmarks/calls.py run --model FOLDER --development         # a DDPM that others trained: FOLDER holds network.py,
    python benchmarks/calls.py run --model FOLDER --chosen              # weights.safetensors
    python benchmarks/calls.py run --model FOLDER --front               # two plain grids of three lengths
    python benchmarks/calls.py table                                    # paired differences with 95 % intervals; also with
                                                                        # --model and --development; all of it resumes

Calls are what costs on a network of constant cost; the embedded prior's early calls are nearly free, so that its `standard`
path is chosen by work instead (benchmarks/tuning.py). A path may spend 35 % of the calls of the host's own grid of 100 steps.
The paths that are parts of that grid ("late", "thinned") see at each time the very noise that the whole grid sees there.

The model of --model is a 63-million-parameter DDPM of anime faces (64 px, T = 300, cosine); its pictures are drawn by the
model itself (DDIM, 25 steps), which flatters it: they show what a path costs, not how good the model is. Twelve others, drawn
the same way, give the spectrum of its informed start, and four of them are its development pictures. Nothing of that model is
kept here; records are (benchmarks/records/calls-*.jsonl). One thread, images one by one.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from leader import Problem, Sampler, Schedule, load_prior
from leader.bench.images import list_images, load_image
from leader.bench.statistics import change_of
from leader.methods import make_method
from leader.metrics import lpips, psnr
from leader.operators import build_task, random_mask
from leader.priors.adapters import NetworkPrior
from leader.priors.base import Prior
from leader.priors.spectrum import Spectrum
from leader.schedule import Grid
from leader.train.spectrum import Rings

FOLDER = Path(__file__).parent / "records"
HOSTS = ("ddnm", "diffpir")
DRAWN, FITTED = 8, 12
SHARE = 0.35
"""Of the calls of the host's own 100 steps, how many may take their place."""
LENGTHS = (10, 25, 50)
"""Steps of the plain shorter grids."""
DENSE, FIFTH, TENTH = 0.25, 0.2, 0.1
"""Of the host's steps, how many "thinned", "opened" and "opened wider" keep one by one at the end."""

app = typer.Typer(add_completion=False, help=__doc__)
Part = Callable[[Grid], Sequence[int]]
"""Which positions of the host's own 100 steps a path keeps."""


def late(grid: Grid) -> Sequence[int]:
    """The last ones that the share allows."""
    last = len(grid.times) - 1
    return range(last - int(SHARE * grid.visits), last)


def jump(grid: Grid) -> Sequence[int]:
    """The first one, and the last ones."""
    return (0, *late(grid)[1:])


def halved(grid: Grid) -> Sequence[int]:
    """Every second one, twice as far up."""
    last, count = len(grid.times) - 2, int(SHARE * grid.visits)
    return range(last - 2 * (count - 1), last + 1, 2)


def opened(grid: Grid, share: float = FIFTH) -> Sequence[int]:
    """A share of all at the end, one by one; above it every second one, as far up as the calls reach."""
    last, few = len(grid.times) - 1, int(SHARE * grid.visits) - int(share * grid.visits)
    dense = range(last - int(share * grid.visits), last)
    return (*range(dense[0] - 2 * few, dense[0], 2), *dense)


def thinned(grid: Grid) -> Sequence[int]:
    """A quarter of all at the end, one by one; above it what the share leaves, with equally spaced roots of their times."""
    last, few = len(grid.times) - 1, int(SHARE * grid.visits) - int(DENSE * grid.visits)
    dense = range(last - int(DENSE * grid.visits), last)
    high, low = (math.sqrt(grid.clock[k]) for k in (0, dense[0]))
    wanted = [(high + (low - high) * i / few) ** 2 for i in range(few)]
    above = [min(range(dense[0]), key=lambda k: abs(grid.clock[k] - time)) for time in wanted]
    return (*dict.fromkeys(above), *dense)


def picked(grid: Grid, positions: Sequence[int]) -> Grid:
    """Those positions of a grid; their draws stay what they are in the whole of it."""
    kept = (*positions, len(grid.times) - 1)
    times, clock, labels = (tuple(row[k] for k in kept) for row in (grid.times, grid.clock, grid.labels))
    return Grid(times, False, clock, labels)


@dataclass(frozen=True)
class Route:
    """A way through the times: its name, steps of a grid by name, or a part of the host's own; plug-ins and settings."""

    name: str
    steps: int = 100
    grid: str | None = None
    plugins: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    part: Part | None = None

    def times(self, host: str, schedule: Schedule) -> Grid | str | None:
        """What the sampler is told of the grid."""
        if self.part is None:
            return self.grid
        whole = make_method(host, {}).default_grid(schedule, self.steps)
        return picked(whole, self.part(whole))


REFERENCE = Route("own 100")
FROM_MEAN: dict[str, Any] = {"start": {"time": 999}}
"""No later than the first time of the part that is visited: E[x0 | y] there."""
FROM_DRAW: dict[str, Any] = {"start": {"time": 999, "draw": True}}
FRONT = tuple(Route(f"{grid or 'own'} {steps}", steps, grid) for grid in (None, "quadratic") for steps in LENGTHS)
"""Plain shorter grids: the front of a network of constant cost."""
ROUTES = (
    REFERENCE,
    Route("jump", part=jump),
    Route("late", plugins=("start",), settings=FROM_MEAN, part=late),
    Route("late, drawn", plugins=("start",), settings=FROM_DRAW, part=late),
    Route("opened", plugins=("start",), settings=FROM_MEAN, part=opened),
    Route("opened, drawn", plugins=("start",), settings=FROM_DRAW, part=opened),
    Route("opened wider", plugins=("start",), settings=FROM_MEAN, part=partial(opened, share=TENTH)),
    Route("thinned", part=thinned),
    Route("halved", plugins=("start",), settings=FROM_MEAN, part=halved),
    Route("quadratic 33", 33, "quadratic"),
    Route("informed start, 33", 33, None, ("start",), {"start": {"spread": True}}),
    Route("own 33", 33),
    Route("noise 33", 33, "noise"),
    *FRONT,
)
CHOSEN: dict[str, dict[tuple[str, str], str]] = {
    "embedded": {(task, host): "late" for task in ("sr-clean", "sr", "gauss", "motion", "cs", "inpaint") for host in HOSTS}
    | {(task, "diffpir"): "opened" for task in ("sr", "motion")},
    "anime64": {(task, host): "late" for task in ("sr-clean", "gauss", "inpaint") for host in HOSTS}
    | {(task, "diffpir"): "opened wider" for task in ("sr-clean", "gauss")},
}
"""What is taken to the test pictures, by prior, task and host: the best on the development pictures."""


@dataclass(frozen=True)
class Study:
    """A prior with its test or its development pictures [N, 3, S, S] in [0, 1], and the tasks: (operator, noise) by name."""

    name: str
    size: int
    tasks: dict[str, tuple[str, float]]

    development: bool = False

    @property
    def records(self) -> Path:
        return FOLDER / f"calls-{self.name}{'-val' if self.development else ''}.jsonl"

    def stored(self) -> dict[tuple[str, str, str, int, int], dict[str, Any]]:
        """Records by path, task, host, picture and seed; those without a seed are of seed 0."""
        lines = self.records.read_text(encoding="utf-8").splitlines() if self.records.exists() else []
        return {(r["route"], r["task"], r["host"], r["picture"], r.get("seed", 0)): r for r in map(json.loads, lines)}


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
    study: Study, tasks: Iterable[str], hosts: Sequence[str], names: Sequence[str] | None, pictures: int, seeds: int
) -> Iterator[tuple[Route, str, str, int, int]]:
    """(path, task, host, picture, seed), so that a part of it is a comparison on fewer seeds or pictures.

    names  the paths that are run beside the reference; None: the one that was chosen for task and host
    """
    for seed, index, task, host in product(range(seeds), range(pictures), tasks, hosts):
        kept = (CHOSEN[study.name].get((task, host)),) if names is None else names
        yield from ((route, task, host, index, seed) for route in ROUTES if route is REFERENCE or route.name in kept)


def measure(
    study: Study, prior: Prior, clean: Tensor, route: Route, task: str, host: str, index: int, seed: int
) -> dict[str, Any]:
    """The record of one run on clean [1, 3, S, S] in [0, 1]."""
    name, sigma = study.tasks[task]
    options: dict[str, Any] = {"seed": index} if name == "deblur-motion" else {}
    if name == "inpaint":
        options = {"mask": random_mask(study.size, study.size, 0.5, index)}
    problem = Problem.simulate(clean, build_task(name, (3, study.size, study.size), **options), sigma, seed, ids=[index])
    grid = route.times(host, prior.schedule)
    sampler = Sampler(prior, host, route.plugins, route.steps, grid=grid, estimator=None, **route.settings)
    result = sampler.run(problem, seed, ids=[index])
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
    images: Annotated[
        str | None, typer.Option(help="Development photographs for the embedded prior, not the test crops.")
    ] = None,
    development: Annotated[bool, typer.Option("--development", help="Development pictures of the DDPM.")] = False,
    chosen: Annotated[bool, typer.Option("--chosen", help="Only the reference and what was chosen.")] = False,
    pictures: Annotated[int, typer.Option(help="At most so many: 16 crops, 8 drawn ones.")] = 16,
    seeds: Annotated[int, typer.Option(help="Runs of every picture, 0, 1, ...")] = 1,
    host: Annotated[list[str] | None, typer.Option(help="These hosts only.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="These tasks only.")] = None,
    route: Annotated[list[str] | None, typer.Option(help="These paths and the reference only, by name.")] = None,
    front: Annotated[bool, typer.Option("--front", help="Only the reference and plain shorter grids.")] = False,
    store: Annotated[Path, typer.Option(help="Where drawn pictures are kept.")] = Path("out/anime64-drawn.pt"),
) -> None:
    """Run what has no record yet."""
    torch.set_num_threads(1)
    if model is None:
        study, prior = replace(EMBEDDED, development=images is not None), load_prior("embedded")
        files, fit = (list_images("test"), "crop") if images is None else (list_images(images)[:pictures], "half")
        shown = [load_image(path, fit, study.size) for path in files]
    else:
        study, prior = replace(ANIME, development=development), load_model(model)
        made = drawn(prior, store)
        prior.spectrum = picture_spectrum(made[DRAWN:])
        shown = [(one[None] + 1) / 2 for one in (made[DRAWN : DRAWN + 4] if development else made[:DRAWN])]
    done, names = study.stored(), None if chosen else route or [one.name for one in (FRONT if front else ROUTES)]
    for one, what, who, index, seed in cells(
        study, task or study.tasks, host or HOSTS, names, min(pictures, len(shown)), seeds
    ):
        if (one.name, what, who, index, seed) in done:
            continue
        found = measure(study, prior, shown[index], one, what, who, index, seed)
        said = {"route": one.name, "task": what, "host": who, "picture": index, "seed": seed, **found}
        with study.records.open("a", encoding="utf-8") as file:
            file.write(json.dumps(said) + "\n")
        typer.echo(f"{one.name}, {what}, {who}, picture {index}, seed {seed}: {found['psnr']:.2f} dB", err=True)


@app.command()
def table(
    model: Annotated[bool, typer.Option("--model", help="Of the DDPM that others trained.")] = False,
    development: Annotated[bool, typer.Option("--development", help="Of the development pictures.")] = False,
    chosen: Annotated[bool, typer.Option("--chosen", help="Only what was chosen.")] = False,
) -> None:
    """Means, and paired differences from the host's own 100 steps with 95 % intervals over pictures."""
    study = replace(ANIME if model else EMBEDDED, development=development)
    records = study.stored()
    typer.echo(
        "| task | host | path | calls | pictures x seeds | PSNR | LPIPS | PSNR against 100 | LPIPS against 100 | verdict |"
    )
    typer.echo("| --- | --- | --- | ---: | ---: | ---: | ---: | --- | --- | --- |")
    for task, host, route in product(study.tasks, HOSTS, ROUTES[1:]):
        if chosen and CHOSEN[study.name].get((task, host)) != route.name:
            continue
        pairs: dict[int, list[Pair]] = {}
        for (name, what, who, picture, seed), found in records.items():
            reference = records.get((REFERENCE.name, task, host, picture, seed))
            if (name, what, who) == (route.name, task, host) and reference is not None:
                pairs.setdefault(picture, []).append((found, reference))
        if len(pairs) > 1:
            typer.echo(f"| {task} | {host} | {route.name} | {_line(list(pairs.values()))} |")


Pair = tuple[dict[str, Any], dict[str, Any]]
"""A record and that of the host's own 100 steps with the same seed."""


def _line(pictures: list[list[Pair]]) -> str:
    """Means, paired differences with seeds averaged inside a picture, and whether the path is not inferior within its calls."""
    changes = {
        name: change_of(name, [mean(found[name] - reference[name] for found, reference in pairs) for pairs in pictures])
        for name in ("psnr", "lpips")
    }
    worse = [f"{name.upper()} inferior" for name, change in changes.items() if change.inferior]
    calls, score, distance = (
        mean(mean(found[name] for found, _ in pairs) for pairs in pictures) for name in ("calls", "psnr", "lpips")
    )
    allowed = SHARE * mean(mean(reference["calls"] for _, reference in pairs) for pairs in pictures)
    verdict = "; ".join(worse) or ("not inferior" if calls <= allowed else "more calls than asked")
    shown, words = f"{len(pictures)} x {min(map(len, pictures))}", " | ".join(change.words for change in changes.values())
    return f"{calls:.0f} | {shown} | {score:.2f} | {distance:.3f} | {words} | {verdict}"


if __name__ == "__main__":
    app()
