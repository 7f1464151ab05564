"""Fits a variance head to any frozen prior: regression of its squared x0 error on a folder of images."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.pictures import list_pictures
from leader.priors.base import Prior
from leader.priors.variance_head import NODES, HeadShape, VarianceHead, node_weights
from leader.train.data import decode, halved
from leader.train.objective import spread


@dataclass(frozen=True)
class FitSettings:
    """Length and shape of a fit; it ends after `steps` or `seconds`, whichever comes first."""

    seconds: float = 120.0
    steps: int = 2000
    batch: int = 8
    crop: int = 64
    rate: float = 2e-3
    held_out: float = 0.15
    checks: int = 128
    seed: int = 0
    shape: HeadShape | None = None


@dataclass(frozen=True)
class FitReport:
    """How a fit went: `ratio` is held-out mean squared error over mean predicted variance, 1 when calibrated.

    Every time counts alike: both are taken in units of the error that is usual at its noise level. `ratios` lists
    the quotient for four quarters of the schedule, early (little noise) to late.
    """

    steps: int
    seconds: float
    ratio: float
    ratios: tuple[float, ...]


@dataclass(frozen=True)
class Sample:
    """A noisy batch with the frozen prior's answer; images [B, C, H, W] in [-1, 1], abar [B]."""

    x_t: Tensor
    x0: Tensor
    error: Tensor
    abar: Tensor
    t: Tensor


def fit_variance(
    prior: Prior,
    images_folder: str | Path,
    output: str | Path | None = None,
    settings: FitSettings | None = None,
    say: Callable[[str], None] | None = None,
) -> tuple[VarianceHead, FitReport]:
    """Fit a head to `prior`, save it to `output` if given, and check it on pictures it has not seen.

    The prior stays frozen. Times are stratified over the schedule; crops have the prior's own size where it
    has one.
    """
    settings = settings or FitSettings()
    pictures = _pictures(Path(images_folder), prior.channels or 3)
    held_out = max(1, round(settings.held_out * len(pictures))) if len(pictures) > 1 else 0
    fitting = pictures[held_out:]
    torch.manual_seed(settings.seed)
    head = VarianceHead(settings.shape or HeadShape(channels=prior.channels or 3))
    device = next((parameter.device for parameter in prior.parameters()), torch.device("cpu"))
    head.to(device)
    calibrate(prior, head, fitting, settings, device)
    optimiser = torch.optim.Adam(head.parameters())
    began, step = time.monotonic(), 0
    while step < settings.steps and time.monotonic() - began < settings.seconds:
        over = max(step / settings.steps, (time.monotonic() - began) / settings.seconds)
        for group in optimiser.param_groups:
            group["lr"] = settings.rate * min(1.0, (step + 1) / 20) * (0.5 + 0.5 * float(np.cos(np.pi * over)))
        sample = draw(prior, fitting, settings, step, device)
        loss = negative_log_likelihood(head, sample)
        optimiser.zero_grad()
        torch.autograd.backward([loss])
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimiser.step()
        step += 1
        if say is not None and step % 50 == 0:
            left = (1 / max(over, 1e-6) - 1) * (time.monotonic() - began)
            say(f"step {step}, {left:.0f} s left: negative log-likelihood {float(loss):.3f}")
    head.eval().requires_grad_(False)
    calibrate(prior, head, fitting, settings, device)
    report = _check(prior, head, pictures[:held_out] or pictures, settings, device, step, time.monotonic() - began)
    if output is not None:
        head.save(Path(output))
    return head, report


def negative_log_likelihood(head: VarianceHead, sample: Sample) -> Tensor:
    """Gaussian negative log-likelihood of the error in units of what is usual, up to constants, mean over pixels."""
    factor = head.log_factor(sample.x_t, sample.x0, sample.abar)
    return 0.5 * (factor + sample.error / head.usual(sample.abar) * torch.exp(-factor)).mean()


@torch.no_grad()
def draw(prior: Prior, pictures: list[Tensor], settings: FitSettings, step: int, device: torch.device) -> Sample:
    """A batch that depends on (seed, step) alone: random crops, stratified times, the prior's answers."""
    rng = np.random.default_rng([settings.seed, step])
    places = spread(step, settings.batch, rng)
    t = torch.tensor([int(place * len(prior.schedule)) for place in places], device=device)
    clean = torch.stack([_crop(rng, pictures, _crop_size(prior, settings)) for _ in range(settings.batch)]).to(device)
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(int(rng.integers(2**62)))).to(device)
    level = prior.schedule.level(t, clean)
    x_t = level.signal * clean + level.noise * noise
    x0 = prior.predict(x_t, t).x0
    return Sample(x_t, x0, (x0 - clean).square(), prior.schedule.abar(t).float().to(device), t)


@torch.no_grad()
def calibrate(prior: Prior, head: VarianceHead, pictures: list[Tensor], settings: FitSettings, device: torch.device) -> None:
    """Move the head's `correction` so that mean squared error and mean variance agree around each node.

    Before the fit this measures what error is usual at each noise level; after it, it removes what the likelihood,
    which weighs relative errors, leaves between the two means.
    """
    totals = torch.zeros(2, len(NODES), device=device)
    for sample in _samples(prior, pictures, settings, 10**6, 2 * settings.checks, device):
        variance = head(sample.x_t, sample.x0, sample.abar).mean((1, 2, 3))
        # in units of what was usual before, so that a crop's weight does not depend on where between two nodes it lies
        unit = head.usual(sample.abar).flatten()
        weights = node_weights(sample.abar)
        totals[0] += (sample.error.mean((1, 2, 3)) / unit) @ weights
        totals[1] += (variance / unit) @ weights
    seen = totals[1] > 0
    head.correction[seen] += (totals[0] / totals[1])[seen].clamp_min(1e-6).log()
    nearest = (NODES[:, None] - NODES[seen.cpu()]).abs().argmin(1).to(device)
    head.correction.copy_(head.correction[seen][nearest])


def _samples(
    prior: Prior, pictures: list[Tensor], settings: FitSettings, first: int, crops: int, device: torch.device
) -> Iterator[Sample]:
    """Batches of `draw` from `first` on, about `crops` crops in all; fewer where they take over a quarter of the fit's time."""
    end = time.monotonic() + settings.seconds / 4
    for index in range(max(1, crops // settings.batch)):
        yield draw(prior, pictures, settings, first + index, device)
        if time.monotonic() > end:
            return


def _check(
    prior: Prior,
    head: VarianceHead,
    pictures: list[Tensor],
    settings: FitSettings,
    device: torch.device,
    steps: int,
    seconds: float,
) -> FitReport:
    """Each crop counts in units of its time's usual error: the noisiest times, off by thousands, would drown the rest."""
    bins = torch.zeros(2, 4, dtype=torch.float64)
    for sample in _samples(prior, pictures, settings, 2 * 10**6, settings.checks, device):
        unit = head.usual(sample.abar)
        predicted = head(sample.x_t, sample.x0, sample.abar)
        quarter = (sample.t * 4 // len(prior.schedule)).cpu()
        bins[0].index_add_(0, quarter, (sample.error / unit).mean((1, 2, 3)).double().cpu())
        bins[1].index_add_(0, quarter, (predicted / unit).mean((1, 2, 3)).double().cpu())
    ratios = tuple((bins[0] / bins[1].clamp_min(1e-12)).tolist())
    return FitReport(steps, seconds, float(bins[0].sum() / bins[1].sum()), ratios)


def _pictures(folder: Path, channels: int) -> list[Tensor]:
    """A folder's pictures [C, H, W] in [-1, 1], large ones halved to save memory and hide compression."""
    pictures = []
    for path in list_pictures(folder):
        picture = decode(path)
        picture = halved(picture) if min(picture.size) >= 512 else picture
        pixels = np.asarray(picture.convert("L") if channels == 1 else picture)
        tensor = torch.from_numpy(pixels.copy()).float().view(*pixels.shape[:2], channels)
        pictures.append(tensor.permute(2, 0, 1) / 127.5 - 1)
    return pictures


def _crop_size(prior: Prior, settings: FitSettings) -> tuple[int, int]:
    if prior.size is not None:
        return prior.size
    side = max(prior.multiple, settings.crop // prior.multiple * prior.multiple)
    return side, side


def _crop(rng: np.random.Generator, pictures: list[Tensor], size: tuple[int, int]) -> Tensor:
    large = [picture for picture in pictures if picture.shape[1] >= size[0] and picture.shape[2] >= size[1]]
    if not large:
        raise LeaderError(f"No picture of the folder has {size[0]} x {size[1]} pixels as the prior needs: give larger ones.")
    picture = large[int(rng.integers(len(large)))]
    top, left = (int(rng.integers(have - want + 1)) for have, want in zip(picture.shape[1:], size))
    return picture[:, top : top + size[0], left : left + size[1]]
