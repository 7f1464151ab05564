"""Distances between sets of restored and reference pictures (FID, KID), from the pictures that records keep.

For experiments with [table] kind = "distances", whose form keeps "restored" and which have a row of the
baseline "reference".
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from leader.bench.cell import Place
from leader.bench.experiment import Experiment
from leader.bench.records import Record, Store
from leader.errors import LeaderError
from leader.metrics.distribution import FID_SMALLEST_SET, fid, kid
from leader.metrics.inception import inception_features


def render_distances(experiment: Experiment, records: Mapping[Place, Record], store: Store) -> str:
    """KID of every row and task against the reference, and FID where there are enough pictures, as Markdown."""
    references = [row for row in experiment.rows if row.method == "reference"]
    if not references:
        raise LeaderError(f"The experiment '{experiment.name}' needs a row of the method 'reference' to compare with.")
    lines = [
        f"## {experiment.title}",
        "",
        "| method | task | pictures | KID x 1000 | FID |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for task in experiment.tasks:
        truth = _features(references[0].label, task.label, records, store)
        for row in experiment.rows:
            if row.method == "reference":
                continue
            found = _features(row.label, task.label, records, store)
            distance = kid(found, truth)
            shown = f"{1000 * distance.mean:.2f} ± {1000 * distance.std:.2f}"
            enough = min(len(found), len(truth)) >= FID_SMALLEST_SET
            frechet = f"{fid(found, truth):.2f}" if enough else f"needs {FID_SMALLEST_SET:,} pictures"
            lines.append(f"| {row.label} | {task.label} | {len(found)} | {shown} | {frechet} |")
    return "\n".join([*lines, ""])


def _features(row: str, task: str, records: Mapping[Place, Record], store: Store) -> Tensor:
    chosen = [record for place, record in sorted(records.items()) if place[:2] == (row, task) and "error" not in record]
    pictures = []
    for record in chosen:
        with Image.open(store.picture(record, "restored"), formats=("PNG",)) as file:
            pixels = np.array(file.convert("RGB"), dtype=np.float32) / 255
        pictures.append(torch.from_numpy(pixels).permute(2, 0, 1))
    return inception_features(torch.stack(pictures))
