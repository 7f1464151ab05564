"""What LEADer costs and saves in time: the host, Sigma alone, UCPM, and LEADer, the paper's and ours, in turn.

    python benchmarks/plugged_time.py measure --host ddnm --repeats 4    # appends to the records
    python benchmarks/plugged_time.py table                              # ratios to the host, from the records

One round runs every variant once on the same measurement, one after the other, in an order that turns from round to round; a
ratio is between runs of the same round. Time is that of the processor (one thread), so that other work on the machine, which
makes runs wait, is left out. T = 100, Gaussian deblurring with noise of 0.05; SITCOM 10 x 10.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import torch
import typer

from leader import Problem, Sampler, load_prior
from leader.bench.images import list_images
from leader.bench.statistics import FEWEST_IMAGES, bootstrap_interval
from leader.operators import build_task
from leader.train.calibrate import central_crops

RECORDS = Path(__file__).parent / "records" / "plugged-time.jsonl"
HOSTS = ("ddnm", "ddpg", "projdiff", "pirp", "sitcom")
VARIANTS: dict[str, dict[str, Any]] = {
    "host": {"plugins": (), "estimator": None},
    "Sigma": {"plugins": (), "estimator": "auto"},
    "UCPM (paper)": {"plugins": "ucpm-paper"},
    "UCPM": {"plugins": "ucpm"},
    "LEADer (paper)": {"plugins": "leader-paper"},
    "LEADer": {"plugins": "leader"},
}
app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.command()
def measure(
    host: Annotated[list[str] | None, typer.Option(help="Hosts; the paper's five by default.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds, each on another test crop.")] = 4,
    size: int = 128,
    steps: int = 100,
) -> None:
    """Run the variants in turn and append what they took."""
    torch.set_num_threads(1)
    prior = load_prior("embedded")
    crops = central_crops(list_images("test")[0].parent, size, half=False)
    operator = build_task("deblur-gaussian", (3, size, size))
    for name in host or HOSTS:
        own: dict[str, Any] = {"steps": 10, "inner": 10} if name == "sitcom" else {"steps": steps}
        for number in range(repeats):
            problem = Problem.simulate(crops[number % len(crops)][None], operator, 0.05, 0)
            names = list(VARIANTS)
            order = names[number % len(names) :] + names[: number % len(names)]
            for variant in order:
                begin = time.process_time()
                result = Sampler(prior, name, **VARIANTS[variant], **own).run(problem)
                seconds = time.process_time() - begin
                line = {
                    "host": name,
                    "variant": variant,
                    "round": number,
                    "size": size,
                    "seconds": round(seconds, 4),
                    "calls": result.ledger.total.calls,
                    "torch": torch.__version__,
                }
                with RECORDS.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
                typer.echo(f"{name}, {variant}, round {number}: {seconds:.2f} s, {line['calls']} calls", err=True)


@app.command()
def table() -> None:
    """Medians of the ratios to the host of the same round, with 95 % intervals of their mean where rounds are enough."""
    runs: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for text in RECORDS.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        runs.setdefault((line["host"], line["variant"]), {})[line["round"]] = line
    hosts = list(dict.fromkeys(name for name, _ in runs))
    typer.echo("| host | rounds | seconds | " + " | ".join(f"+ {name}" for name in VARIANTS if name != "host") + " |")
    typer.echo("| --- | ---: | ---: |" + " ---: |" * (len(VARIANTS) - 1))
    for name in hosts:
        plain = runs[name, "host"]
        cells = [_ratios(plain, runs.get((name, variant), {})) for variant in VARIANTS if variant != "host"]
        typer.echo(
            f"| {name} | {len(plain)} | {median(line['seconds'] for line in plain.values()):.2f} | " + " | ".join(cells) + " |"
        )


def _ratios(plain: dict[int, dict[str, Any]], other: dict[int, dict[str, Any]]) -> str:
    shared = sorted(plain.keys() & other.keys())
    if not shared:
        return "–"
    changes = [100 * (other[i]["seconds"] / plain[i]["seconds"] - 1) for i in shared]
    calls = sum(other[i]["calls"] for i in shared) / len(shared)
    text = f"{median(changes):+.1f} %"
    if len(changes) >= FEWEST_IMAGES:
        low, high = bootstrap_interval(changes)
        text += f" [{low:+.1f}, {high:+.1f}]"
    return f"{text}, {calls:.1f} calls"


if __name__ == "__main__":
    app()
