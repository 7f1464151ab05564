"""Distances between sets of restored and reference pictures (FID, KID), from the pictures that records keep.

For experiments with [table] kind = "distances", whose form keeps "restored" and which have a row of the baseline "reference".
Sets with too few pictures for FID are cut into parts, and get jackknife intervals: every picture is left out once, with all of
its parts, on both sides. Results are stored beside the records (`StoredDistances`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from leader.bench.cell import Place
from leader.bench.experiment import Experiment
from leader.bench.records import Record, Store, canonical, digest, write_atomically
from leader.bench.statistics import FEWEST_IMAGES
from leader.errors import LeaderError
from leader.metrics.distribution import FID_FULL_RANK, FID_SMALLEST_SET, fid, frechet_of_samples, kid, squared_mmd
from leader.metrics.inception import inception_features

NORMAL_95 = 1.959964
REVISION = 1
"""Raised by one whenever a distance of the same pictures changes; part of the keys of stored distances."""


@dataclass(frozen=True)
class Estimate:
    """A distance [1], followed by the same without each picture in turn [n], or by nothing if that was not computed."""

    numbers: NDArray[np.float64]

    def __sub__(self, other: Estimate) -> Estimate:
        shared = len(self.numbers) if len(self.numbers) == len(other.numbers) else 1
        return Estimate(self.numbers[:shared] - other.numbers[:shared])

    @property
    def has_interval(self) -> bool:
        return len(self.numbers) > FEWEST_IMAGES

    def text(self, scale: float = 1.0, sign: str = "") -> str:
        """The value as text, with its 95 % interval if there are enough pictures."""
        value = self.numbers[0]
        if not self.has_interval:
            return f"{scale * value:{sign}.2f}"
        half = NORMAL_95 * jackknife_error(self.numbers[1:])
        low, high = scale * (value - half), scale * (value + half)
        text = f"{scale * value:{sign}.2f} [{low:{sign}.2f}, {high:{sign}.2f}]"
        return f"**{text}**" if sign and abs(value) > half else text


@dataclass(frozen=True)
class Distances:
    """KID and FID of a row and task from `count` pictures or parts of them."""

    count: int
    kid: Estimate
    fid: Estimate

    def text(self, host: Distances | None) -> str:
        own = f"{self.count} | {self.kid.text(1000)} | {self.fid.text()}"
        if host is None:
            return f"{own} | – | –"
        return f"{own} | {(self.kid - host.kid).text(1000, '+')} | {(self.fid - host.fid).text(1, '+')}"


def render_distances(experiment: Experiment, records: Mapping[Place, Record], store: Store) -> str:
    """KID and FID of every row and task against the reference, their averages over the tasks, and what plug-ins change, as
    Markdown. [table] parts = P cuts each picture into P x P parts if there are too few for FID.
    """
    references = [row for row in experiment.rows if row.method == "reference"]
    if not references:
        raise LeaderError(f"The experiment '{experiment.name}' needs a row of the method 'reference' to compare with.")
    few = experiment.form.count < FID_SMALLEST_SET
    parts = experiment.table.parts if few else 1
    lines = [
        f"## {experiment.title}",
        "",
        f"| method | task | pictures | KID x 1000 | FID{' on parts' if few else ''} | KID against the host | FID against it |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    compared = [row for row in experiment.rows if row.method != "reference"]
    found: dict[str, list[Distances]] = {row.label: [] for row in compared}
    kept = StoredDistances(store.folder, experiment.name)
    for task in experiment.tasks:
        truth = _find_records(references[0].label, task.label, records)
        for row in compared:
            mine = _find_records(row.label, task.label, records)
            found[row.label].append(_distances((mine, truth), parts, few, store, kept))
            host = found[row.against][-1] if row.against in found else None
            lines.append(f"| {row.label} | {task.label} | {found[row.label][-1].text(host)} |")
    means = {label: average(each) for label, each in found.items()}
    for row in compared:
        host = means.get(row.against or "")
        lines.append(f"| {row.label} | average of the tasks | {means[row.label].text(host)} |")
    return "\n".join([*lines, "", *_notes(experiment, few, [item for each in found.values() for item in each]), ""])


def distances_of(found: Tensor, truth: Tensor, parts: int, few: bool) -> Distances:
    """Distances of features [N, D] and [M, D]. few: too few for FID and its usual estimates; each picture has `parts` rows."""
    count = min(len(found), len(truth))
    if not few:
        return Distances(count, Estimate(np.array([kid(found, truth).mean])), Estimate(np.array([fid(found, truth)])))
    pairs = [(found, truth)]
    pictures = count // parts if len(found) == len(truth) else 0
    for picture in range(pictures if pictures > 2 else 0):
        keep = torch.arange(count) // parts != picture
        pairs.append((found[keep], truth[keep]))
    near = np.array([float(squared_mmd(x, y)) for x, y in pairs])
    far = np.array([frechet_of_samples(x, y) for x, y in pairs])
    return Distances(count, Estimate(near), Estimate(far))


def average(each: Sequence[Distances]) -> Distances:
    """The mean over tasks; left-out values are averaged too, since the tasks share their pictures."""
    return Distances(min(item.count for item in each), _mean([item.kid for item in each]), _mean([item.fid for item in each]))


def _mean(items: Sequence[Estimate]) -> Estimate:
    shared = len(items[0].numbers) if len({len(item.numbers) for item in items}) == 1 else 1
    return Estimate(sum((item.numbers[:shared] for item in items), np.zeros(shared)) / len(items))


def jackknife_error(left_out: NDArray[np.float64]) -> float:
    """Standard error of an estimate from its values without each of n pictures."""
    count = len(left_out)
    return float(np.sqrt((count - 1) / count * ((left_out - left_out.mean()) ** 2).sum()))


def _notes(experiment: Experiment, few: bool, found: list[Distances]) -> list[str]:
    said = [f"- {experiment.note}"] if experiment.note else []
    if any(item.count < FID_FULL_RANK for item in found):
        said.append(
            f"- FID of fewer than {FID_FULL_RANK:,} pictures is biased upwards, and the covariance behind it has no full rank: "
            "it compares sets of equal size, as in the paper's table, and says nothing about others."
        )
    if few and any(item.kid.has_interval for item in found):
        said.append("- 95 % intervals by the jackknife over pictures; bold: zero is outside.")
    return said


def _find_records(row: str, task: str, records: Mapping[Place, Record]) -> list[Record]:
    """The records of a row and task, by picture; runs that failed are left out."""
    return [record for place, record in sorted(records.items()) if place[:2] == (row, task) and "error" not in record]


def _distances(
    sets: tuple[list[Record], list[Record]], parts: int, few: bool, store: Store, kept: StoredDistances
) -> Distances:
    """Distances between the pictures of records and their references, stored or computed."""
    key = key_of(sets, parts, REVISION)
    stored = kept.find(key)
    if stored is None:
        mine, truth = (_features(tuple(store.picture(record, "restored") for record in each), parts) for each in sets)
        made = distances_of(mine, truth, parts**2, few)
        stored = kept.keep(key, [[made.count], made.kid.numbers.tolist(), made.fid.numbers.tolist()])
    near, far = (Estimate(np.array(values)) for values in stored[1:])
    return Distances(int(stored[0][0]), near, far)


@lru_cache(maxsize=2)  # all rows of a task share its reference
def _features(files: tuple[Path, ...], parts: int) -> Tensor:
    pictures = []
    for path in files:
        with Image.open(path, formats=("PNG",)) as file:
            pixels = np.array(file.convert("RGB"), dtype=np.float32) / 255
        pictures += cut(torch.from_numpy(pixels).permute(2, 0, 1), parts)
    return inception_features(torch.stack(pictures))


def cut(picture: Tensor, parts: int) -> list[Tensor]:
    """Cuts a picture [C, H, W] into parts x parts equal ones, row by row; the remainder at the bottom and right is dropped."""
    height, width = (size // parts for size in picture.shape[1:])
    corners = [(i * height, j * width) for i in range(parts) for j in range(parts)]
    return [picture[:, top : top + height, left : left + width] for top, left in corners]


FOLDER = "distances"
_SCORES = ("psnr", "ssim", "lpips", "residual", "residual_raw")
"""The identity of a restored picture of a cell."""


class StoredDistances:
    """Stored distances, in `folder`/distances/`name`.json: a table can be printed again without the pictures.

    The restored pictures of a table take megabytes and are not shipped; the table needs only a few numbers per row. The key is
    made of the requests of both sets, the scores of their pictures, and the revision of the distances. So a record that is run
    again with the same outcome keeps its distances, and one whose picture changed does not.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / FOLDER / f"{name}.json"
        self._found = _read(self.path) if self.path.is_file() else {}

    def find(self, key: str) -> list[list[float]] | None:
        return self._found.get(key)

    def keep(self, key: str, numbers: Sequence[Sequence[float]]) -> list[list[float]]:
        """Writes lists of numbers at once, and returns them as stored: to nine digits."""
        self._found[key] = [[float(f"{value:.9g}") for value in values] for values in numbers]
        lines = [f"{canonical(name)}: {canonical(lists)}" for name, lists in sorted(self._found.items())]
        write_atomically(self.path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
        return self._found[key]


def key_of(sets: Sequence[Sequence[Record]], parts: int, revision: int) -> str:
    """The key of the distances between sets of records whose pictures are cut into parts x parts."""
    told = [[[digest(record["asked"]), *(record.get(name) for name in _SCORES)] for record in one] for one in sets]
    return digest([told, parts, revision])


def _read(path: Path) -> dict[str, list[list[float]]]:
    try:
        found: Any = json.loads(path.read_bytes())
        return {str(key): [[float(value) for value in values] for values in lists] for key, lists in found.items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise LeaderError(f"'{path}' does not hold stored distances; remove it, and they will be computed again.") from error
