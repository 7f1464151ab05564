"""The table of distances: sets, parts and averages, with features that are simply pixels."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from leader.bench import distances
from leader.bench.distances import (
    Distances,
    Estimate,
    StoredDistances,
    average,
    cut,
    distances_of,
    jackknife_error,
    key_of,
    render_distances,
)
from leader.bench.records import Record, Store
from leader.errors import LeaderError
from leader.metrics.distribution import fid, frechet_of_samples, kid, squared_mmd
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

    def not_again(pictures: Tensor) -> Tensor:
        raise AssertionError("the network was asked again")

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
                records[row.label, task.label, index, 0] = {
                    "asked": {"name": name},
                    "psnr": 20.0,
                    "pictures": {"restored": name},
                }
                whole = torch.from_numpy(values.astype(np.float32) / 255).permute(2, 0, 1)
                sets.setdefault((row.label, task.label), []).extend(cut(whole, 2 if smallest == 1000 else 1))
    text = render_distances(made, records, store)
    found = {}
    for label in ("SR", "Motion"):
        mine, truth = (pixels(torch.stack(sets[host, label])) for host in ("DDNM", "Reference"))
        enough = smallest == 8
        found[label] = (
            kid(mine, truth).mean if enough else float(squared_mmd(mine, truth)),
            fid(mine, truth) if enough else frechet_of_samples(mine, truth),
        )
        after = " | " if enough else " ["
        assert f"| DDNM | {label} | {len(mine)} | {1000 * found[label][0]:.2f}{after}" in text
        assert f" | {found[label][1]:.2f}{after}" in text
    mean = [sum(values) / 2 for values in zip(*found.values())]
    assert f"| DDNM | average of the tasks | {20 if smallest == 8 else 80} | {1000 * mean[0]:.2f}" in text
    assert f" | {mean[1]:.2f}" in text and "biased upwards" in text
    assert ("jackknife" in text) == (smallest == 1000) == ("FID on parts" in text)
    shutil.rmtree(folder)
    monkeypatch.setattr(distances, "inception_features", not_again)
    stored = (tmp_path / "distances" / f"{made.name}.json").read_bytes()
    assert render_distances(made, records, store) == text, "from the numbers kept, without pictures and network"
    assert (tmp_path / "distances" / f"{made.name}.json").read_bytes() == stored and stored.count(b"\n") == 4
    records["DDNM", "SR", 3, 0]["psnr"] = 20.1
    with pytest.raises(LeaderError, match="is missing"):
        render_distances(made, records, store)


def test_kept_distances_go_with_requests_scores_parts_and_revision(tmp_path: Path) -> None:
    """Another key of a record changes nothing; a picture of other scores, another set, other parts or revision do."""
    record = {"asked": {"size": 8}, "key": "1", "psnr": 20.0, "lpips": 0.1}
    key = key_of([[record], [record]], 2, 1)
    assert key_of([[{**record, "key": "3", "revisions": {"ddnm": 2}}], [record]], 2, 1) == key
    changes: list[dict[str, object]] = [{"asked": {}}, {"psnr": 0.0}, {"lpips": 0.2}]
    others = [key_of([[{**record, **change}], [record]], 2, 1) for change in changes]
    others += [key_of([[record, record], [record]], 2, 1), key_of([[record]], 2, 1)]
    others += [key_of([[record], [record]], 1, 1), key_of([[record], [record]], 2, 2)]
    assert len({key, *others}) == 8
    first = StoredDistances(tmp_path, "x")
    assert first.find("k") is None and first.keep("k", [[1], [1 / 3, 2e-12]]) == [[1.0], [0.333333333, 2e-12]]
    first.keep("old", [[0.0]])
    again = StoredDistances(tmp_path, "x")  # an interrupted table goes on where it was
    assert again.find("k") == [[1.0], [0.333333333, 2e-12]] and again.find("other") is None
    again.keep("a", [[2.0]])
    assert list(json.loads((tmp_path / "distances" / "x.json").read_bytes())) == ["a", "k", "old"]
    (tmp_path / "distances" / "x.json").write_text('{"k": 1}')
    with pytest.raises(LeaderError, match="does not hold stored distances"):
        StoredDistances(tmp_path, "x")


def test_pictures_are_left_out_with_all_of_their_parts() -> None:
    rng = np.random.default_rng(3)
    found, truth = (torch.from_numpy(rng.standard_normal((24, 3)) + shift) for shift in (0.4, 0.0))
    made = distances_of(found, truth, parts=4, few=True)
    assert made.count == 24 and len(made.kid.numbers) == len(made.fid.numbers) == 1 + 6
    kept = torch.cat([found[:8], found[12:]]), torch.cat([truth[:8], truth[12:]])
    assert made.kid.numbers[3] == pytest.approx(float(squared_mmd(*kept)))
    assert made.fid.numbers[3] == pytest.approx(frechet_of_samples(*kept))
    few = distances_of(found[:20], truth, parts=4, few=True)
    assert len(few.kid.numbers) == 1, "sets that are no pairs have no pictures to leave out"


def estimate(value: float, left_out: NDArray[np.float64]) -> Estimate:
    return Estimate(np.array([value, *left_out]))


def test_differences_and_averages_keep_the_pairing() -> None:
    """What two rows share picture by picture cancels in the interval of their difference."""
    shared = np.linspace(0, 1, 8)
    mine, host = (Distances(32, estimate(value, shared + value), estimate(value, shared)) for value in (0.5, 0.2))
    assert (
        mine.text(host)
        == f"32 | {mine.kid.text(1000)} | {mine.fid.text()} | **+300.00 [+300.00, +300.00]** | **+0.30 [+0.30, +0.30]**"
    )
    assert mine.text(None).endswith("| – | –")
    both = average([mine, host, host])
    assert np.allclose(both.kid.numbers, [0.3, *(shared + 0.3)])
    assert estimate(1.0, shared[:4]).text() == "1.00", "too few pictures for an interval"
    half = 1.959964 * jackknife_error(shared)
    assert estimate(0.1, shared).text(1, "+") == f"+0.10 [{0.1 - half:+.2f}, {0.1 + half:+.2f}]", "zero is inside"
