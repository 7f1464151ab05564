"""Tables of numbers that people hand in as files: kernels and masks, judged before memory is taken for them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leader.errors import LeaderError
from leader.files import check_readable, printable
from leader.pictures import read_picture

BYTES_PER_NUMBER = 32
"""What a number with its separator takes in a text file, generously."""
HEADER = 1 << 16


def read_table(path: Path, what: str, most: int) -> NDArray[Any]:
    """The numbers in a .npy, .txt or .csv file, or the brightness of a picture; at most `most` of them.

    what  "kernel" or "mask", for the sentences of errors
    """
    suffix = path.suffix.lower()
    if suffix not in (".npy", ".txt", ".csv"):
        brightness: NDArray[np.float32] = read_picture(path, most).pixels.mean(2)
        return brightness
    name = printable(path)
    size = check_readable(path, what).st_size
    if size > BYTES_PER_NUMBER * most + HEADER:
        raise LeaderError(f"{name} has {size} bytes, too many for a {what}; at most {most} numbers are served.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy warns of empty files; the checks below refuse them
            table = _numpy_file(path) if suffix == ".npy" else _text(path, "," if suffix == ".csv" else None)
    except Exception as error:  # damaged files raise errors of every kind
        raise LeaderError(f"{name} is not a table of numbers; give the {what} as .npy, .txt, .csv or a picture.") from error
    if not isinstance(table, np.ndarray) or table.dtype.kind not in "fiub":
        raise LeaderError(f"{name} does not hold numbers; give the {what} as .npy, .txt, .csv or a picture.")
    if table.size > most:
        shape = " x ".join(str(n) for n in table.shape)
        raise LeaderError(f"{name} holds {shape} numbers, too many for a {what}; at most {most} are served.")
    return np.array(table)


def _numpy_file(path: Path) -> Any:
    # mapped, not read: a header that asks for more than the file holds is refused before memory is taken
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _text(path: Path, delimiter: str | None) -> NDArray[Any]:
    with path.open("r", encoding="utf-8-sig") as file:
        table: NDArray[Any] = np.loadtxt(file, delimiter=delimiter, ndmin=2)
    return table
