"""The pictures of a folder: one list of suffixes and one order for restoring, benchmarks and training."""

from __future__ import annotations

from pathlib import Path

from leader.errors import LeaderError
from leader.files import printable
from leader.pictures.formats import SUFFIXES


def list_pictures(folder: str | Path) -> list[Path]:
    """The picture files of a folder in the order of their names; hidden files and sub-folders are left out."""
    path = Path(folder)
    if not path.is_dir():
        raise LeaderError(f"There is no folder of pictures '{printable(path)}'; give an existing one.")
    found = sorted(item for item in path.iterdir() if is_picture_name(item) and item.is_file())
    if not found:
        raise LeaderError(
            f"No pictures were found in '{printable(path)}'; a folder with files ending in {', '.join(SUFFIXES)} is needed."
        )
    return found


def is_picture_name(path: Path) -> bool:
    """Whether a file name is that of a picture; names that start with a dot are other programs' notes."""
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
