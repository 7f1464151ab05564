"""The estimators of Sigma_t: what each costs, how well it says where errors are, and how large.

    python benchmarks/estimators.py measure [--count 16]     appends to benchmarks/records/estimators.jsonl; resumable
    python benchmarks/estimators.py table                    the table of docs/paper.md from the records

The embedded prior on the middle 128 x 128 pixels of the bundled test crops, noised to x_t; and on their middle 16 x 16 pixels
beside `exact`, which asks for a derivative a pixel. Per crop, time and estimator:

time         seconds of the processor for Sigma, over those of the network's call before it
rank         Spearman correlation, over 8 x 8 blocks, of Sigma with the squared error of x0
rank, exact  the same over 4 x 4 blocks with `exact` in place of the error, at 16 x 16
calibration  mean squared error of x0 over mean Sigma, both over all crops: 1 is right, more is too sure
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from torch import Tensor

from leader import load_prior
from leader.metrics.uncertainty import block_rank_correlation
from leader.pictures import list_pictures, read_picture
from leader.priors.ask import Ask
from leader.priors.base import Prior
from leader.uncertainty.estimators import Difference, Estimator, Hutchinson, make_estimator

RECORDS = Path(__file__).parent / "records" / "estimators.jsonl"
SAMPLES = Path(__file__).parents[1] / "src" / "leader" / "samples" / "test"
TIMES = (50, 200, 500)
SIZE, SMALL = 128, 16
BEFORE = 10
"""How much earlier `difference` has seen the image: a step of a 100-step grid."""
ESTIMATORS: dict[str, Any] = {
    "head": "head",
    "noise-energy": "noise-energy",
    "difference": Difference(),
    "hutchinson, 1 probe": Hutchinson(1),
    "hutchinson, 8 probes": Hutchinson(8),
    "exact": "exact",
}

app = typer.Typer(add_completion=False, help=__doc__)


def middle(path: Path, size: int) -> Tensor:
    """The middle of a picture, [1, 3, size, size] in [-1, 1]."""
    pixels = torch.from_numpy(np.ascontiguousarray(read_picture(path).pixels.transpose(2, 0, 1)))
    top, left = ((side - size) // 2 for side in pixels.shape[-2:])
    return pixels[None, :, top : top + size, left : left + size] * 2 - 1


def noised(prior: Prior, clean: Tensor, t: int, seed: int) -> Tensor:
    level = prior.schedule.level(torch.tensor([t]), clean)
    return level.signal * clean + level.noise * torch.randn(clean.shape, generator=torch.Generator().manual_seed(seed))


def estimated(name: str, prior: Prior, clean: Tensor, t: int, seed: int) -> dict[str, Any]:
    """Sigma by one estimator, with the estimate x0 and the cost of both in seconds."""
    ask, now = Ask(prior), torch.tensor([t])
    made: Estimator = make_estimator(ESTIMATORS[name], prior)
    if name == "difference":
        earlier, before = noised(prior, clean, t + BEFORE, seed), torch.tensor([t + BEFORE])
        made(ask, earlier, before, ask(earlier, before), [0])
    x = noised(prior, clean, t, seed)
    start = time.process_time()
    prediction = ask(x, now)
    middle_time = time.process_time()
    sigma = made(ask, x, now, prediction, [0]).clamp(0, 1)
    spent = time.process_time() - middle_time
    return {"sigma": sigma, "x0": prediction.x0, "network": middle_time - start, "seconds": spent}


def rows(prior: Prior, path: Path, index: int, t: int, exact: bool) -> Iterator[dict[str, Any]]:
    """The records of one crop at one time."""
    where = {"image": path.stem, "t": t}
    for name in ESTIMATORS:
        if name == "exact":
            continue
        clean = middle(path, SIZE)
        found = estimated(name, prior, clean, t, index)
        error = clean - found["x0"].clamp(-1, 1)
        yield {
            **where,
            "size": SIZE,
            "estimator": name,
            "time": found["seconds"] / found["network"],
            "rank": float(block_rank_correlation(error, found["sigma"].sqrt())),
            "error": float(error.square().mean()),
            "sigma": float(found["sigma"].mean()),
        }
    if exact:
        clean = middle(path, SMALL)
        truth = estimated("exact", prior, clean, t, index)
        for name in ESTIMATORS:
            found = truth if name == "exact" else estimated(name, prior, clean, t, index)
            yield {
                **where,
                "size": SMALL,
                "estimator": name,
                "time": found["seconds"] / found["network"],
                "rank_exact": float(block_rank_correlation(truth["sigma"].sqrt(), found["sigma"].sqrt(), 4)),
                "sigma": float(found["sigma"].mean()),
                "sigma_exact": float(truth["sigma"].mean()),
            }


@app.command()
def measure(
    count: Annotated[int, typer.Option(help="How many of the 16 crops.")] = 16,
    exact: Annotated[int, typer.Option(help="How many of them beside the exact diagonal.")] = 2,
) -> None:
    """Measures what the records lack."""
    torch.set_num_threads(1)
    prior = load_prior("embedded")
    RECORDS.touch()
    done = {(item["image"], item["t"], item["size"]) for item in map(json.loads, RECORDS.read_text().splitlines())}
    with torch.no_grad():
        for index, path in enumerate(list_pictures(SAMPLES)[:count]):
            for t in TIMES:
                wanted = index < exact and (path.stem, t, SMALL) not in done
                if (path.stem, t, SIZE) in done and not wanted:
                    continue
                made = [item for item in rows(prior, path, index, t, wanted) if (path.stem, t, item["size"]) not in done]
                with RECORDS.open("a") as file:
                    file.writelines(json.dumps(item) + "\n" for item in made)


@app.command()
def table() -> None:
    """Prints the table."""
    records = [json.loads(line) for line in RECORDS.read_text().splitlines()]
    heads = [f"{word}, t = {t}" for word in ("rank", "calibration") for t in TIMES]
    typer.echo("| estimator | time | " + " | ".join([*heads, "rank with exact"]) + " |")
    typer.echo("| --- |" + " --- |" * (2 + len(heads)))
    for name in ESTIMATORS:
        own = [item for item in records if item["estimator"] == name]
        large = [item for item in own if item["size"] == SIZE]
        small = [item["rank_exact"] for item in own if item["size"] == SMALL]
        spent = float(np.median([item["time"] for item in large or own]))
        ranks = [_mean(item["rank"] for item in large if item["t"] == t) for t in TIMES]
        right = [_ratio([item for item in large if item["t"] == t]) for t in TIMES]
        cells = [name, f"{spent:.2g}", *ranks, *right, _mean(small)]
        typer.echo("| " + " | ".join(cells) + " |")


def _mean(values: Any) -> str:
    found = [value for value in values if np.isfinite(value)]
    return f"{np.mean(found):.2f}" if found else "-"


def _ratio(found: list[dict[str, Any]]) -> str:
    total = sum(item["sigma"] for item in found)
    return f"{sum(item['error'] for item in found) / total:.2f}" if total > 0 else "-"


if __name__ == "__main__":
    app()
