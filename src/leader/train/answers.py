"""A frozen prior's answers for noisy crops of pictures, computed once and stored: the network is slow, a head is not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import cycle

import numpy as np
import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.priors.base import Prior
from leader.train.objective import GOLDEN

ORDER = ("fit", "fit", "fit", "calibration", "check")
"""The order of the answers: whenever time runs out, three of five are for fitting the head."""


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
        """These rows."""
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
