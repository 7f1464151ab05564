"""The training run: it learns, stops, and goes on as if it had never stopped."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from leader.priors.pyramid import PyramidPrior
from leader.priors.pyramid_net import PyramidConfig, PyramidNet, expand, halve
from leader.train import run
from leader.train.data import open_photographs
from leader.train.objective import Examples, Task, draw_examples, fit_task, full_resolution_error, loss
from leader.train.run import (
    TrainConfig,
    Trainer,
    body_from_ffdnet,
    group_parameters,
    initialise,
    load_ffdnet,
    load_pyramid,
    read_log,
    train,
    validate,
)
from tests.sentences import refusal
from tests.train.pictures import open_pictures, write_pictures

NET = PyramidConfig(width=8, depth=2, head_width=4)
MAIN = Task(4, 16, 0.9 * 37.5 / 255, 150 / 255, 70 / 255, (0.6, 0.4))
EXPERT = Task(3, 16, 0.0, 40 / 255, 0.0, (1.0,))


def tiny(folder: Path, steps: int = 12) -> TrainConfig:
    pictures = write_pictures(folder / "pictures")
    return TrainConfig(pictures, folder / "state", net=NET, main=MAIN, expert=EXPERT, steps=steps, warm_up=3, log_every=2)


def test_it_learns(tmp_path: Path) -> None:
    config = replace(tiny(tmp_path, 120), rate=3e-3, expert_rate=3e-3, warm_up=10, log_every=20)
    train(config)
    losses = [r for r in read_log(config.state / "log.jsonl") if r["kind"] == "train"]
    assert losses[-1]["main_denoising"] < 0.5 * losses[0]["main_denoising"]
    assert losses[-1]["expert_denoising"] < 0.5 * losses[0]["expert_denoising"]
    assert losses[-1]["main_nll"] < losses[0]["main_nll"]
    prior = PyramidPrior.load(config.state / "pyramid.safetensors")
    assert prior.predict(torch.randn(1, 3, 24, 24), torch.tensor([100])).x0.shape == (1, 3, 24, 24)


def test_resuming_gives_the_same_bits(tmp_path: Path) -> None:
    whole = train(replace(tiny(tmp_path), state=tmp_path / "whole"))
    config = replace(tiny(tmp_path), state=tmp_path / "halves")
    config.state.mkdir()
    photos = open_photographs(config.images, config.state / "cache")
    first = Trainer(config)
    for _ in range(5):
        first.advance(photos)
    first.elapsed = 1000.0
    first.save()
    resumed = train(config)
    assert resumed.step == whole.step == 12 and resumed.elapsed > 1000, "its time counts too"
    for one, other in ((whole.net, resumed.net), (whole.average, resumed.average)):
        assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_schedule_warms_up_and_falls_to_its_end(tmp_path: Path) -> None:
    trainer = Trainer(replace(tiny(tmp_path, 100), warm_up=10))
    factors = []
    for step in range(101):
        trainer.step = step
        factors.append(trainer.rate_factor())
    assert factors[0] == pytest.approx(0.1, rel=0.01) and max(factors) == max(factors[5:15])
    assert factors[100] == pytest.approx(trainer.config.final_rate)
    trainer.step, trainer.elapsed = 25, 30.0
    trainer.config = replace(trainer.config, seconds=60.0)
    assert trainer.progress() == 0.5, "the clock ends a run as well as the steps"


def test_average_follows_the_weights(tmp_path: Path) -> None:
    trainer = Trainer(tiny(tmp_path))
    photos = open_photographs(trainer.config.images, tmp_path / "cache")
    later = Trainer(trainer.config)
    later.step = 5
    assert later.advance(photos)["main_denoising"] != Trainer(trainer.config).advance(photos)["main_denoising"], "other crops"
    for _ in range(3):
        before = trainer.average.main.out.weight.clone()
        trainer.advance(photos)
        decay = min(trainer.config.ema, trainer.step / (9 + trainer.step))
        expected = decay * before + (1 - decay) * trainer.net.main.out.weight
        torch.testing.assert_close(trainer.average.main.out.weight, expected)


def test_error_of_a_coarse_estimate_is_measured_at_full_resolution(tmp_path: Path) -> None:
    photos = open_pictures(tmp_path)
    examples = draw_examples(PyramidNet(NET), photos, replace(MAIN, level_shares=(0.0, 1.0)), 0, 0, False)[0]
    error = full_resolution_error(examples.clean, examples)
    full = torch.stack(examples.full)
    expected = halve((expand(examples.clean, 1) - full).square())
    torch.testing.assert_close(error, expected)
    assert float(error.mean()) > 0, "a perfect level image still lacks the detail inside its blocks"


def test_small_pictures_train_fewer_levels(tmp_path: Path) -> None:
    photos = open_pictures(tmp_path, size=(200, 160))
    task = replace(MAIN, crop=80, level_shares=(0.6, 0.2, 0.12, 0.08))
    assert fit_task(task, photos).level_shares == pytest.approx((0.75, 0.25))
    assert fit_task(replace(task, crop=16), photos).level_shares == pytest.approx(task.level_shares)
    assert "160 pixels on its short side, and crops of 161" in refusal(fit_task, replace(task, crop=161), photos)


def test_log_forgets_steps_a_crash_undid(tmp_path: Path) -> None:
    lines = [("train", 3), ("train", 4), ("resume", 3), ("train", 4)]
    text = "\n".join(json.dumps({"kind": kind, "step": step}) for kind, step in lines)
    (tmp_path / "log.jsonl").write_text(text)
    assert [(r["kind"], r["step"]) for r in read_log(tmp_path / "log.jsonl")] == [lines[0], *lines[2:]]


def test_a_new_cascade_starts_where_the_plain_pyramid_was(tmp_path: Path) -> None:
    torch.manual_seed(0)
    plain = PyramidNet(replace(NET, cascade=False))
    cascade = PyramidNet(NET)
    save_file({k: v.contiguous() for k, v in plain.state_dict().items()}, tmp_path / "plain.safetensors")
    initialise(cascade, load_file(tmp_path / "plain.safetensors"), None)
    trainer = Trainer(replace(tiny(tmp_path), start_pyramid=tmp_path / "plain.safetensors"))
    assert torch.equal(trainer.average.main.out.weight, plain.main.out.weight)
    image, sigma = torch.rand(1, 3, 16, 16), torch.tensor([0.4])
    old, _ = plain.features(image, sigma, 0)
    assert torch.equal(cascade.features(image, sigma, 0)[0], old)
    assert cascade.share is not None
    torch.nn.init.zeros_(cascade.share)
    for guides in (1, 2):
        assert torch.equal(cascade.features(image, sigma, guides)[0], old)


def test_wrong_starting_points_are_told(tmp_path: Path) -> None:
    junk = tmp_path / "junk.safetensors"
    junk.write_text("junk")
    for found in (junk, tmp_path / "absent.safetensors"):
        assert refusal(load_pyramid, found)
        assert "does not hold FFDNet's colour weights" in refusal(load_ffdnet, found)
    torch.save({"other.weight": torch.zeros(2)}, tmp_path / "other.pth")
    assert "does not hold FFDNet's colour weights" in refusal(load_ffdnet, tmp_path / "other.pth")
    wider = PyramidNet(replace(NET, width=12)).state_dict()
    assert "not those of a pyramid of this shape" in refusal(initialise, PyramidNet(NET), wider, None)
    assert "Unknown device" in refusal(Trainer, replace(tiny(tmp_path), device="nonsense"))


def test_frozen_parts_stay(tmp_path: Path) -> None:
    trainer = Trainer(replace(tiny(tmp_path), parts=("share", "main_head")))
    photos = open_photographs(trainer.config.images, tmp_path / "cache")
    before = {name: tensor.clone() for name, tensor in trainer.net.state_dict().items()}
    wanted = {id(item) for members in trainer.parts.values() for item in members}
    assert {id(item) for item in trainer.net.parameters() if item.requires_grad} == wanted, "others have no gradients"
    trainer.advance(photos)
    moved = {name for name, tensor in trainer.net.state_dict().items() if not torch.equal(tensor, before[name])}
    assert {name[:6] for name in moved} == {"share", "main.h"}
    assert "This network has no expert to train: name some of main, main_head" in refusal(
        Trainer, replace(tiny(tmp_path), net=replace(NET, cascade=False), parts=("expert",))
    )


def test_words_and_numbers_that_cannot_be_meant(tmp_path: Path) -> None:
    good = TrainConfig(tmp_path, tmp_path, steps=2)
    for wrong, told in (
        (("main", "exprt"), "Unknown part of the network 'exprt': did you mean 'expert'?"),
        (("",), "Unknown part"),
        ((), "Nothing to train"),
    ):
        assert told in refusal(replace, good, parts=wrong)
    assert "would never end" in refusal(train, replace(good, steps=10**9, seconds=math.inf))
    wrong_numbers = (
        {"seconds": 0.0},
        {"seconds": math.nan},
        {"steps": 0},
        {"seed": -1},
        {"rate": math.nan},
        {"expert_rate": 2.0},
    )
    for values in wrong_numbers:
        refusal(replace, good, **values)


def test_a_state_that_is_none_is_told(tmp_path: Path) -> None:
    config = replace(tiny(tmp_path), state=tmp_path / "run")
    config.state.mkdir()
    trainer = Trainer(config)
    for content in (b"junk", b""):
        (config.state / "checkpoint.pt").write_bytes(content)
        assert "cannot be read as a checkpoint" in refusal(trainer.resume)
    trainer.save()
    assert "another folder as the state" in refusal(Trainer(replace(config, net=replace(NET, width=12))).resume)
    assert trainer.resume()


def test_ffdnet_names_are_translated() -> None:
    shapes = [(8, 13), (8, 8), (12, 8)]
    state = {f"model.{2 * i}.weight": torch.full((*shape, 3, 3), float(i)) for i, shape in enumerate(shapes)}
    state |= {f"model.{2 * i}.bias": torch.full(shape[:1], float(i)) for i, shape in enumerate(shapes)}
    body = body_from_ffdnet(state)
    assert set(body) == {f"{n}.{k}" for n in ("convs.0", "convs.1", "out") for k in ("weight", "bias")}
    assert float(body["out.bias"][0]) == 2.0


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    """A second one is refused while the first is at work, and goes on where it ended."""
    config, refused = tiny(tmp_path, steps=2), list[str]()

    train(config, lambda record: refused.append(refusal(train, config)))
    assert refused and all("Another run is writing" in text for text in refused)
    assert train(replace(config, steps=3)).step == 3


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
    found = [None if item.grad is None else item.grad.clone() for item in group_parameters(net)["expert"]]
    net.zero_grad()
    estimate, _ = net.features(given.noisy, given.sigma, 0)
    mse = (estimate - given.clean).square().mean((1, 2, 3))
    torch.autograd.backward([(10 * mse / (given.sigma**2 + 0.02**2).sqrt()).sum()])
    for item, gradient in zip(group_parameters(net)["expert"], found, strict=True):
        assert gradient is not None and item.grad is not None and torch.allclose(gradient, item.grad, rtol=1e-4, atol=1e-7)


def test_rates_of_the_parts(tmp_path: Path) -> None:
    config = replace(tiny(tmp_path), rate=1e-3, expert_rate=2e-3, share_rate=3e-3, head_factor=5.0, clip=1e-4)
    trainer = Trainer(config)
    factor = trainer.rate_factor()
    trainer.advance(open_photographs(config.images, tmp_path / "cache"))
    found = {part: group["lr"] / factor for part, group in zip(trainer.parts, trainer.optimiser.param_groups, strict=True)}
    wanted = {"main": 1e-3, "main_head": 5e-3, "expert": 2e-3, "expert_head": 1e-2, "share": 3e-3}
    assert found == pytest.approx(wanted)
    for members in trainer.parts.values():
        gradients = torch.cat([item.grad.flatten() for item in members if item.grad is not None])
        assert float(gradients.norm()) < 1.01e-4, "none is larger than it may be"


def test_the_averaged_weights_ship(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny(tmp_path)
    config.state.mkdir(parents=True)
    trainer = Trainer(config)
    with torch.no_grad():
        for item in trainer.net.parameters():
            item.add_(1.0)
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    trainer.save()
    assert len(synced) == 1, "a power failure leaves the checkpoint of before or this one"
    shipped = load_file(config.state / "pyramid.safetensors")
    for name, tensor in trainer.average.state_dict().items():
        assert torch.equal(shipped[name], tensor.half())
        assert not torch.equal(shipped[name], trainer.net.state_dict()[name].half())


def test_validation_takes_the_first_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, ...]] = []

    def look(net: PyramidNet, clean: torch.Tensor) -> dict[str, list[float]]:
        seen.append(tuple(clean.shape))
        return {"sigma": [], "psnr": [], "ratio": []}

    monkeypatch.setattr(run, "validate", look)
    monkeypatch.setattr(run, "VALIDATION", 2)
    monkeypatch.setattr(run, "plot_log", lambda state: None)
    train(replace(tiny(tmp_path, 1), validation=tmp_path / "pictures"))
    assert seen == [(2, 3, 128, 128)] * 2, "before and after"


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


def test_a_new_expert_is_ffdnet_where_there_is_one() -> None:
    plain = PyramidNet(replace(NET, cascade=False))
    ffdnet = {name: torch.full_like(tensor, 0.5) for name, tensor in plain.main.state_dict().items() if name[0] in "co"}
    net = PyramidNet(NET)
    initialise(net, plain.state_dict(), ffdnet)
    assert net.expert is not None
    for name, tensor in net.expert.state_dict().items():
        assert torch.equal(tensor, ffdnet.get(name, plain.main.state_dict()[name]))
        assert torch.equal(net.main.state_dict()[name], plain.main.state_dict()[name])
