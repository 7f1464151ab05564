"""Random draws that belong to an image, not to a batch.

Every draw is addressed by (run seed, image id, grid position, name) and comes from a generator of its own, seeded by that
address, on the CPU. So an image sees the same noise alone and in any batch, on any device, and a run that jumps over steps
sees at each visited time the noise the full run saw there: paired comparisons have common random numbers.
"""

import hashlib
import operator
import re
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from leader.errors import LeaderError, UsageError

NAMES = ("measurement", "start", "step", "observation", "travel", "extra", "origin", "origin-noise", "check")
"""What draws are for. Two draws of one name at one position are the same numbers, so a method or plug-in that needs others
declares their names (`draws`).
"""
INNER = "inner"
"""What the draws of a loop inside one step are for, one draw an iteration: `inner_name`."""


def inner_name(iteration: int) -> str:
    """The name of the draw of one iteration, 0, 1, ..., of a loop inside a step."""
    return f"{INNER}-{iteration}"


def is_known(name: str) -> bool:
    """Whether draws of this name exist."""
    stem, _, count = name.partition("-")
    return name in NAMES or (stem == INNER and count.isdecimal() and count == str(int(count)))


class Noise(Protocol):
    """A source of standard normal draws: noise(ids, positions, name, shape) -> [B, *shape], of a name that `is_known`."""

    def __call__(self, ids: Sequence[int], positions: Sequence[int], name: str, shape: Sequence[int]) -> Tensor: ...


class SeededNoise:
    """The default source; declared: names of draws besides NAMES."""

    def __init__(self, seed: int, declared: Sequence[str] = ()) -> None:
        self.seed, self.declared = whole(seed, "The seed of a run"), tuple(declared)
        for name in self.declared:
            if is_known(name) or re.fullmatch(r"[a-z][a-z0-9_-]*", name) is None:
                raise LeaderError(f"A draw of one's own has a new name in small letters; found {name!r}.")

    def __call__(self, ids: Sequence[int], positions: Sequence[int], name: str, shape: Sequence[int]) -> Tensor:
        if name not in self.declared and not is_known(name):
            known = ", ".join((*NAMES, *self.declared))
            raise UsageError(f"Unknown draw '{name}': list it in `draws` of the method or plug-in, or use one of {known}.")
        draws = [
            torch.randn(tuple(shape), generator=self._generator(image, position, name))
            for image, position in zip(ids, positions)
        ]
        return torch.stack(draws)

    def _generator(self, image: int, position: int, name: str) -> torch.Generator:
        address = f"{self.seed}/{image}/{position}/{name}".encode()
        seed = int.from_bytes(hashlib.blake2b(address, digest_size=8).digest(), "little") >> 1
        return torch.Generator().manual_seed(seed)


class MirroredNoise(SeededNoise):
    """Images 2 k and 2 k + 1 see opposite draws: in the mean of their runs what depends on the noise linearly vanishes."""

    def __call__(self, ids: Sequence[int], positions: Sequence[int], name: str, shape: Sequence[int]) -> Tensor:
        draws = super().__call__([image // 2 for image in ids], positions, name, shape)
        signs = torch.tensor([1.0 - 2 * (image % 2) for image in ids])
        return draws * signs.reshape(-1, *[1] * len(shape))


def check_ids(ids: Sequence[int] | None, batch: int) -> list[int]:
    """The ids of a batch: different whole numbers, 0, 1, ... where none are given."""
    names = list(range(batch)) if ids is None else [whole(item, "The id of an image") for item in ids]
    if len(names) != batch or len(set(names)) != batch:
        raise LeaderError(f"The problem has {batch} images; found the ids {names}: give each image one of its own.")
    return names


def whole(value: int, what: str) -> int:
    """A whole number of any size, NumPy's and torch's included; `what` names it in the error."""
    try:
        number = operator.index(value)
    except TypeError as error:
        raise LeaderError(f"{what} is a whole number; found {value!r}.") from error
    if isinstance(value, bool):
        raise LeaderError(f"{what} is a whole number; found {value}.")
    return number
