"""Random draws that belong to an image, not to a batch.

Every draw is addressed by (run seed, image id, grid position, name) and comes from a generator of its own, seeded by that
address, on the CPU. So an image sees the same noise alone and in any batch, on any device, and a run that jumps over steps
sees at each visited time the noise the full run saw there: paired comparisons have common random numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

NAMES = ("start", "step", "observation", "travel", "extra")


class Noise(Protocol):
    """A source of standard normal draws: noise(ids, positions, name, shape) -> [B, *shape]."""

    def __call__(self, ids: Sequence[int], positions: Sequence[int], name: str, shape: Sequence[int]) -> Tensor: ...


class SeededNoise:
    """The default source."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, ids: Sequence[int], positions: Sequence[int], name: str, shape: Sequence[int]) -> Tensor:
        draws = [
            torch.randn(tuple(shape), generator=self._generator(image, position, name))
            for image, position in zip(ids, positions)
        ]
        return torch.stack(draws)

    def _generator(self, image: int, position: int, name: str) -> torch.Generator:
        address = f"{self.seed}/{image}/{position}/{name}".encode()
        seed = int.from_bytes(hashlib.blake2b(address, digest_size=8).digest(), "little") >> 1
        return torch.Generator().manual_seed(seed)
