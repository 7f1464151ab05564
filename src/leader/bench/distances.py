"""Distances between sets of restored and reference pictures (FID, KID), from the pictures that records keep.

For experiments with [table] kind = "distances", whose form keeps "restored" and which have a row of the
baseline "reference".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from leader.bench.cell import Place
from leader.bench.experiment import Experiment
from leader.bench.records import Record, Store
from leader.errors import LeaderError
from leader.metrics.distribution import FID_FULL_RANK, FID_SMALLEST_SET, fid, kid
from leader.metrics.inception import inception_features


def render_distances(experiment: Experiment, records: Mapping[Place, Record], store: Store) -> str:
    """KID of every row and task against the reference, FID where there are enough pictures, and their averages over the tasks,
    as Markdown. [table] parts = P cuts each picture into P x P parts where there are too few for FID.
    """
    references = [row for row in experiment.rows if row.method == "reference"]
    if not references:
        raise LeaderError(f"The experiment '{experiment.name}' needs a row of the method 'reference' to compare with.")
    parts = experiment.table.get("parts", 1) if experiment.form.count < FID_SMALLEST_SET else 1
    lines = [
        f"## {experiment.title}",
        "",
        "| method | task | pictures | KID x 1000 | FID |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    compared = [row.label for row in experiment.rows if row.method != "reference"]
    found: dict[str, list[Distances]] = {label: [] for label in compared}
    for task in experiment.tasks:
        truth = _features(references[0].label, task.label, records, store, parts)
        for label in compared:
            distances = _distances(_features(label, task.label, records, store, parts), truth)
            found[label].append(distances)
            lines.append(f"| {label} | {task.label} | {distances.text()} |")
    for label, each in found.items():
        lines.append(f"| {label} | average of the tasks | {_average(each).text()} |")
    return "\n".join([*lines, "", *_notes(experiment, [item for each in found.values() for item in each]), ""])


@dataclass(frozen=True)
class Distances:
    """KID with its standard deviation over subsets, and FID where there are enough pictures."""

    count: int
    kid: float
    std: float
    fid: float | None

    def text(self) -> str:
        frechet = f"needs {FID_SMALLEST_SET:,} pictures" if self.fid is None else f"{self.fid:.2f}"
        return f"{self.count} | {1000 * self.kid:.2f} ± {1000 * self.std:.2f} | {frechet}"


def _distances(found: Tensor, truth: Tensor) -> Distances:
    near = kid(found, truth)
    count = min(len(found), len(truth))
    return Distances(count, near.mean, near.std, fid(found, truth) if count >= FID_SMALLEST_SET else None)


def _average(each: list[Distances]) -> Distances:
    """The mean over tasks; the deviation is that of a mean of independent numbers."""
    frechet = [item.fid for item in each if item.fid is not None]
    return Distances(
        min(item.count for item in each),
        sum(item.kid for item in each) / len(each),
        sum(item.std**2 for item in each) ** 0.5 / len(each),
        sum(frechet) / len(each) if len(frechet) == len(each) else None,
    )


def _notes(experiment: Experiment, found: list[Distances]) -> list[str]:
    said = [f"- {experiment.note}"] if experiment.note else []
    if any(item.fid is not None and item.count < FID_FULL_RANK for item in found):
        said.append(
            f"- FID of fewer than {FID_FULL_RANK:,} pictures is biased upwards, and the covariance behind it has no full rank: "
            "it compares sets of equal size, as in the paper's table, and says nothing about others."
        )
    return said


def _features(row: str, task: str, records: Mapping[Place, Record], store: Store, parts: int) -> Tensor:
    chosen = [record for place, record in sorted(records.items()) if place[:2] == (row, task) and "error" not in record]
    pictures = []
    for record in chosen:
        with Image.open(store.picture(record, "restored"), formats=("PNG",)) as file:
            pixels = np.array(file.convert("RGB"), dtype=np.float32) / 255
        pictures += cut(torch.from_numpy(pixels).permute(2, 0, 1), parts)
    return inception_features(torch.stack(pictures))


def cut(picture: Tensor, parts: int) -> list[Tensor]:
    """A picture [C, H, W] as parts x parts equal ones, row by row; what is left over at the bottom and right is dropped."""
    height, width = (size // parts for size in picture.shape[1:])
    corners = [(i * height, j * width) for i in range(parts) for j in range(parts)]
    return [picture[:, top : top + height, left : left + width] for top, left in corners]
