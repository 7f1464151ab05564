"""The uncertainty of a restoration in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from leader.errors import LeaderError

if TYPE_CHECKING:
    from leader.restoration.restored import Restoration


def write_map(path: Path, restored: Restoration) -> None:
    """The trust map as the name's ending says: heat map, faded picture, 16-bit numbers or an array."""
    spread = restored.uncertainty
    if spread is None:
        raise LeaderError("This run estimated no uncertainty, so there is no map; leave out --map or the estimator 'none'.")
    from leader.pictures.figures import draw_map

    draw_map(path, spread, restored.array)
