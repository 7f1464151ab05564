"""The size an image must have for a network: told in one sentence before the network meets it."""

from __future__ import annotations

from torch import Tensor

from leader.errors import LeaderError

LARGEST_SIDE = 1024
"""Pixels on a side that a network may be tied to: images are padded to it, so that it decides the memory of a run."""


def check_size(x: Tensor, name: str, size: tuple[int, int] | None, multiple: int = 1) -> None:
    """Refuses images [B, C, H, W] that the bare prior `name` cannot take."""
    height, width = x.shape[-2:]
    if size is not None and (height, width) != size:
        raise LeaderError(
            f"The prior '{name}' is tied to {size[0]} x {size[1]} pixels; found {height} x {width}: give images of that "
            "size, or open it with load_prior, which tiles others."
        )
    if height % multiple or width % multiple:
        raise LeaderError(
            f"The prior '{name}' takes sides in multiples of {multiple} pixels; found {height} x {width}: give such images, "
            "or open it with load_prior, which pads others."
        )
