"""A variance head for somebody else's network: fitted in seconds, calibrated on pictures it has not seen."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from leader.pictures import list_pictures
from leader.priors.base import Prediction, Prior, from_eps
from leader.priors.variance_head import HeadShape, VarianceHead, head_file
from leader.schedule import Schedule
from leader.train.data import decode
from leader.train.fit_gaussian import fit_coarse_gaussian
from leader.train.variance import (
    Answers,
    FitSettings,
    _read_pictures,
    calibrate,
    collect,
    fit_variance,
    negative_log_likelihood,
)
from tests.sentences import refusal
from tests.train.pictures import write_pictures


class TinyEpsPrior(Prior):
    """A small convolutional eps-network, as foreign checkpoints are, on a short schedule."""

    name = "tiny"
    channels = 3

    def __init__(self) -> None:
        super().__init__(Schedule.linear(1e-3, 0.1, 100))
        torch.manual_seed(0)
        self.body = nn.Sequential(
            nn.Conv2d(5, 16, 3, padding=1), nn.SiLU(), nn.Conv2d(16, 16, 3, padding=1), nn.SiLU(),
            nn.Conv2d(16, 3, 3, padding=1),
        )  # fmt: skip

    def eps(self, x: Tensor, t: Tensor) -> Tensor:
        level = self.schedule.level(t, x)
        constants = torch.cat([level.signal, level.noise], 1).expand(-1, 2, *x.shape[2:])
        eps: Tensor = self.body(torch.cat([x, constants], 1))
        return eps

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        return from_eps(x, t, self.eps(x, t), self.schedule)


def train_eps(prior: TinyEpsPrior, folder: Path, steps: int) -> None:
    images = [torch.from_numpy(np.asarray(decode(path)).copy()) for path in list_pictures(folder)]
    clean = torch.stack([image[:128, :128].permute(2, 0, 1).float() / 127.5 - 1 for image in images])
    optimiser = torch.optim.Adam(prior.parameters(), 3e-3)
    for _ in range(steps):
        t = torch.randint(0, 100, (len(clean),))
        top, left = torch.randint(0, 104, (2,)).tolist()
        crops, noise = clean[..., top : top + 24, left : left + 24], torch.randn(len(clean), 3, 24, 24)
        level = prior.schedule.level(t, crops)
        loss = (prior.eps(level.signal * crops + level.noise * noise, t) - noise).square().mean()
        optimiser.zero_grad()
        torch.autograd.backward([loss])
        optimiser.step()
    prior.requires_grad_(False)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[TinyEpsPrior, VarianceHead, Path]:
    folder = tmp_path_factory.mktemp("fit")
    write_pictures(folder / "pictures", count=8)
    prior = TinyEpsPrior()
    train_eps(prior, folder / "pictures", 60)
    settings = FitSettings(steps=60, seconds=60, batch=8, crop=24, rate=1e-2, shape=HeadShape(width=8, depth=2))
    head, report = fit_variance(prior, folder / "pictures", head_file(folder / "tiny.pt"), settings)
    assert 0.8 < report.ratio < 1.25, f"held-out calibration {report}"
    return prior, head, folder


def test_it_is_calibrated_and_local(fitted: tuple[TinyEpsPrior, VarianceHead, Path]) -> None:
    """Fresh pictures, fresh noise: right on average, and larger where the error is larger."""
    prior, head, folder = fitted
    write_pictures(folder / "fresh", count=8, seed=9)
    paths = list_pictures(folder / "fresh")
    clean = torch.stack([torch.from_numpy(np.asarray(decode(p)).copy()).permute(2, 0, 1) for p in paths])
    clean = clean[..., :64, :64].float() / 127.5 - 1
    errors, variances = [], []
    for time in range(5, 100, 10):
        t = torch.full((len(clean),), time)
        level = prior.schedule.level(t, clean)
        x = level.signal * clean + level.noise * torch.randn(clean.shape)
        x0 = prior.predict(x, t).x0
        errors.append((x0 - clean).square())
        variances.append(head(x, x0, prior.schedule.abar(t)))
    error, variance = torch.stack(errors), torch.stack(variances)
    assert float((variance.std((-2, -1)) / variance.mean((-2, -1))).mean()) > 0.05, "it is not the same all over a picture"
    assert 0.8 < float(error.mean() / variance.mean()) < 1.25
    blocks = [nn.functional.avg_pool2d(v.flatten(0, 1), 8).flatten().argsort().argsort().float() for v in (error, variance)]
    assert float(torch.corrcoef(torch.stack(blocks))[0, 1]) > 0.5


def test_it_loads_from_its_file_and_from_beside_the_checkpoint(
    fitted: tuple[TinyEpsPrior, VarianceHead, Path],
) -> None:
    _, head, folder = fitted
    x, abar = torch.randn(1, 3, 16, 16), torch.tensor([0.5])
    for path in (folder / "tiny.pt", head_file(folder / "tiny.pt")):
        assert torch.equal(VarianceHead.load(path)(x, x, abar), head(x, x, abar))


def test_wrong_files_and_shapes_are_refused(tmp_path: Path) -> None:
    assert "fit-variance" in refusal(VarianceHead.load, tmp_path / "absent.pt")
    head = VarianceHead(HeadShape(channels=1, width=4, depth=1))
    assert "1 channels" in refusal(head, torch.zeros(1, 3, 8, 8), torch.zeros(1, 3, 8, 8), torch.tensor([0.5]))


def test_a_new_head_predicts_the_unit_gaussians_variance() -> None:
    x = torch.randn(2, 3, 8, 8)
    variance = VarianceHead()(x, x, torch.tensor([0.9, 0.2]))
    torch.testing.assert_close(variance[:, 0, 0, 0], torch.tensor([0.1, 0.8]))


def test_coarse_gaussian_fit_recovers_a_spectrum(tmp_path: Path) -> None:
    write_pictures(tmp_path / "p", count=2, size=(264, 280))
    prior = fit_coarse_gaussian(tmp_path / "p", tmp_path / "cache", crops=80, size=16)
    spectrum = prior.spectrum(16, 16)
    assert bool((spectrum > 0).all()) and float(spectrum[0, 1, 1]) > float(spectrum[0, 15, 15])
    assert all(0 < value < 1 for value in prior.mean)
    assert prior.detail[0] == 0 and prior.detail[1] < prior.detail[3]


def test_answers_are_in_proportion_and_bounded_by_memory(tmp_path: Path) -> None:
    prior, image = TinyEpsPrior(), torch.zeros(3, 20, 20)
    most = {"fit": 1000, "calibration": 1000, "check": 4}
    one = 3 * 4 * 3 * 16 * 16  # x_t, x0 and error in float32
    found = collect(prior, {kind: [image] for kind in most}, most, (16, 16), 0, 60.0, 50 * one)
    assert {kind: len(part) for kind, part in found.items()} == {"fit": 30, "calibration": 10, "check": 4}
    held = sum(tensor.numel() * tensor.element_size() for part in found.values() for tensor in (part.x_t, part.x0, part.error))
    assert held <= 50 * one
    few = collect(prior, {kind: [image] for kind in most}, most, (16, 16), 0, 0.0, 50 * one)
    assert {kind: len(part) for kind, part in few.items()} == {"fit": 3, "calibration": 1, "check": 1}
    for kind, part in few.items():
        assert torch.equal(part.x_t, found[kind].x_t[: len(part)]), "an answer is a function of seed and number"
    every = torch.cat([part.x_t for part in found.values()]).flatten(1)
    assert len({tuple(row) for row in every.tolist()}) == len(every) == 44, "none is asked twice"
    narrow = {kind: [torch.rand(3, 12, 40), torch.rand(3, 40, 16), image[:, :13, :18]] for kind in most}
    assert collect(prior, narrow, most, (13, 17), 0, 0.0, 50 * one)["check"].x_t.shape == (1, 3, 13, 17)
    level = prior.schedule.level(found["fit"].t, image)
    noise = found["fit"].x_t / level.noise  # of a black picture nothing but noise is left
    assert 0.95 < float(noise.std()) < 1.05


def test_turning_and_cutting_keep_answers_together() -> None:
    x = torch.arange(2 * 3 * 6 * 6.0).reshape(2, 3, 6, 6)
    answers = Answers(x, x + 1, x + 2, torch.tensor([0.1, 0.2]), torch.tensor([8, 3]))
    for part in (answers.turned(1, True), answers.window(1, 2, 3), answers.by_time(), answers.take([1])):
        assert torch.equal(part.x0, part.x_t + 1) and torch.equal(part.error, part.x_t + 2)
    assert torch.equal(answers.turned(1, True).x_t, x.rot90(1, (2, 3)).flip(3))
    assert torch.equal(answers.window(1, 2, 3).x_t, x[..., 1:4, 2:5])
    assert answers.by_time().t.tolist() == [3, 8] and torch.equal(answers.by_time().x_t[0], x[1])
    assert [len(part) for part in Answers.join([answers, answers, answers]).batches(4)] == [4, 2]


def test_a_schedule_that_ends_without_signal_does_not_spoil_its_neighbours() -> None:
    """An eps-network that is off by a tenth everywhere: its x0 is off by s/10, ten thousand at the last of these times."""
    abar = torch.tensor([0.5, 1e-2, 4.5e-5, 2.7e-9]).repeat(8)
    error = (0.01 * (1 - abar) / abar).reshape(-1, 1, 1, 1).expand(-1, 3, 8, 8)
    zero = torch.zeros_like(error)
    head = VarianceHead(HeadShape(width=4, depth=1))
    calibrate(head, Answers(zero, zero, error, abar, torch.zeros(len(abar), dtype=torch.long)))
    for value in abar[:4]:
        wanted = 0.01 * (1 - value) / value
        assert float(head.usual(value[None])) == pytest.approx(float(wanted), rel=0.35)


@pytest.mark.parametrize("values", [{"seconds": 0.0}, {"seconds": float("nan")}, {"seconds": float("inf")}, {"seed": -1}])
def test_fits_without_end_or_beginning_are_refused(values: dict[str, Any], tmp_path: Path) -> None:
    assert "A fit needs" in refusal(fit_variance, TinyEpsPrior(), tmp_path, None, FitSettings(**values))


def test_a_heads_likelihood_is_in_units_of_the_usual_error() -> None:
    head = VarianceHead(HeadShape(1, 4, 1))
    assert head.out.bias is not None
    with torch.no_grad():
        head.out.bias.fill_(0.5)
    x = torch.zeros(2, 1, 4, 4)
    answers = Answers(x, x, torch.full_like(x, 0.3), torch.tensor([0.9, 0.2]), torch.tensor([1, 2]))
    factor = 6 * np.tanh(0.5 / 6)
    exact = np.mean([0.5 * (factor + 0.3 / (1 - abar) * np.exp(-factor)) for abar in (0.9, 0.2)])
    assert float(negative_log_likelihood(head, answers)) == pytest.approx(exact, rel=1e-5)


def test_large_pictures_are_halved_and_grey_ones_have_one_channel(tmp_path: Path) -> None:
    sizes = [tuple(_read_pictures(write_pictures(tmp_path, 1, size), 1)[0].shape) for size in ((530, 514), (530, 510))]
    assert sizes == [(1, 257, 265), (1, 510, 530)]
