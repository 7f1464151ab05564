"""What training minimises, number by number: the loss, what the heads may bend, the rates, the crops and what ships."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.fft
import torch
from PIL import Image
from safetensors.torch import load_file

from leader.priors.pyramid_net import PyramidNet
from leader.priors.variance_head import HeadShape, VarianceHead
from leader.train import fit_gaussian, variance
from leader.train.answers import Answers
from leader.train.data import cached, halved
from leader.train.initial import initialise
from leader.train.log import read_log
from leader.train.objective import Examples, draw, loss
from leader.train.run import Trainer, _rate, parts
from leader.train.validate import validate
from leader.train.variance import negative_log_likelihood
from tests.cheap_prior import CheapPrior
from tests.train.pictures import write_pictures
from tests.train.test_run import MAIN, NET, tiny

CPU = torch.device("cpu")


def examples(guides: int = 0) -> Examples:
    generator = torch.Generator().manual_seed(0)
    clean = torch.rand(2, 3, 16, 16, generator=generator)
    sigma = torch.tensor([0.05, 0.4])
    noisy = clean + sigma.view(-1, 1, 1, 1) * torch.randn(clean.shape, generator=generator)
    return Examples(noisy, clean, list(clean), sigma, torch.zeros(2), guides)


def test_the_loss_is_balanced_error_plus_a_hundredth_of_the_likelihood() -> None:
    torch.manual_seed(0)
    net, given = PyramidNet(NET), examples()
    value, sums = loss(net, given, CPU)
    with torch.no_grad():
        estimate, features = net.features(given.noisy, given.sigma, 0)
        logs = net.body(0).log_variance(features, given.sigma, given.level).double().numpy()
        error = (estimate - given.clean).double().numpy() ** 2
    denoising, nll, ratios = 0.0, 0.0, 0.0
    for row, sigma in enumerate(given.sigma.tolist()):
        denoising += 10 * error[row].mean() / np.sqrt(sigma**2 + 0.02**2)
        ratio = error[row] / ((sigma**2 + NET.variance_floor) * np.exp(logs[row]))
        nll += 0.5 * (logs[row] + ratio).mean()
        ratios += ratio.mean()
    assert sums == pytest.approx({"denoising": denoising, "nll": nll, "ratio": ratios}, rel=1e-4)
    assert float(value.detach()) == pytest.approx(denoising + 0.01 * nll, rel=1e-4)


def test_the_head_never_bends_the_estimate() -> None:
    torch.manual_seed(0)
    net, given = PyramidNet(NET), examples()
    torch.autograd.backward([loss(net, given, CPU)[0]])
    found = [None if item.grad is None else item.grad.clone() for item in parts(net)["expert"]]
    net.zero_grad()
    estimate, _ = net.features(given.noisy, given.sigma, 0)
    mse = (estimate - given.clean).square().mean((1, 2, 3))
    torch.autograd.backward([(10 * mse / (given.sigma**2 + 0.02**2).sqrt()).sum()])
    for item, gradient in zip(parts(net)["expert"], found, strict=True):
        assert gradient is not None and item.grad is not None and torch.allclose(gradient, item.grad, rtol=1e-4, atol=1e-7)


def test_every_step_and_every_seed_sees_crops_of_its_own(tmp_path: Path) -> None:
    photos = cached(write_pictures(tmp_path / "pictures"), tmp_path / "cache")
    net = PyramidNet(NET)
    first, again, later, other = (
        torch.cat([group.clean.flatten() for group in draw(net, photos, MAIN, seed, step, False)])
        for seed, step in ((0, 3), (0, 3), (0, 4), (1, 3))
    )
    assert torch.equal(first, again) and not torch.equal(first, later) and not torch.equal(first, other)


def test_half_size_is_the_mean_of_four() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (6, 8, 3)).astype(np.uint8)
    found = np.asarray(halved(Image.fromarray(pixels))).astype(float)
    expected = pixels.reshape(3, 2, 4, 2, 3).mean(axis=(1, 3))
    assert np.abs(found - expected).max() <= 1.0  # rounded after rows and after columns


def test_rates_of_the_parts(tmp_path: Path) -> None:
    config = replace(tiny(tmp_path), rate=1e-3, expert_rate=2e-3, share_rate=3e-3, head_factor=5.0)
    names = ("main", "main_head", "expert", "expert_head", "share")
    assert [_rate(name, config) for name in names] == pytest.approx([1e-3, 5e-3, 2e-3, 1e-2, 3e-3])


def test_parts_that_are_not_trained_have_no_gradients_and_heads_alone_are_clipped_alone(tmp_path: Path) -> None:
    trainer = Trainer(replace(tiny(tmp_path), parts=("main_head",)))
    wanted = {id(item) for item in parts(trainer.net)["main_head"]}
    assert {id(item) for item in trainer.net.parameters() if item.requires_grad} == wanted


def test_the_averaged_weights_ship(tmp_path: Path) -> None:
    config = tiny(tmp_path)
    config.state.mkdir(parents=True)
    trainer = Trainer(config)
    with torch.no_grad():
        for item in trainer.net.parameters():
            item.add_(1.0)
    trainer.save()
    shipped = load_file(config.state / "pyramid.safetensors")
    for name, tensor in trainer.average.state_dict().items():
        assert torch.equal(shipped[name], tensor.half())
        assert not torch.equal(shipped[name], trainer.net.state_dict()[name].half())


def test_validation_says_error_over_predicted_variance() -> None:
    """A network whose estimate is 0 and whose head says e^1 times the noise: both numbers by hand."""
    net = PyramidNet(NET).eval()
    with torch.no_grad():
        for item in net.parameters():
            item.zero_()
        for body in (net.main, net.expert):
            assert body is not None and body.h2.bias is not None
            body.h2.bias.fill_(1.0)
    clean = torch.full((2, 3, 32, 32), 0.5)
    clean[1] = 0.25
    table = validate(net, clean, sigmas=(10.0,))
    variance = np.e * ((10 / 255) ** 2 + NET.variance_floor)
    assert table["sigma"] == [10.0]
    assert table["psnr"] == pytest.approx([(-10 * np.log10(0.25) - 10 * np.log10(0.0625)) / 2], abs=1e-4)
    assert table["ratio"] == pytest.approx([(0.25 + 0.0625) / 2 / variance], rel=1e-4)


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


def test_what_checks_a_head_serves_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, list[torch.Tensor]] = {}

    def collect(prior: object, pictures: dict[str, list[torch.Tensor]], *_: object) -> dict[str, Answers]:
        seen.update(pictures)
        raise InterruptedError

    monkeypatch.setattr(variance, "collect", collect)
    folder = write_pictures(tmp_path / "pictures", count=8, size=(40, 40))
    with pytest.raises(InterruptedError):
        variance.fit_variance(CheapPrior(), folder, settings=variance.FitSettings(held_out=0.25))
    assert (len(seen["check"]), len(seen["fit"]), len(seen["calibration"])) == (2, 6, 6)
    for kept in seen["check"]:
        assert not any(torch.equal(kept, other) for other in (*seen["fit"], *seen["calibration"]))


def test_a_new_expert_is_ffdnet_where_there_is_one() -> None:
    plain = PyramidNet(replace(NET, cascade=False))
    ffdnet = {name: torch.full_like(tensor, 0.5) for name, tensor in plain.main.state_dict().items() if name[0] in "co"}
    net = PyramidNet(NET)
    initialise(net, plain.state_dict(), ffdnet)
    assert net.expert is not None
    for name, tensor in net.expert.state_dict().items():
        assert torch.equal(tensor, ffdnet.get(name, plain.main.state_dict()[name]))
        assert torch.equal(net.main.state_dict()[name], plain.main.state_dict()[name])


def test_a_fitted_spectrum_is_one_of_squares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The power of every component, seen where the fit begins: that of the very crops, by SciPy's transform."""
    seen: list[torch.Tensor] = []
    images: list[torch.Tensor] = []
    true_image, true_fit = fit_gaussian._level_image, fit_gaussian._fit_spectrum

    def level_image(*given: object) -> torch.Tensor:
        images.append(true_image(*given))  # type: ignore[arg-type]
        return images[-1]

    def fit_spectrum(power: torch.Tensor) -> tuple[float, float, float]:
        seen.append(power)
        return true_fit(power)

    monkeypatch.setattr(fit_gaussian, "_level_image", level_image)
    monkeypatch.setattr(fit_gaussian, "_fit_spectrum", fit_spectrum)
    folder = write_pictures(tmp_path / "p", count=2, size=(80, 80))
    found = fit_gaussian.fit_coarse_gaussian(folder, tmp_path / "cache", crops=10, size=8)
    stack = torch.stack(images).numpy()
    brightness = (stack - stack.mean((0, 2, 3)).reshape(1, 3, 1, 1)).sum(1) / np.sqrt(3)
    power = (scipy.fft.dctn(brightness, axes=(1, 2), norm="ortho") ** 2).mean(0)
    np.testing.assert_allclose(seen[0].numpy(), power, rtol=1e-9, atol=1e-15)
    assert found.dc[0] == pytest.approx((brightness.mean((1, 2)) ** 2).mean())


def test_a_resumed_log_keeps_the_step_it_resumes_from(tmp_path: Path) -> None:
    lines = [("train", 1), ("train", 2), ("train", 3), ("resume", 2), ("train", 3)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps({"kind": kind, "step": step}) + "\n" for kind, step in lines))
    found = [(record["kind"], record["step"]) for record in read_log(tmp_path / "log.jsonl")]
    assert found == [("train", 1), ("train", 2), ("resume", 2), ("train", 3)]
