"""Fits a variance head to any frozen prior: regression of its squared x0 error on a folder of images.

A third of the time is spent on the network's answers for noisy crops, which are stored, since the network is slow; the rest on
updates of the head.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import cycle
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.priors.base import Prior
from leader.priors.variance_head import NODES, HeadShape, VarianceHead, node_weights
from leader.train.data import Images, decode, halved, list_images
from leader.train.defaults import FIT_MINUTES, SEED
from leader.train.objective import GOLDEN, spread

LOOKS = 20
"""How often during a fit the head is tested on held-out answers."""
ORDER = ("fit", "fit", "fit", "calibration", "check")
"""The order of the answers: whenever time runs out, three of five are for fitting the head."""


@dataclass(frozen=True)
class FitSettings:
    """Length and shape of a fit; it ends after `steps` or `seconds`, whichever comes first.

    network_share  share of the time for network calls
    memory         limit for its answers in bytes
    checks         largest number of answers about held-out pictures; twice as many are for calibration
    crop           side of the crops of an update, and of the pictures for networks of any size
    """

    seconds: float = 60 * FIT_MINUTES
    steps: int = 20_000
    batch: int = 8
    crop: int = 64
    rate: float = 2e-3
    held_out: float = 0.15
    checks: int = 128
    seed: int = SEED
    shape: HeadShape | None = None
    network_share: float = 1 / 3
    memory: int = 512 << 20


@dataclass(frozen=True)
class FitReport:
    """The outcome of a fit: `ratio` is held-out mean squared error over mean predicted variance, 1 when calibrated.

    All times have equal weight: both are in units of the typical error at their noise level. `answers` counts the network's
    calls.
    """

    steps: int
    seconds: float
    ratio: float
    answers: int


@dataclass(frozen=True)
class Answers:
    """Noisy crops x_t with the answers x0 and their squared errors, [N, C, H, W] in [-1, 1]; t and abar [N]; on the CPU.

    In float32: at the cleanest times eps is the difference of x_t and x0 over their noise, which is lost in half precision, and
    at the noisiest the squared error of an eps-network exceeds its range.
    """

    x_t: Tensor
    x0: Tensor
    error: Tensor
    abar: Tensor
    t: Tensor

    def __len__(self) -> int:
        return len(self.t)

    def _map(self, function: Callable[[Tensor], Tensor]) -> Answers:
        return Answers(*(function(getattr(self, item.name)) for item in fields(self)))

    def take(self, rows: Sequence[int] | Tensor) -> Answers:
        return self._map(lambda tensor: tensor[torch.as_tensor(rows)])

    def to(self, device: torch.device) -> Answers:
        return self._map(lambda tensor: tensor.to(device))

    def window(self, top: int, left: int, side: int) -> Answers:
        """The same square of every crop."""
        return self._map(lambda tensor: tensor[..., top : top + side, left : left + side] if tensor.ndim == 4 else tensor)

    def turned(self, quarters: int, mirrored: bool) -> Answers:
        """Every crop rotated by quarter turns and mirrored: errors depend on orientation far less than pictures do."""

        def turn(tensor: Tensor) -> Tensor:
            if tensor.ndim != 4:
                return tensor
            turned = torch.rot90(tensor, quarters, (2, 3))
            return turned.flip(3) if mirrored else turned

        return self._map(turn)

    def by_time(self) -> Answers:
        """Sorted by time: equal parts of the rows are equal parts of the schedule."""
        return self.take(self.t.argsort(stable=True))

    def batches(self, size: int) -> Iterator[Answers]:
        """All rows, `size` at a time."""
        for rows in torch.split(torch.arange(len(self)), size):
            yield self.take(rows)

    @staticmethod
    def join(parts: Sequence[Answers]) -> Answers:
        return Answers(*(torch.cat([getattr(part, item.name) for part in parts]) for item in fields(Answers)))


def collect(
    prior: Prior,
    pictures: Mapping[str, Sequence[Tensor]],
    most: Mapping[str, int],
    size: tuple[int, int],
    seed: int,
    seconds: float,
    memory: int,
) -> dict[str, Answers]:
    """Answers of each kind in `ORDER` about crops of its pictures, as many as `seconds` and `memory` (bytes) allow.

    At least one of each kind, at most `most[kind]`. On the CPU images go through a network one by one anyway, so the time is
    checked after each; elsewhere after eight.
    """
    device = prior.weights_device() or torch.device("cpu")
    together = 1 if device.type == "cpu" else 8
    room = max(len(ORDER), memory // (3 * 4 * (prior.channels or 3) * size[0] * size[1]))
    limits = {kind: min(most[kind], max(1, room * ORDER.count(kind) // len(ORDER))) for kind in most}
    found: dict[str, list[Answers]] = {kind: [] for kind in most}
    counts = dict.fromkeys(most, 0)
    end = time.monotonic() + seconds
    for kind in cycle(ORDER):
        if all(counts[name] >= limits[name] for name in counts) or (time.monotonic() > end and min(counts.values())):
            break
        rows = range(counts[kind], min(limits[kind], counts[kind] + together))
        if rows:
            found[kind].append(draw(prior, pictures[kind], size, (seed, tuple(most).index(kind)), rows))
            counts[kind] += len(rows)
    return {kind: Answers.join(parts) for kind, parts in found.items()}


@torch.no_grad()
def draw(prior: Prior, pictures: Sequence[Tensor], size: tuple[int, int], seed: tuple[int, int], rows: range) -> Answers:
    """Answers about random crops; the k-th is a function of (seed, k) alone, and times fill the schedule evenly."""
    large = [picture for picture in pictures if picture.shape[1] >= size[0] and picture.shape[2] >= size[1]]
    if not large:
        raise LeaderError(f"No picture of the folder has {size[0]} x {size[1]} pixels as the prior needs: give larger ones.")
    crops, noises, times = [], [], []
    for row in rows:
        rng = np.random.default_rng([*seed, row])
        picture = large[int(rng.integers(len(large)))]
        top, left = (int(rng.integers(have - want + 1)) for have, want in zip(picture.shape[1:], size))
        crops.append(picture[:, top : top + size[0], left : left + size[1]])
        noises.append(torch.randn(crops[-1].shape, generator=torch.Generator().manual_seed(int(rng.integers(2**62)))))
        times.append(int((0.5 + row * GOLDEN) % 1 * len(prior.schedule)))
    clean, t = torch.stack(crops), torch.tensor(times)
    level = prior.schedule.level(t, clean)
    x_t = level.signal * clean + level.noise * torch.stack(noises)
    device = prior.weights_device() or torch.device("cpu")
    x0 = prior.predict(x_t.to(device), t.to(device)).x0.cpu()
    return Answers(x_t, x0, (x0 - clean).square(), prior.schedule.abar(t).float(), t)


def fit_variance(
    prior: Prior,
    images: str | Images,
    output: str | Path | None = None,
    settings: FitSettings | None = None,
    say: Callable[[str], None] | None = None,
) -> tuple[VarianceHead, FitReport]:
    """Fit a head to `prior`, save it to `output` if given, and check it on pictures it has not seen.

    The prior stays frozen. Times are spread evenly over the schedule; crops have the prior's own size if it has one.
    """
    settings = settings or FitSettings()
    if not (np.isfinite(settings.seconds) and settings.seconds > 0) or settings.seed < 0:
        raise LeaderError(
            f"A fit needs a time above 0 seconds and a seed of at least 0; found {settings.seconds} and {settings.seed}."
        )
    began = time.monotonic()
    answers = _ask(prior, Path(images) if isinstance(images, str) else images, settings)
    asked = sum(len(part) for part in answers.values())
    if say is not None:
        say(f"{asked} answers of the network in {time.monotonic() - began:.0f} s; fitting the head to {len(answers['fit'])}")
    torch.manual_seed(settings.seed)
    device = prior.weights_device() or torch.device("cpu")
    head = VarianceHead(settings.shape or HeadShape(channels=prior.channels or 3)).to(device)
    calibrate(head, Answers.join([answers["fit"], answers["calibration"]]))
    left = max(0.0, settings.seconds - (time.monotonic() - began))
    steps = _descend(head, answers["fit"].by_time(), answers["calibration"], settings, left, say)
    head.eval().requires_grad_(False)
    calibrate(head, answers["calibration"])
    ratio = check(head, answers["check"])
    if output is not None:
        head.save(Path(output))
    return head, FitReport(steps, time.monotonic() - began, ratio, asked)


def _ask(prior: Prior, images: Images, settings: FitSettings) -> dict[str, Answers]:
    """The network's answers; those for checking the head are about pictures used for nothing else."""
    pictures = _read_pictures(images, prior.channels or 3)
    held_out = max(1, round(settings.held_out * len(pictures))) if len(pictures) > 1 else 0
    fitting = pictures[held_out:]
    return collect(
        prior,
        {"fit": fitting, "calibration": fitting, "check": pictures[:held_out] or pictures},
        {"fit": settings.steps * settings.batch, "calibration": 2 * settings.checks, "check": settings.checks},
        _crop_size(prior, settings),
        settings.seed,
        settings.network_share * settings.seconds,
        settings.memory,
    )


def _descend(
    head: VarianceHead,
    fit: Answers,
    calibration: Answers,
    settings: FitSettings,
    seconds: float,
    say: Callable[[str], None] | None,
) -> int:
    """Updates of the head on stored answers; it ends with the weights that did best on `calibration`."""
    device = head.correction.device
    optimiser = torch.optim.Adam(head.parameters())
    best, weights = likelihood(head, calibration), copy.deepcopy(head.state_dict())
    began, step, look, over = time.monotonic(), 0, 1, 0.0
    while step < settings.steps and over < 1:
        for group in optimiser.param_groups:
            group["lr"] = settings.rate * min(1.0, (step + 1) / 20) * (0.5 + 0.5 * float(np.cos(np.pi * over)))
        loss = negative_log_likelihood(head, _batch(fit, settings, step).to(device))
        optimiser.zero_grad()
        torch.autograd.backward([loss])
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimiser.step()
        step += 1
        over = max(step / settings.steps, (time.monotonic() - began) / max(seconds, 1e-9))
        if over >= look / LOOKS or over >= 1:
            look = int(over * LOOKS) + 1
            value = likelihood(head, calibration)
            if value < best:
                best, weights = value, copy.deepcopy(head.state_dict())
            if say is not None:
                left = max(0.0, (1 / over - 1) * (time.monotonic() - began))
                say(f"step {step}, {left:.0f} s left: negative log-likelihood {value:.3f}, best {best:.3f}")
    head.load_state_dict(weights)
    return step


def _batch(fit: Answers, settings: FitSettings, step: int) -> Answers:
    """A batch that depends only on (seed, step): stratified over the schedule, one window, rotated and mirrored."""
    rng = np.random.default_rng([settings.seed, step])
    rows = [int(place * len(fit)) for place in spread(step, settings.batch, rng)]
    side = min(settings.crop, *fit.x_t.shape[-2:])
    top, left = (int(rng.integers(length - side + 1)) for length in fit.x_t.shape[-2:])
    return fit.take(rows).window(top, left, side).turned(int(rng.integers(4)), bool(rng.integers(2)))


def negative_log_likelihood(head: VarianceHead, answers: Answers) -> Tensor:
    """Gaussian negative log-likelihood of the error in units of the typical error, up to constants, mean over pixels."""
    factor = head.log_factor(answers.x_t, answers.x0, answers.abar)
    return 0.5 * (factor + answers.error / head.usual(answers.abar) * torch.exp(-factor)).mean()


@torch.no_grad()
def likelihood(head: VarianceHead, answers: Answers) -> float:
    """The mean of `negative_log_likelihood` over all answers."""
    device = head.correction.device
    total = sum(float(negative_log_likelihood(head, part.to(device))) * len(part) for part in answers.batches(8))
    return total / len(answers)


@torch.no_grad()
def calibrate(head: VarianceHead, answers: Answers) -> None:
    """Moves the head's `correction` so that mean squared error and mean variance agree around each node.

    Before the fit this measures the typical error at each noise level; after it, it removes the remaining difference between
    the two means, since the likelihood weighs relative errors.
    """
    device = head.correction.device
    totals = torch.zeros(2, len(NODES), device=device)
    for part in answers.batches(8):
        sample = part.to(device)
        variance = head(sample.x_t, sample.x0, sample.abar).mean((1, 2, 3))
        # in units of the previous typical error, so that a crop's weight does not depend on its position between two nodes
        unit = head.usual(sample.abar).flatten()
        weights = node_weights(sample.abar)
        totals[0] += (sample.error.mean((1, 2, 3)) / unit) @ weights
        totals[1] += (variance / unit) @ weights
    seen = totals[1] > 0
    head.correction[seen] += (totals[0] / totals[1])[seen].clamp_min(1e-6).log()
    nearest = (NODES[:, None] - NODES[seen.cpu()]).abs().argmin(1).to(device)
    head.correction.copy_(head.correction[seen][nearest])


@torch.no_grad()
def check(head: VarianceHead, answers: Answers) -> float:
    """Mean squared error over mean variance.

    Each crop is in units of the typical error at its time: the noisiest times, larger by a factor of thousands, would dominate.
    """
    device = head.correction.device
    error = variance = 0.0
    for part in answers.batches(8):
        sample = part.to(device)
        unit = head.usual(sample.abar)
        predicted = head(sample.x_t, sample.x0, sample.abar)
        error += float((sample.error / unit).mean((1, 2, 3)).double().sum())
        variance += float((predicted / unit).mean((1, 2, 3)).double().sum())
    return error / variance


def _read_pictures(images: Images, channels: int) -> list[Tensor]:
    """Pictures [C, H, W] in [-1, 1], large ones halved to save memory and hide compression."""
    pictures = []
    for path in list_images(images):
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
