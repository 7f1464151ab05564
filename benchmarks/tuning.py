"""Trials on development photographs behind src/leader/presets/paths.toml: methods, starts, grids and settings for short paths.

    python benchmarks/tuning.py run metric --images photos/val --photographs 8      # what a round has no scores of
    python benchmarks/tuning.py table                                   # all trials by task, best first
    python benchmarks/tuning.py table --of screening                    # those of one round
    python benchmarks/tuning.py compare settled cs                      # a round's trials of one task beside the first of them

A line of benchmarks/records/tuning.jsonl is a trial: the rounds it belongs to, what is run (fields of `Trial`, without those
that are as usual) and, by photograph, PSNR in dB, LPIPS and work in passes. A line without scores is a trial to be run; of two
lines of one trial all scores count. Crops, noise and scores are those of benchmarks/paths.py.

Rounds: screening (hosts with and without UCPM and SATP), starts and settings (14 passes or less), lengths, relaxed, noisy and
early (over-relaxed ProjDiff, late ends, means), others (further noise levels and masks), metric, sensing, closer, qualities and
beyond (the data step in the metric of Sigma), further and settled (where it left something open), hosts, softer and rows (the
same on the papers' own paths), claims (those again by what the paper claims, with draws), again (DDNM once more, and what was
left to try on short paths), drawn (draws on short paths), related (DCDP in the metric), cheaper (fewer iterations and
frequencies on the default paths), narrow (correlations of lower noise), closest, chosen and twice (opposed noise on short
paths, and means of two such runs), early-solves (fewer iterations at early times), third (DDNM with LEADer on compressed
sensing once more), textured (few known pixels).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from statistics import mean
from typing import Annotated, Any

import torch
import typer
from common import locate_records, print_rows, read_records
from paths import OTHERS, PAPER, TASKS, measure

from leader.bench.images import list_images
from leader.errors import LeaderError, unknown_name

RECORDS = locate_records("tuning")
WEIGHT = 20
"""Decibels that an LPIPS of 1 is worth, where candidates are put in one order: the papers' tables trade at about that."""


@dataclass
class Trial:
    """A run that could be what a quality and a look stand for.

    times   the very times, where no named grid has them
    runs    how many runs are averaged
    rounds  what it belongs to
    scores  PSNR, LPIPS and work by photograph
    """

    task: str
    method: str
    plugins: tuple[str, ...] = ()
    steps: int = 21
    grid: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    times: tuple[int, ...] = ()
    runs: int = 1
    rounds: set[str] = field(default_factory=set)
    scores: dict[int, list[float]] = field(default_factory=dict)

    @classmethod
    def read(cls, line: dict[str, Any]) -> Trial:
        kinds: dict[str, Any] = {"plugins": tuple, "times": tuple, "rounds": set}
        values = {item.name: kinds.get(item.name, lambda x: x)(line[item.name]) for item in fields(cls) if item.name in line}
        return cls(**{**values, "scores": {int(index): score for index, score in line.get("scores", {}).items()}})

    @property
    def said(self) -> dict[str, Any]:
        """What is run, without what is as usual."""
        usual = asdict(Trial("", "", steps=0))
        told = {name: value for name, value in asdict(self).items() if value != usual[name]}
        return {name: value for name, value in told.items() if name not in ("rounds", "scores")}


def stored() -> dict[str, Trial]:
    """The trials by what is run, with the scores of all their lines."""
    found: dict[str, Trial] = {}
    for line in read_records(RECORDS):
        trial = Trial.read(line)
        kept = found.setdefault(json.dumps(trial.said, sort_keys=True), trial)
        kept.rounds |= trial.rounds
        kept.scores |= trial.scores
    return found


app = typer.Typer(add_completion=False, help=__doc__)


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="A round.")],
    images: Annotated[str, typer.Option(help="A folder of development photographs.")],
    photographs: Annotated[int, typer.Option(help="How many of them.")] = 4,
    task: Annotated[str | None, typer.Option(help="One task only.")] = None,
    first: Annotated[int, typer.Option(help="The first of them.")] = 0,
) -> None:
    torch.set_num_threads(1)
    files = list_images(images)
    trials = [trial for trial in _of_round(name) if task in (None, trial.task)]
    for number, trial in enumerate(trials):
        for index in sorted(set(range(first, first + photographs)) - trial.scores.keys()):
            point = (trial.task, trial.method, trial.plugins, trial.steps, trial.grid, index)
            found = measure(point, files[index], settings=trial.settings, times=trial.times, runs=trial.runs)
            scores = {index: [found["psnr"], found["lpips"], found["work"]]}
            with RECORDS.open("a", encoding="utf-8") as file:
                line = {"rounds": sorted(trial.rounds), **trial.said, "scores": scores}
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
        typer.echo(f"{number + 1} of {len(trials)}", err=True)


@app.command()
def table(
    photographs: Annotated[int, typer.Option(help="Trials with at least so many.")] = 4,
    of: Annotated[str | None, typer.Option(help="One round only.")] = None,
) -> None:
    """Means by task, best first, as differences from the papers' path on the same photographs."""
    method, plugins, steps, grid = PAPER
    papers = {
        trial.task: trial for trial in stored().values() if trial.said == Trial(trial.task, method, plugins, steps, grid).said
    }
    typer.echo("| task | method | plug-ins | steps | settings | photographs | PSNR | LPIPS | work |")
    typer.echo("| --- | --- | --- | ---: | --- | ---: | ---: | ---: | ---: |")
    for task in TASKS | OTHERS:
        lines = []
        for trial in _of_round(of):
            shared = sorted(trial.scores.keys() & papers[task].scores.keys()) if trial.task == task else []
            if len(shared) < photographs:
                continue
            gain, price, _ = (mean(trial.scores[i][k] - papers[task].scores[i][k] for i in shared) for k in range(3))
            times = trial.times
            path = f"{len(times) - 1} from {times[0]} to {times[-2]}" if times else f"{trial.steps} {trial.grid or 'uniform'}"
            runs = f"mean of {trial.runs}, " if trial.runs > 1 else ""
            words = f"{trial.method} | {'+'.join(trial.plugins) or '-'} | {runs}{path} | {json.dumps(trial.settings)}"
            work = mean(trial.scores[i][2] for i in shared)
            lines.append(
                (gain - WEIGHT * price, f"| {task} | {words} | {len(shared)} | {gain:+.2f} | {price:+.3f} | {work:.1f} |")
            )
        for _, text in sorted(lines, reverse=True):
            typer.echo(text)


@app.command()
def compare(
    name: Annotated[str, typer.Argument(help="A round.")],
    task: Annotated[str, typer.Argument(help="One of its tasks.")],
    method: Annotated[str | None, typer.Option(help="One method only.")] = None,
    against: Annotated[int, typer.Option(help="Which trial the others are compared with; 0 is the first.")] = 0,
) -> None:
    """Trials of a round beside one of them, each pair on the photographs that both have."""
    trials = [trial for trial in _of_round(name) if trial.task == task and method in (None, trial.method)]
    if not 0 <= against < len(trials):
        raise LeaderError(
            f"The round '{name}' has {len(trials)} such trials of '{task}'; found {against} as the one to compare with."
        )
    typer.echo("| method | plug-ins | settings | photographs | PSNR | LPIPS | LPIPS in % |")
    typer.echo("| --- | --- | --- | ---: | ---: | ---: | ---: |")
    for trial in trials:
        other = trials[against].scores
        shared = sorted(trial.scores.keys() & other.keys())
        if shared:
            gain, price, _ = (mean(trial.scores[i][k] - other[i][k] for i in shared) for k in range(3))
            words = f"{trial.method} | {'+'.join(trial.plugins) or '-'} | {json.dumps(trial.settings)} | {len(shared)}"
            share = 100 * price / mean(other[i][1] for i in shared)
            print_rows([[words, f"{gain:+.2f}", f"{price:+.4f}", f"{share:+.1f}"]])


def _of_round(name: str | None) -> list[Trial]:
    trials = list(stored().values())
    known = sorted({one for trial in trials for one in trial.rounds})
    if name is not None and name not in known:
        raise unknown_name("round", name, known)
    return [trial for trial in trials if name is None or name in trial.rounds]


if __name__ == "__main__":
    app()
