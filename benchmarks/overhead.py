"""What a run costs beside its network passes: wall-clock of the whole over wall-clock inside the prior, host by host.

    python benchmarks/overhead.py                  # 256 px, 25 steps, two threads: a table in Markdown
    python benchmarks/overhead.py --host ddnm --size 128 --repeats 5
    python benchmarks/overhead.py --threads 1 --cpu     # CPU time instead of wall-clock: one thread of a busy machine
    python benchmarks/overhead.py --host standard       # quality standard, the other column: over the same without UCDC
    python benchmarks/overhead.py --host standard --head     # the same where both runs estimate Sigma

Both clocks run in the same run, so that other load on the machine touches them alike; the median over repeats is printed.
LEADer's column is its whole run over the host's in turn, SATP's budget 0, so that both visit the same times; the host estimates
no Sigma, so that its calls leave out the head.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from leader import Problem, Sampler, load_prior
from leader.methods import METHODS
from leader.operators import build_task, random_mask
from leader.presets.paths import find_path
from leader.priors.adapters import WrappedPrior
from leader.priors.base import Prediction, Prior
from leader.schedule import Grid

TASKS = {"sr": 0.05, "inpaint": 0.05, "cs": 0.05, "deblur-gaussian": 0.05, "deblur-motion": 0.05}
STANDARD = "standard"
INNER: dict[str, dict[str, Any]] = {"sitcom": {"inner": 3}}


class Timed(WrappedPrior):
    """A prior that adds up the seconds spent inside, backward passes not included."""

    def __init__(self, inner: Prior, clock: Callable[[], float]) -> None:
        super().__init__(inner)
        self.inside = 0.0
        self.clock = clock

    def predict(self, x: Tensor, t: Tensor) -> Prediction:
        begin = self.clock()
        answer = super().predict(x, t)
        self.inside += self.clock() - begin
        return answer


def problem(task: str, sigma: float, size: int) -> Problem:
    """A measurement of smooth noise: what is in the picture does not matter here."""
    x = torch.nn.functional.avg_pool2d(torch.rand(1, 3, size, size, generator=torch.Generator().manual_seed(0)), 5, 1, 2)
    options: dict[str, Any] = {"mask": random_mask(size, size, 0.5, 0)} if task == "inpaint" else {}
    return Problem.simulate(x, build_task(task, (3, size, size), **options), sigma, 0)


def ratio(prior: Timed, host: str, task: str, size: int, steps: int, head: bool) -> tuple[float, float]:
    """(whole over inside, LEADer's whole over the host's) of one pair of runs."""
    measured = problem(task, TASKS[task], size)
    plugins: tuple[str, ...] = ("leader",)
    grid: str | Grid | None = None
    settings = {**INNER.get(host, {}), "satp": {"budget": 0.0}}
    if host == STANDARD:
        path = find_path("embedded", measured.operator.task, TASKS[task], "standard", "natural")
        host, plugins, steps, grid, settings = str(path.method), path.plugins, path.steps, path.route(), dict(path.settings)
    others = tuple(name for name in plugins if name not in ("leader", "ucdc"))
    plain = {name: value for name, value in settings.items() if name not in ("satp", "ucdc")}
    prior.inside, begin = 0.0, prior.clock()
    Sampler(prior, host, others, steps, grid=grid, estimator="auto" if head else None, **plain).run(measured)
    alone = prior.clock() - begin
    share = alone / prior.inside
    begin = prior.clock()
    Sampler(prior, host, plugins, steps, grid=grid, **settings).run(measured)
    return share, (prior.clock() - begin) / alone


def main(
    host: Annotated[list[str] | None, typer.Option(help="Hosts; all by default.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Tasks; five by default.")] = None,
    size: int = 256,
    steps: int = 25,
    repeats: int = 3,
    threads: int = 2,
    head: Annotated[bool, typer.Option("--head", help="Sigma in the run without LEADer too, where nothing reads it.")] = False,
    cpu: Annotated[bool, typer.Option("--cpu", help="CPU time instead of wall-clock; ask for one thread.")] = False,
) -> None:
    torch.set_num_threads(threads)
    prior = Timed(load_prior("embedded"), time.process_time if cpu else time.perf_counter)
    tasks = task or list(TASKS)
    clock = "CPU" if cpu else "wall"
    typer.echo(f"{size} px, {steps} steps, {threads} threads, torch {torch.__version__}, {clock} time, medians of {repeats}\n")
    typer.echo("| host | " + " | ".join(f"{name} | + LEADer" for name in tasks) + " |")
    typer.echo("| --- |" + " ---: | ---: |" * len(tasks))
    for name in host or METHODS:
        cells = []
        for which in tasks:
            found = [ratio(prior, name, which, size, steps, head) for _ in range(repeats)]
            cells += [f"{median(share for share, _ in found):.3f}", f"{median(more for _, more in found):.3f}"]
        typer.echo(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    typer.run(main)
