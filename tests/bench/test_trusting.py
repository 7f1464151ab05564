"""What the trust map is worth, in records: the numbers, what they are keyed by, and what has no map."""

from pathlib import Path

import numpy as np
import pytest
import torch

from leader.bench.experiment_file import load_experiment
from leader.bench.images import load_image
from leader.bench.keys import identify
from leader.bench.priors import open_prior, referee_fingerprint
from leader.bench.records import Store
from leader.bench.run import gather, run_experiment
from leader.bench.running import judged, run_cell
from leader.bench.setup import sampler_of
from leader.bench.statistics import Numbers
from leader.bench.tables import render_table
from leader.engines import make_engine
from leader.errors import LeaderError
from leader.trust import calibration, referee
from leader.trust.calibration import LEVELS, Calibration, Node
from leader.trust.error_map import ErrorMap
from tests.bench.tiny import measure, write_tiny

TOML = """
title = "Tiny trust"
tasks = ["dots", "sr"]

[task.dots]
label = "Dots"
name = "inpaint"
options = { keep = 0.5, seed = "image" }

[task.sr]
label = "SR"
name = "sr"
options = { factor = 4 }
sigma = 0.05

[[rows]]
methods = ["ddnm"]
estimator = "hutchinson"

[table]
metrics = ["coverage", "coverage_50", "calibration_error", "ause", "rank", "trust_seconds"]

[form.small]
prior = "gaussian"
images = "IMAGES"
size = 24
count = 2
steps = 5
keep = ["trust"]
"""


def with_referee(folder: Path) -> Path:
    """The closed-form prior gets a referee that says exp(-3) everywhere."""
    file = folder / "weights.referee"
    torch.manual_seed(0)
    referee.Referee().save(file)
    for asked in ((), ("cpu", "float32")):  # kept apart by the cache of open priors
        referee.attach(open_prior("gaussian", 24, *asked), file)
    return file


@pytest.fixture(autouse=True)
def fresh_prior() -> None:
    """No referee is left over from another test."""
    open_prior.cache_clear()


def test_the_numbers_are_of_the_open_pixels_and_right() -> None:
    rng = np.random.default_rng(0)
    error, std = rng.normal(size=(3, 32, 32)).astype(np.float32), rng.uniform(0.5, 2, (32, 32)).astype(np.float32)
    is_open = rng.random((32, 32)) < 0.6
    level = dict(zip(LEVELS, (0.5, 1.0, 1.6449, 2.0)))
    found = judged(ErrorMap(torch.from_numpy(std), level, "calibrated"), torch.from_numpy(error), torch.from_numpy(is_open))
    inside = {name: (np.abs(error) <= value * std)[:, is_open].mean() for name, value in level.items()}
    assert found["coverage"] == pytest.approx(inside[0.9], abs=1e-6)
    assert found["coverage_50"] == pytest.approx(inside[0.5], abs=1e-6)
    assert found["coverage_95"] == pytest.approx(inside[0.95], abs=1e-6)
    off = np.mean([abs(share - name) for name, share in inside.items()])
    assert found["calibration_error"] == pytest.approx(off, abs=1e-6)
    assert found == {name: round(value, 6) for name, value in found.items()}, "as many decimals as records hold"
    error[:, ~is_open], std[~is_open] = 50, 1e-3
    again = judged(ErrorMap(torch.from_numpy(std), level, "calibrated"), torch.from_numpy(error), torch.from_numpy(is_open))
    assert again == found
    perfect = np.abs(error).max(0)
    best = judged(
        ErrorMap(torch.from_numpy(perfect), level, ""), torch.from_numpy(np.stack([perfect] * 3)), torch.ones(32, 32) > 0
    )
    assert best["ause"] == pytest.approx(0, abs=1e-6) and best["rank"] == pytest.approx(1)
    with pytest.raises(LeaderError, match="known"):
        judged(ErrorMap(torch.ones(8, 8), level, ""), torch.ones(3, 8, 8), torch.zeros(8, 8, dtype=torch.bool))


def test_an_experiment_has_the_metrics_as_columns(tmp_path: Path) -> None:
    with_referee(tmp_path)
    experiment = load_experiment(write_tiny(tmp_path, TOML))
    store = Store(tmp_path / "records", experiment.name)
    outcome = run_experiment(experiment, store, make_engine(), quiet=True)
    assert (outcome.ran, outcome.failed) == (4, 0)
    found = gather(experiment, store)
    numbers = Numbers(experiment, found.places)
    text = render_table(numbers)
    assert "90 % intervals" in text and "AUSE" in text and "calibration error" in text and "rank" in text
    values = numbers.per_image("DDNM", "Dots", "coverage")
    assert len(values) == 2 and all(0 < value < 1 for value in values.values())
    record = next(iter(found.places.values()))
    assert record["trust_seconds"] > 0 and record["psnr"] > 5


def test_the_referee_and_its_factors_are_part_of_the_key_of_trust_alone(tmp_path: Path) -> None:
    trusted = load_experiment(write_tiny(tmp_path, TOML)).cells()[0]
    plain = load_experiment(write_tiny(tmp_path, TOML.replace('keep = ["trust"]', ""))).cells()[0]
    before = identify(plain).key
    assert "referee" not in identify(plain).asked
    assert identify(trusted).asked["referee"] == "absent" and identify(trusted).revisions == identify(plain).revisions | {
        "trust": 2
    }
    file = with_referee(tmp_path)
    keys = {identify(trusted).key}
    Calibration({"sr": (Node(0.0, (1.0, 2.0, 3.0, 4.0), 8),)}).save(calibration.beside(file))
    keys.add(identify(trusted).key)
    Calibration({"sr": (Node(0.0, (1.0, 2.0, 3.5, 4.0), 8),)}).save(calibration.beside(file))
    keys.add(identify(trusted).key)
    assert len(keys) == 3 and identify(plain).key == before
    assert "+" in referee_fingerprint("gaussian", 24)


def test_without_a_map_the_record_says_why(tmp_path: Path) -> None:
    cell = load_experiment(write_tiny(tmp_path, TOML)).cells()[0]
    assert "fit-trust" in run_cell(cell).record["error"]
    with_referee(tmp_path)
    record, truth = run_cell(cell).record, load_image(cell.image, "crop", 24) if cell.image else torch.zeros(0)
    problem = measure(cell, truth)
    found = sampler_of(cell.recipe, open_prior("gaussian", 24)).run(problem, 0, ids=[cell.index]).images
    is_open = problem.operator.A(torch.ones(1, 3, 24, 24)) == 0
    inside = (found - (2 * truth - 1)).abs()[is_open] <= 1.6449 * np.exp(-3)
    assert record["coverage"] == pytest.approx(float(inside.float().mean()), abs=1e-3), "a map of the [-1, 1] picture's errors"
    assert "baseline" in run_cell(cell.altered(method="pinv")).record["error"]
