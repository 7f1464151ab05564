"""The table of distances: sets, parts and averages, with features that are simply pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from leader.bench import distances
from leader.bench.distances import cut, render_distances
from leader.bench.records import Record, Store
from leader.metrics.distribution import fid, kid
from tests.bench.tiny import TOML, tiny

ROWS = """[[rows]]
methods = ["reference"]

[[rows]]
methods = ["ddnm"]

[table]
kind = "distances"
parts = 2

[form.small]"""


def test_parts_of_a_picture() -> None:
    picture = torch.arange(3 * 5 * 4).reshape(3, 5, 4)
    parts = cut(picture, 2)
    assert [part.shape for part in parts] == [(3, 2, 2)] * 4
    assert torch.equal(parts[1], picture[:, :2, 2:4]) and torch.equal(parts[2], picture[:, 2:4, :2])
    assert torch.equal(cut(picture, 1)[0], picture)


@pytest.mark.parametrize("smallest", [1000, 8])
def test_every_row_and_task_and_the_average(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, smallest: int) -> None:
    """Too few pictures: each counts as four parts and FID is refused; enough: whole pictures, FID and a sentence."""

    def pixels(pictures: Tensor) -> Tensor:
        return pictures[:, :, :2, :2].flatten(1).double()

    monkeypatch.setattr(distances, "inception_features", pixels)
    monkeypatch.setattr(distances, "FID_SMALLEST_SET", smallest)
    monkeypatch.setattr("leader.metrics.distribution.FID_SMALLEST_SET", smallest)
    made = tiny(
        tmp_path, TOML.split("[[rows]]", 1)[0] + ROWS + TOML.split("[form.small]", 1)[1].replace("count = 4", "count = 20")
    )
    store = Store(tmp_path, made.name)
    rng = np.random.default_rng(0)
    records: dict[tuple[str, str, int, int], Record] = {}
    sets: dict[tuple[str, str], list[Tensor]] = {}
    folder = tmp_path / "pictures"
    folder.mkdir()
    for row in made.rows:
        for task in made.tasks:
            for index in range(20):
                values = rng.integers(0, 200 if row.method == "ddnm" else 256, (8, 8, 3), dtype=np.uint8)
                name = f"{row.method}-{task.name}-{index}.png"
                Image.fromarray(values).save(folder / name)
                records[row.label, task.label, index, 0] = {"pictures": {"restored": name}}
                whole = torch.from_numpy(values.astype(np.float32) / 255).permute(2, 0, 1)
                sets.setdefault((row.label, task.label), []).extend(cut(whole, 2 if smallest == 1000 else 1))
    text = render_distances(made, records, store)
    found = {}
    for label in ("SR", "Motion"):
        mine, truth = (pixels(torch.stack(sets[host, label])) for host in ("DDNM", "Reference"))
        found[label] = (kid(mine, truth).mean, fid(mine, truth) if smallest == 8 else None)
        assert f"| DDNM | {label} | {len(mine)} | {1000 * found[label][0]:.2f} ±" in text
    assert (
        f"| DDNM | average of the tasks | {80 if smallest == 1000 else 20} | {500 * sum(v[0] for v in found.values()):.2f} ±"
        in text
    )
    if smallest == 8:
        mean = sum(value for _, value in found.values() if value is not None) / 2
        assert f"| {mean:.2f} |" in text and "biased upwards" in text
    else:
        assert "needs 1,000 pictures" in text and "biased" not in text
