"""Fits a referee to kept runs (`trust_runs`), and its factors to others."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.train.trust_runs import KeptRun, read_run
from leader.trust import calibration
from leader.trust.calibration import GAUSSIAN, SHOWN, Calibration, find_family, nearest_level
from leader.trust.error_map import keep_known_pixels
from leader.trust.evidence import LEAST
from leader.trust.referee import Referee

STEEPNESS = 0.15
"""Width, in natural logarithms, of the transition from covered to not covered in a picture's own coverage."""
FAR = 2.5
"""Natural logarithms beyond its standard deviation at which an error is capped in the likelihood, which it would dominate."""
EVEN = 3.0
"""Weight of each single picture being covered as often as all pictures together."""
DECAY = 3e-2
"""Weight decay of AdamW: a few hundred photographs are easily memorised."""
KEPT = 0.998
"""Decay of the running mean of the weights; that mean is the result."""
RISE, LEAST_RISE = 0.015, 20
"""Warm-up of the learning rate: share of the steps, and minimum number of steps."""


@dataclass(frozen=True)
class FitSettings:
    """How a referee is fitted: number of steps and crops per step, or as many as fit into the time; weight of the
    likelihood.
    """

    steps: int = 7000
    batch: int = 12
    crop: int = 64
    rate: float = 3e-3
    likely: float = 2.0
    seconds: float = math.inf
    seed: int = 0


@dataclass(frozen=True)
class Lesson:
    """One run ready for fitting: features [F, H, W], |error| [C, H, W], and the open pixels [H, W] bool."""

    features: Tensor
    error: Tensor
    open: Tensor


def make_lesson(run: KeptRun) -> Lesson:
    return Lesson(run.evidence.features(), run.error.abs().clamp_min(LEAST), run.open)


def read_lessons(paths: Iterable[Path]) -> list[Lesson]:
    return [make_lesson(read_run(path)) for path in paths]


def fit_referee(
    lessons: Sequence[Lesson],
    settings: FitSettings | None = None,
    say: Callable[[str], None] | None = None,
    start: Referee | None = None,
) -> Referee:
    """Fits a referee by `loss`, over the open pixels of random crops, rotated and mirrored; `start` continues from a
    referee.
    """
    if not lessons:
        raise LeaderError("There are no runs to fit a referee to; give more pictures.")
    chosen = settings or FitSettings()
    generator = torch.Generator().manual_seed(chosen.seed)
    with torch.random.fork_rng():
        torch.manual_seed(chosen.seed)
        referee = Referee()
    if start is not None:
        referee.load_state_dict(start.state_dict())
    best = torch.optim.AdamW(referee.parameters(), lr=chosen.rate, weight_decay=DECAY)
    mean_weights = {name: value.clone() for name, value in referee.state_dict().items()}
    begin = time.monotonic()
    rise = max(LEAST_RISE, RISE * chosen.steps)
    mean = 0.0
    for step in range(chosen.steps):
        spent = (time.monotonic() - begin) / chosen.seconds
        if spent >= 1:
            break
        share = max(step / chosen.steps, spent)
        for group in best.param_groups:
            group["lr"] = chosen.rate * min(1.0, (step + 1) / rise) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * share)))
        features, error, is_open = _draw_batch(lessons, chosen, generator)
        said = referee(features.contiguous(memory_format=torch.channels_last))  # a fifth faster on the CPU
        off = loss(said, error, is_open, chosen.likely)
        best.zero_grad()
        off.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(referee.parameters(), 1.0)
        best.step()
        share_kept = min(KEPT, step / (step + 10))
        for name, value in referee.state_dict().items():
            mean_weights[name].lerp_(value, 1 - share_kept)
        mean += (float(off.detach()) - mean) / min(step + 1, 50)
        if say is not None and (step + 1) % 100 == 0:
            say(f"step {step + 1} of {chosen.steps}: {mean:.3f}")
    referee.load_state_dict(mean_weights)
    return referee.eval().requires_grad_(False)


def loss(log_std: Tensor, error: Tensor, is_open: Tensor, likely: float) -> Tensor:
    """How badly log standard deviations [B, H, W] predict the size of errors |e| [B, C, H, W]; pictures have equal weights.

    The pinball loss of log |e| at 50, 80, 90 and 95 %, whose minimum has these shares of the errors within as many standard
    deviations as a Gaussian, however heavy the tails; `likely` times the likelihood log s + e^2 / 2 s^2, which emphasises large
    errors and so ranks them; and the squared deviation of a picture's own coverage from 90 %.
    """
    weight = is_open / is_open.sum((1, 2), keepdim=True)
    size = error.log()
    total = likely * (log_std + 0.5 * (2 * (size - log_std[:, None]).clamp_max(FAR)).exp().mean(1))
    for level, multiple in GAUSSIAN.items():
        over = size - (log_std + math.log(multiple))[:, None]
        total = total + torch.maximum(level * over, (level - 1) * over).mean(1)
    inside = torch.sigmoid(((log_std + math.log(GAUSSIAN[SHOWN]))[:, None] - size) / STEEPNESS).mean(1)
    covered = (inside * weight).sum((1, 2))
    return ((total * weight).sum((1, 2)) + EVEN * (covered - SHOWN).square()).mean()


def _draw_batch(lessons: Sequence[Lesson], settings: FitSettings, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    parts: list[tuple[Tensor, Tensor, Tensor]] = []
    while len(parts) < settings.batch:
        one = lessons[_draw_below(len(lessons), generator)]
        size = min(settings.crop, *one.open.shape)
        top, left = (_draw_below(side - size + 1, generator) for side in one.open.shape)
        cut = [part[..., top : top + size, left : left + size] for part in (one.features, one.error, one.open)]
        if not bool(cut[2].any()):
            continue
        turns, mirrored = _draw_below(4, generator), _draw_below(2, generator)
        cut = [torch.rot90(part, turns, (-2, -1)) for part in cut]
        cut = [part.flip(-1) for part in cut] if mirrored else cut
        parts.append((cut[0], cut[1], cut[2]))
    features, error, is_open = (torch.stack(column) for column in zip(*parts))
    return features, error, is_open


def _draw_below(bound: int, generator: torch.Generator) -> int:
    return int(torch.randint(bound, (1,), generator=generator))


def ratios(referee: Referee, runs: Iterable[KeptRun]) -> list[tuple[str, float, Tensor]]:
    """(family, level for [0, 1] images, |error| / std over the open pixels) of runs, for `calibration.fit_factors`."""
    found = []
    for run in runs:
        std = keep_known_pixels(referee.std(run.evidence), run.evidence)
        is_open = run.open
        if bool(is_open.any()):
            family = find_family(str(run.case["task"]), run.evidence.known, run.metric)
            found.append((family, nearest_level(run.level), (run.error.abs() / std)[:, is_open]))
    return found


def fit_calibration(referee: Referee, runs: Iterable[KeptRun]) -> Calibration:
    """Factors that give the referee's intervals their nominal coverage, on runs that it was not fitted to."""
    return calibration.fit_factors(ratios(referee, runs))
