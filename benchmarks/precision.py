"""What coarser numbers save and cost: standard quality in mixed precision beside float32, in turns, task by task.

    python benchmarks/precision.py photos/val --size 128 --share 0.03 --share 0.06 --share 0.1     # how SHARE was chosen
    python benchmarks/precision.py test --fit crop --kind int8                               # the crops of the package

Times are CPU seconds of one thread, so that other load on the machine matters little; the ratio is the median over pictures.
A share is the rounding error over the square root of Sigma_t's mean up to which a call is rounded; 0 is float32 again: the
differences of its row are exactly nothing, its ratio says how far to believe the others. Kinds are bfloat16 ("half"), integers
of eight bits ("int8"), and those with bfloat16 below them ("int8-half"), as on processors that are fast in both. A run is that
of a restoration: Sigma is computed where something reads it. The last two columns are the trust map's mean over that of
float32, and the share of pixels whose error is below 1.645 standard deviations of the map, less that of float32.
"""

import time
from collections.abc import Iterator
from statistics import mean, median
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from leader import Problem, load_prior
from leader.bench.images import list_images, load_image
from leader.metrics import lpips, psnr
from leader.operators import build_task, random_mask
from leader.priors.base import Prior
from leader.priors.mixed import HALF, INT8, SHARE, MixedPrior, find_rounding, half_dtype, round_to_half, round_to_int8
from leader.priors.pyramid import embedded_file
from leader.restoration.choice import Choice
from leader.result import drain
from leader.trust import Watch

KINDS = {"half": (HALF,), "int8": (INT8,), "int8-half": (INT8, HALF)}
TASKS = {
    "sr": ("sr", 0.0),
    "noisy sr": ("sr", 0.02),
    "gauss": ("deblur-gaussian", 0.02),
    "motion": ("deblur-motion", 0.02),
    "cs": ("cs", 0.0),
    "inpaint": ("inpaint", 0.0),
    "denoise": ("denoise", 0.02),
}


def mixed_priors(kind: str, shares: list[float]) -> dict[float, MixedPrior]:
    """The embedded prior for every share; all of them have the same networks."""
    base, rounding = load_prior(), find_rounding(embedded_file())
    assert rounding is not None
    made = {HALF: lambda: round_to_half(base, half_dtype(torch.device("cpu"))), INT8: lambda: round_to_int8(base)}
    coarse = {name: made[name]() for name in KINDS[kind]}
    last = len(base.schedule)

    def first_time(share: float, name: str) -> int:
        first = rounding.first_time(base.schedule, share, name) if share else None
        return last if first is None else first

    return {
        share: MixedPrior(base, [(first_time(share, name), name, prior) for name, prior in coarse.items()]) for share in shares
    }


def simulate(task: str, picture: Tensor, index: int) -> Problem:
    """The measurement of a picture [1, 3, H, W] in [0, 1]."""
    name, sigma = TASKS[task]
    size = picture.shape[-1]
    options: dict[str, Any] = {"mask": random_mask(size, size, 0.5, index)} if name == "inpaint" else {}
    if name == "deblur-motion":
        options = {"seed": index}
    return Problem.simulate(picture, build_task(name, (3, size, size), **options), sigma, 0, ids=[index])


def run(prior: Prior, problem: Problem, picture: Tensor, index: int) -> tuple[float, float, float, float, float]:
    """CPU seconds, PSNR and LPIPS of standard quality, the mean of the map and its coverage."""
    sampler = Choice(prior).sampler(problem)
    begin = time.process_time()
    watch = Watch(prior.schedule)
    result = drain(sampler.iterate(problem, ids=[index], looks=watch.find_looks), watch)
    seconds = time.process_time() - begin
    shown = ((result.images + 1) / 2).clamp(0, 1)
    spread = result.posterior_std
    assert spread is not None
    covered = ((result.images / 2 + 0.5 - picture).abs() <= 1.645 * spread / 2).float().mean()
    return seconds, float(psnr(shown, picture)), float(lpips(shown, picture)), float(spread.mean()), float(covered)


def compare(task: str, pictures: list[Tensor], priors: dict[float, MixedPrior]) -> Iterator[str]:
    """A row for every share: against float32, picture by picture, in turns."""
    full = next(iter(priors.values())).base
    found: dict[float, list[tuple[float, ...]]] = {share: [] for share in priors}
    for index, picture in enumerate(pictures):
        problem = simulate(task, picture, index)
        plain = run(full, problem, picture, index)
        for share, prior in priors.items():
            ours = run(prior, problem, picture, index)
            ratios = (ours[0] / plain[0], ours[3] / plain[3])
            found[share].append((*ratios, *(ours[i] - plain[i] for i in (1, 2, 4))))
    for share, rows in found.items():
        times, spreads, gains, distances, covered = zip(*rows)
        first = ", ".join(str(time) for time in priors[share].rounded_from.values())
        yield (
            f"| {task} | {share:g} | {first} | {median(times):.2f} | {mean(gains):+.3f} ({min(gains):+.3f}) "
            f"| {mean(distances):+.4f} ({max(distances):+.4f}) | {mean(spreads):.3f} | {mean(covered):+.4f} |"
        )


def main(
    images: Annotated[str, typer.Argument(help="A folder of photographs, or test: the crops of the package.")] = "test",
    size: int = 256,
    pictures: int = 8,
    fit: Annotated[str, typer.Option(help="half: of halved photographs; crop: as they are.")] = "half",
    share: Annotated[list[float] | None, typer.Option(help="Shares; that of the package and 0 by default.")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Tasks; all by default.")] = None,
    kind: Annotated[str, typer.Option(help="half, int8 or int8-half.")] = HALF,
) -> None:
    torch.set_num_threads(1)
    priors = mixed_priors(kind, share or [SHARE, 0.0])
    loaded = [load_image(file, fit, size) for file in list_images(images)[:pictures]]
    typer.echo(f"{kind}: {len(loaded)} pictures of {size} px, standard quality, one thread, torch {torch.__version__}\n")
    typer.echo("| task | share | from t | time | PSNR (worst) | LPIPS (worst) | map | coverage |")
    typer.echo("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in task or TASKS:
        for line in compare(name, loaded, priors):
            typer.echo(line)


if __name__ == "__main__":
    typer.run(main)
