"""The network in integers of eight bits: exact arithmetic, the same bits in any company, its fit, and files that do not fit."""

import copy
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional as F

from leader import load_prior
from leader.priors import int8
from leader.priors.int8 import Int8Conv, int8_file, is_exact, load_int8
from leader.priors.pyramid import PyramidPrior, embedded_file
from leader.train.int8 import STRIDE, carry_errors, fit_layer
from tests.cheap_prior import photograph
from tests.sentences import refusal

needs_int8 = pytest.mark.skipif(not is_exact(), reason="torch has no exact convolution of bytes on this processor")


def draw(seed: int, low: int, high: int, *shape: int) -> Tensor:
    return torch.randint(low, high + 1, shape, generator=torch.Generator().manual_seed(seed))


@needs_int8
@pytest.mark.parametrize(("inputs", "outputs", "height", "width"), [(96, 96, 5, 9), (7, 12, 1, 6), (96, 48, 17, 3)])
def test_a_layer_is_integer_arithmetic(inputs: int, outputs: int, height: int, width: int) -> None:
    """Scales are powers of two and biases odd multiples of one: every value is exact in float32, and none is a tie."""
    x, weight = draw(1, 0, 255, 2, inputs, height, width), draw(2, -127, 127, outputs, inputs, 3, 3)
    scale, bias = 2.0 ** -draw(3, 7, 12, outputs), draw(4, -400, 400, outputs) + 2.0**-13
    exact = F.conv2d(x.double(), weight.double(), padding=1) * scale.view(-1, 1, 1) + bias.view(-1, 1, 1)
    given = x.to(torch.uint8).contiguous(memory_format=torch.channels_last)
    for to_bytes, expected in ((True, exact.round().clamp(0, 255).to(torch.uint8)), (False, exact)):
        conv = Int8Conv(weight.to(torch.int8), scale.float(), bias.float(), to_bytes)
        found = conv(given)
        assert found.dtype == (torch.uint8 if to_bytes else torch.float32)
        assert (found.double() - expected.double()).abs().max() <= (0 if to_bytes else 2.0**-12)
        assert torch.equal(copy.deepcopy(conv)(given), found) and torch.equal(pickle.loads(pickle.dumps(conv))(given), found)


def test_an_operator_that_is_absent_or_wrong_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.zeros(1)

    def saturate(given: Tensor, packed: object, *rest: object) -> Tensor:
        return torch.full((1, 32, 3, 5), 2.0**15)

    monkeypatch.setattr(int8, "pack", lambda weight, scale: x)
    monkeypatch.setattr(int8, "convolve", saturate)
    assert not is_exact()
    for error in (AttributeError, RuntimeError, TypeError):

        def fail(*given: object, error: type[Exception] = error) -> Tensor:
            raise error("no such operator")

        monkeypatch.setattr(int8, "pack", fail)
        assert not is_exact()


@needs_int8
@torch.no_grad()
@pytest.mark.parametrize("channels", [3, 1])
def test_a_rounded_network_is_close_for_every_body_and_size(channels: int) -> None:
    full, small = load_prior(), load_prior(dtype="mixed-int8")
    clean = 2 * photograph(40, 56)[None, :channels] - 1
    for t in (small.rounded_from["int8"], 100, 150):
        times = torch.tensor([t])
        level = full.schedule.level(times, clean)
        x = level.signal * clean + level.noise * torch.randn(clean.shape, generator=torch.Generator().manual_seed(t))
        expected, found = full.predict(x, times), small.predict(x, times)
        assert expected.variance is not None and found.variance is not None
        error = float((found.x0 - expected.x0).square().mean().sqrt())
        assert 0 < error < 0.2 * float(expected.variance.mean().sqrt())
        assert float((found.variance.mean() / expected.variance.mean()).log().abs()) < 0.05
        pair = small.predict(torch.cat([x.flip(2), x]), times.expand(2))
        assert torch.equal(pair.x0[1:], found.x0) and torch.equal(pair.variance[1:], found.variance)  # type: ignore[index]


def test_carried_errors_beat_the_nearest_numbers() -> None:
    generator = torch.Generator().manual_seed(5)
    inputs = torch.rand(20, 400, dtype=torch.float64, generator=generator) + 3 * torch.rand(
        1, 400, dtype=torch.float64, generator=generator
    )
    weight = 5 * torch.randn(6, 20, dtype=torch.float64, generator=generator)
    chosen = carry_errors(weight, inputs @ inputs.T, block=7)
    assert torch.equal(chosen, chosen.round())
    off, nearest = (((answer - weight) @ inputs).square().mean() for answer in (chosen, weight.round()))
    assert off < nearest / 4
    assert torch.equal(carry_errors(weight, torch.eye(20, dtype=torch.float64)), weight.round())  # nothing in common


def test_a_fitted_layer_answers_like_the_exact_one_on_rounded_inputs() -> None:
    smooth = F.avg_pool2d(draw(6, 0, 255, 1, 1, 28, 35).float(), 5, 1)  # neighbours and channels have much in common
    exact = smooth + draw(7, 0, 100, 1, 6, 24, 31) / 10
    rounded = exact.round()
    weight = torch.randn(4, 6, 3, 3, generator=torch.Generator().manual_seed(7)) / 50
    target = F.conv2d(exact, weight, torch.ones(4), padding=1)
    integers, scale, bias = fit_layer(weight, [rounded], [target])
    assert integers.dtype == torch.int8 and int(integers.abs().max()) <= 127
    error = F.conv2d(rounded, integers * scale.view(-1, 1, 1, 1), bias, padding=1) - target
    nearest = (weight / scale.view(-1, 1, 1, 1)).round() * scale.view(-1, 1, 1, 1)
    plain = F.conv2d(rounded, nearest, torch.ones(4), padding=1) - target
    assert error.square().mean() < plain.square().mean() / 2
    assert error[0].flatten(1)[:, ::STRIDE].mean(1).abs().max() < 1e-4  # on average over the positions that were looked at


def test_a_file_that_does_not_fit_is_rejected(tmp_path: Path) -> None:
    weights = tmp_path / "pyramid.safetensors"
    weights.write_bytes(embedded_file().read_bytes())
    prior, file = PyramidPrior.load(), int8_file(weights)
    good, text = load_file(int8_file(embedded_file())), {"weights": int8_digest()}
    save_file(good, file, text)
    assert load_int8(prior, weights) is not prior
    bad: list[tuple[dict[str, Tensor], dict[str, str], str]] = [
        (good, {}, "other weights"),
        ({**good, "more": torch.zeros(1)}, text, "does not hold"),
        ({**good, "main.3.weight": good["main.3.weight"].float()}, text, "does not hold"),
        ({**good, "main.steps": -good["main.steps"]}, text, "cannot be"),
        ({**good, "main.out.bias": good["main.out.bias"] * float("nan")}, text, "cannot be"),
    ]
    for tensors, words, message in bad:
        save_file(tensors, file, words)
        assert message in refusal(load_int8, prior, weights)
    file.write_bytes(b"nothing")
    assert "cannot be read" in refusal(load_int8, prior, weights)


def int8_digest() -> str:
    from leader.files import sha256_of

    return sha256_of(embedded_file())
