"""Runs kept for a referee, the fit, and the two commands, on a prior that costs nothing."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from leader.cli import app
from leader.engines import LocalEngine, Lost
from leader.pictures import list_pictures
from leader.priors import loading
from leader.problem import Problem
from leader.restoration.choice import Choice
from leader.restoration.restore import restore
from leader.train import defaults, trust_files
from leader.train import trust_runs as runs
from leader.train.trust_fit import FitSettings, Lesson, _draw_batch, fit_calibration, fit_referee, loss, make_lesson, ratios
from leader.trust import calibration
from leader.trust.calibration import Calibration, beside
from leader.trust.evidence import CHANNELS
from leader.trust.referee import Referee
from tests.cheap_prior import CheapPrior, photograph
from tests.sentences import refusal

SIDE = 32


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two photographs, 80 x 96."""
    photographs = tmp_path / "photos"
    photographs.mkdir()
    for number in range(2):
        pixels = photograph(80, 96).permute(1, 2, 0).numpy()[:: 1 - 2 * number]
        Image.fromarray(np.round(255 * pixels).astype(np.uint8)).save(photographs / f"{number}.png")
    return photographs


def test_every_kind_of_case_can_be_run_and_kept(folder: Path, tmp_path: Path) -> None:
    prior = CheapPrior()
    cases = runs.training_cases(2, 60, side=SIDE)
    plain = {"sr", "deblur-gaussian", "deblur-motion", "inpaint", "cs", "denoise", "colourise"}
    assert {case.task for case in cases if case.file is None} == plain
    assert {case.task for case in cases if case.file is not None} == set(runs.FILE_TASKS)
    assert {case.quality for case in cases} == {"draft", "standard"} and {case.method for case in cases} >= {None, "ddnm"}
    assert any("box" in case.options for case in cases) and any(case.noise == 0 for case in cases)
    one_of_each = {(case.task, "box" in case.options, case.file is None): case for case in cases}
    for place, case in enumerate(one_of_each.values()):
        told = {**case.file, "given": True} if case.file else None  # so small a picture with holes does not show its noise
        quick = replace(case, file=told) if told else replace(case, method="ddnm", quality="draft")
        run = runs.run_case(prior, quick, runs.crop_of(folder, quick))
        runs.write_run(tmp_path / f"{place}.npz", replace(run, metric=place % 2 == 0))
        again = runs.read_run(tmp_path / f"{place}.npz")
        assert again.case["task"] == case.task and again.noise == run.noise and again.metric == (place % 2 == 0)
        assert again.level == run.level and (run.level == run.noise) == (case.task != "jpeg")
        assert torch.equal(again.error, run.error), "to all digits"
        torch.testing.assert_close(again.evidence.features(), run.evidence.features(), atol=0.1, rtol=0.1)
        assert torch.equal(again.open, run.open)
        if case.file is None:
            assert run.noise == pytest.approx(case.noise)
            if case.task == "inpaint":
                assert bool(run.open.all()) is (case.noise > 0)


def test_the_error_of_a_picture_file_is_that_of_its_restoration(folder: Path) -> None:
    """A blur's frame is larger than the picture: evidence is of the frame, the error a question inside the picture alone."""
    prior = CheapPrior()
    case = runs.RunCase(
        "deblur-gaussian", 0.03, 0, 0, {"kernel": "gaussian:1.2"}, seed=4, side=SIDE, file={"given": True, "jpeg": 90}
    )
    crop = runs.crop_of(folder, case)
    run = runs.run_case(prior, case, crop, name=2)
    assert run.inside is not None and int(run.inside.sum()) == SIDE * SIDE < run.inside.numel()
    given = trust_files.degrade_picture(crop, case, 90)
    assert given.history is not None and given.history.quality == 90
    assert np.allclose(255 * given.pixels, np.round(255 * given.pixels), atol=1e-3)
    answer = restore(given, case.task, sigma=0.03, prior=prior, seed=4, ids=2, check=False, **case.options)
    error = 2 * (answer.array.transpose(2, 0, 1) - crop.numpy())
    np.testing.assert_allclose(run.error[:, run.open].numpy(), error.reshape(3, -1), atol=1e-5)


def test_a_file_that_is_not_told_its_noise_finds_it(folder: Path) -> None:
    case = runs.RunCase("denoise", 0.04, 0, 0, seed=1, side=64, file={"given": False})
    run = runs.run_case(CheapPrior(), case, runs.crop_of(folder, case))
    told = runs.run_case(CheapPrior(), replace(case, file={"given": True}), runs.crop_of(folder, case))
    assert told.noise == pytest.approx(0.04) and run.noise != told.noise and 0.02 < run.noise < 0.08


def test_the_level_of_a_jpeg_is_its_strength_and_a_small_photograph_serves_whole(folder: Path) -> None:
    """Pillow's luma table of quality 50 has a geometric mean of 45.3; at quality 90 its steps are a fifth."""
    levels = []
    for quality in (50, 90):
        case = runs.RunCase("jpeg", 0.0, 0, 0, {"quality": quality}, side=runs.LARGE, file={"given": False})
        run = runs.run_case(CheapPrior(), case, runs.crop_of(folder, case))
        assert run.truth.shape == (3, 80, 80)
        levels.append(run.level)
        (family, level, _), *_ = ratios(Referee(), [run])
        assert family == "jpeg" and level == calibration.nearest_level(run.level)
    assert levels[0] == pytest.approx(45.3 / 12**0.5 / 255, rel=0.01) and levels[1] == pytest.approx(levels[0] / 5, rel=0.03)


def test_half_of_the_files_say_how_noisy_they_are_and_jpegs_never() -> None:
    files = [case for case in runs.training_cases(2, 600) if case.file is not None]
    assert len(files) == 124 and 30 < sum(case.file["given"] for case in files if case.file) < 75
    assert all(case.noise == 0 for case in files if case.task == "jpeg")
    assert all(not case.file["given"] for case in files if case.file and "jpeg" in case.file)
    assert all(case.file["given"] for case in files if case.file and case.options.get("factor") == 4), "too small to estimate"
    told = runs.file_cases(16, 3)
    assert {case.noise for case in told if case.task == "denoise"} == {0.02, 0.05, 0.1, 0.2}
    assert {case.noise for case in told if case.task == "jpeg"} == {0.0}
    exact = runs.calibration_cases(16, 2, ("denoise", "colourise"))
    assert {case.noise for case in exact if case.task == "denoise"} == {0.02, 0.05, 0.1, 0.2}
    assert {case.noise for case in exact if case.task == "colourise"} == {0.0, 0.02, 0.05, 0.1}
    assert len(told) == 16 * 3 * len(runs.FILE_TASKS) and {case.task for case in told} == set(runs.FILES)


def test_what_differs_most_from_run_to_run_is_seen_most() -> None:
    tasks = [case.task for case in runs.training_cases(2, 19 * 8) if case.file is None]
    assert (
        tasks.count("deblur-motion") == 3 * 8 > tasks.count("cs") == tasks.count("sr") == tasks.count("deblur-gaussian") == 16
    )
    assert tasks.count("colourise") == 8 + 4 and tasks.count("denoise") == 4


def test_runs_that_are_there_are_not_made_again(folder: Path, tmp_path: Path) -> None:
    prior = CheapPrior()
    cases = [replace(case, quality="draft", method="ddnm") for case in runs.calibration_cases(2, 1, ("sr", "inpaint"))]
    assert [case.picture for case in cases] == [0, 0, 1, 1] and len({case.noise for case in cases}) > 1
    store = tmp_path / "store"
    first = list(runs.make_runs(prior, folder, cases, store))
    stamps = [file.stat().st_mtime_ns for file in first]
    first[1].unlink()
    second = sorted(runs.make_runs(prior, folder, cases, store))
    assert second == first and [file.stat().st_mtime_ns == stamp for file, stamp in zip(second, stamps)] == [1, 0, 1, 1]


def test_every_photograph_sees_every_noise_level_and_every_method() -> None:
    cases = runs.calibration_cases(16, nodes=(0.0, 0.05), methods=("ddnm", "diffpir"))
    assert len(cases) == 16 * 4 * len(runs.FAMILIES)
    for picture in range(16):
        for family in range(len(runs.FAMILIES)):
            own = [case for case in cases[family :: len(runs.FAMILIES)] if case.picture == picture]
            assert {(case.noise, case.method) for case in own} == {(n, m) for n in (0.0, 0.05) for m in ("ddnm", "diffpir")}
            assert [case.crop for case in own] == [0, 1, 2, 3]
    four = [case for case in runs.calibration_cases(16) if case.task == "sr" and case.picture == 5]
    assert sorted(case.noise for case in four) == list(calibration.NODES)


def test_factors_are_fitted_to_every_family_in_fair_parts() -> None:
    cases = runs.every_family(4, 2, side=32)
    assert {case.side for case in cases if case.task != "jpeg"} == {32}, "whatever the task and the kind of file"
    blocks = [case for case in cases if case.task == "jpeg"]
    assert {(case.side, case.look) for case in blocks} == {(runs.LARGE, "natural"), (runs.LARGE, "faithful")}
    assert [case.crop for case in cases] == sorted(case.crop for case in cases)
    kinds = {(case.task, case.file is not None) for case in cases[: len(cases) // 2]}
    assert kinds >= {("denoise", False), ("colourise", False), ("cs", False), ("sr", False)}
    assert kinds >= {(task, True) for task in runs.FILES}, "what people have are files"
    named = [case for case in cases if case.method is not None]
    assert len(named) == 4 * len(runs.FAMILIES) and {case.method for case in named} == set(runs.NAMED)
    assert len(blocks) == 4 * 4 and min(case.options["quality"] for case in blocks) < 20
    assert len(cases) == 4 * (3 * len(runs.FAMILIES) + len(runs.SIMPLE) + len(runs.FILE_TASKS) - 1 + 4)


def test_a_photograph_is_halved_as_often_as_asked_while_it_is_large_enough(folder: Path) -> None:
    case = runs.RunCase("sr", 0.0, 0, 0, side=16, halvings=2)
    whole = torch.from_numpy(np.asarray(Image.open(list_pictures(folder)[0])).copy()).permute(2, 0, 1).float() / 255
    quarter = torch.nn.functional.avg_pool2d(whole[None], 4)[0]
    crop = runs.crop_of(folder, case)
    places = quarter.unfold(1, 16, 1).unfold(2, 16, 1)
    assert float((places - crop[:, None, None]).abs().mean((0, 3, 4)).min()) < 0.02
    assert torch.equal(runs.crop_of(folder, replace(case, halvings=9)), crop), "80 pixels are halved twice for a side of 16"


def test_the_loss_is_least_at_the_size_of_the_errors_and_every_picture_counts_the_same() -> None:
    draw = torch.Generator().manual_seed(0)
    error = torch.randn(2, 3, 64, 64, generator=draw).abs().clamp_min(1e-3) * torch.tensor([0.01, 0.5]).view(2, 1, 1, 1)
    is_open = torch.ones(2, 64, 64, dtype=torch.bool)
    stds = torch.tensor([0.01, 0.5]).log().view(2, 1, 1).expand(2, 64, 64)
    best = float(loss(stds, error, is_open, 2.0))
    for factor in (0.8, 1.25):
        for row in range(2):
            shifted = stds + np.log(factor) * (torch.arange(2) == row).view(2, 1, 1)
            assert float(loss(shifted, error, is_open, 2.0)) > best + 0.005
    once = float(loss(stds, error, is_open, 3.0)) - best
    assert once == pytest.approx(float(stds.mean()) + 0.5, abs=0.02), "the likelihood of Gaussian errors"
    half = is_open.clone()
    half[0, 32:] = False
    spoilt = torch.where(half[:, None], error, 7.0)
    assert float(loss(stds, spoilt, half, 2.0)) == pytest.approx(best, abs=0.03), "what is no question does not count"


def test_workers_make_the_same_runs(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []

    def load(name: str) -> CheapPrior:
        loads.append(name)
        return CheapPrior()

    class Backward(LocalEngine):
        """Answers in another order than it was asked."""

        def each(self, function: Any, jobs: Any) -> Any:
            yield from reversed(list(super().each(function, jobs)))

    monkeypatch.setattr(loading, "load_prior", load)
    runs._load_prior.cache_clear()
    cases = [replace(case, quality="draft", method="ddnm") for case in runs.calibration_cases(2, 2, ("sr",))]
    cases[1], cases[3] = cases[3], cases[1]  # pictures 0, 1, 1, 0
    cases[2] = replace(cases[2], picture=1)
    here = list(runs.make_runs(CheapPrior(), folder, cases, tmp_path / "here"))
    runs.write_run(tmp_path / "there" / "00002.npz", runs.read_run(here[2]))
    there = list(runs.make_runs(CheapPrior(), folder, cases, tmp_path / "there", None, Backward(1), "mine"))
    runs._load_prior.cache_clear()
    assert loads == ["mine"] and [path.name for path in there] == [f"{n:05d}.npz" for n in (2, 3, 1, 0)]
    for one, other in zip(here, sorted(there)):
        first, second = runs.read_run(one), runs.read_run(other)
        assert torch.equal(first.truth, second.truth) and first.case == second.case
        assert torch.equal(first.evidence.restored, second.evidence.restored)

    here[0].unlink()
    late = runs.make_runs(CheapPrior(), folder, cases, tmp_path / "here", None, Backward(1), "mine")
    assert runs.make_timed_runs(late, None, 600) == here, "in the order of the cases"

    class Losing(LocalEngine):
        def each(self, function: Any, jobs: Any) -> Any:
            yield 0, Lost("its worker died")

    assert "its worker died" in refusal(list, runs.make_runs(CheapPrior(), folder, cases, tmp_path / "lost", None, Losing(1)))


def test_a_case_chooses_its_mask_by_its_seed_and_its_path_by_its_look() -> None:
    prior = CheapPrior()
    prior.name = "embedded"
    drawn = (runs.RunCase("inpaint", 0.0, 0, 0, {"keep": 0.5}, seed=seed, side=16).operator() for seed in (1, 1, 2))
    masks = [operator.A(torch.ones(1, 3, 16, 16)) for operator in drawn]
    assert torch.equal(masks[0], masks[1]) and not torch.equal(masks[0], masks[2])
    settings = []
    for look in ("natural", "faithful"):
        case = runs.RunCase("sr", 0.05, 0, 0, {"factor": 2}, look=look, side=16)
        problem = Problem.simulate(photograph(16, 16)[None], case.operator(), case.noise)
        settings.append(case.sampler(prior, problem).plan(problem).settings)
        assert settings[-1] == Choice(prior, "standard", look).sampler(problem).plan(problem).settings
    assert settings[0] != settings[1]


def test_crops_are_of_the_picture_and_differ(folder: Path) -> None:
    case = runs.RunCase("sr", 0.0, 0, 0, side=SIDE)
    crops = [runs.crop_of(folder, replace(case, crop=number)) for number in range(4)]
    assert all(crop.shape == (3, SIDE, SIDE) for crop in crops)
    assert len({round(float(crop.sum()), 3) for crop in crops}) == 4
    whole = torch.from_numpy(np.asarray(Image.open(list_pictures(folder)[0])).copy()).permute(2, 0, 1) / 255
    places = whole.unfold(1, SIDE, 1).unfold(2, SIDE, 1)
    assert float((places - crops[0][:, None, None]).abs().amax((0, 3, 4)).min()) < 1e-6, "even numbers are of the full size"
    assert "smaller than" in refusal(runs.crop_of, folder, replace(case, side=200))


def test_a_referee_learns_the_size_of_errors_and_looks_at_open_pixels_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    lessons = []
    for _ in range(6):
        features = torch.randn(CHANNELS, 32, 32, generator=generator)
        std = (0.6 * features[4] - 2).exp()
        is_open = torch.rand(32, 32, generator=generator) < 0.7
        error = (std * torch.randn(3, 32, 32, generator=generator)).abs()
        lessons.append(Lesson(features, torch.where(is_open, error, 10.0), is_open))
    referee = fit_referee(lessons, FitSettings(steps=100, crop=32, rate=1e-2))
    fresh = torch.randn(1, CHANNELS, 40, 40, generator=generator)
    off = (referee(fresh)[0] - (0.6 * fresh[0, 4] - 2)).abs()
    assert float(off.mean()) < 0.25
    further = fit_referee(lessons, FitSettings(steps=1, crop=32, rate=1e-6), start=referee)
    torch.testing.assert_close(further(fresh), referee(fresh), atol=1e-3, rtol=1e-3)
    assert "no runs" in refusal(fit_referee, [])


def test_crops_lie_every_way() -> None:
    square = torch.arange(4.0).reshape(1, 2, 2)
    lesson, settings = Lesson(square, square, torch.ones(2, 2, dtype=torch.bool)), FitSettings(batch=64, crop=2)
    features, error, _ = _draw_batch([lesson], settings, torch.Generator().manual_seed(0))
    assert torch.equal(features, error) and len({tuple(one) for one in features.flatten(1).tolist()}) == 8


def test_calibration_makes_the_intervals_of_kept_runs_cover(folder: Path) -> None:
    prior = CheapPrior()
    cases = [replace(c, quality="draft", method="ddnm") for c in runs.calibration_cases(2, 4, ("sr",), nodes=(0.05,))]
    made = [runs.run_case(prior, case, runs.crop_of(folder, case)) for case in cases]
    referee = Referee()
    table = fit_calibration(referee, made)
    (node,) = table.families["sr"]
    assert node.noise == 0.05 and node.runs == 8
    assert set(fit_calibration(referee, [replace(made[0], metric=True)]).families) == {"sr, metric"}
    covered = [float((run.error.abs() <= node.factors[2] * referee.std(run.evidence)).double().mean()) for run in made]
    assert np.mean(covered) == pytest.approx(0.9, abs=0.01)
    files = [replace(run, case={**run.case, "file": {"given": True}}, truth=run.truth + 4 * run.error) for run in made[:4]]
    both = fit_calibration(referee, [*files, *made]).families["sr"][0]
    assert both.runs == 12 and both.factors[0] > node.factors[0], "files err more, and count"
    assert make_lesson(made[0]).features.shape == (CHANNELS, 64, 64)


def test_the_commands_write_a_referee_and_its_factors(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prior = CheapPrior()
    weights = tmp_path / "weights.safetensors"
    weights.write_bytes(b"")
    monkeypatch.setattr(loading, "load_prior", lambda name: prior)
    monkeypatch.setattr(defaults, "FEWEST_RUNS", 2)
    runner = CliRunner()
    words = ["--prior", str(weights), "--images", str(folder), "--minutes", "0.001"]
    early = runner.invoke(app, ["calibrate", *words])
    assert early.exit_code == 1 and "fit-trust" in early.stderr
    fit = runner.invoke(app, ["fit-trust", *words, "--store", str(tmp_path / "runs")])
    assert fit.exit_code == 0, fit.output
    file = tmp_path / "weights.referee"
    assert fit.stdout.strip() == str(file) and len(list((tmp_path / "runs").glob("*.npz"))) == 2
    Referee.load(file)
    calibrated = runner.invoke(app, ["calibrate", *words, "--crops", "1"])
    assert calibrated.exit_code == 0, calibrated.output
    assert len(Calibration.load(beside(file)).families) == 2 and json.loads(beside(file).read_text())["levels"][2] == 0.9
    for wrong, told in (
        (["calibrate", *words, "--engine", "slurm"], "local, ray"),
        (["calibrate", *words, "--address", "auto"], "'ray'"),
        (["fit-trust", "--images", str(folder), "--out", "a.bin"], ".referee"),
        (["fit-trust", "--images", str(folder), "--minutes", "0"], "--minutes"),
    ):
        refused = runner.invoke(app, wrong)
        assert refused.exit_code == 2 and told in refused.stderr
    monkeypatch.setattr("leader.engines.make_engine", lambda *_, **__: LocalEngine(1))
    first = beside(file).read_text()
    helped = runner.invoke(app, ["calibrate", *words, "--crops", "1", "--engine", "ray"])
    assert helped.exit_code == 0 and beside(file).read_text() == first, helped.output
