"""Adapters: what a network predicts becomes x0, noise and variance."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from leader.priors.adapters import AutocastPrior, DenoiserPrior, HeadedPrior, NetworkPrior, WrappedPrior
from leader.priors.ask import Ask
from leader.priors.base import Prediction, Prior
from leader.schedule import Schedule
from tests.cheap_prior import CheapPrior
from tests.sentences import refusal
from tests.uncertainty.spectra import toy_spectrum

SCHEDULE = Schedule.linear()
TIMES = torch.tensor([0, 120, 999])


class Oracle(nn.Module):
    """A network that knows the clean image and the noise, and answers in one of the three terms."""

    def __init__(self, clean: Tensor, noise: Tensor, predicts: str) -> None:
        super().__init__()
        self.clean, self.noise, self.predicts = clean, noise, predicts
        self.seen: list[Tensor] = []

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        self.seen += [x, t]
        if self.predicts == "x0":
            return self.clean
        if self.predicts == "eps":
            return self.noise
        abar = SCHEDULE.abar(t).float().reshape(-1, 1, 1, 1)
        return abar.sqrt() * self.noise - (1 - abar).sqrt() * self.clean


def pair(channels: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    clean, noise = (torch.randn(3, channels, 8, 8, generator=generator) for _ in range(2))
    level = SCHEDULE.level(TIMES)
    return clean, noise, level.signal * clean + level.noise * noise


@pytest.mark.parametrize("predicts", ["eps", "v", "x0"])
def test_every_kind_of_prediction_gives_x0_and_noise(predicts: str) -> None:
    clean, noise, x = pair()
    prior = NetworkPrior(Oracle(clean, noise, predicts), SCHEDULE, predicts=predicts)
    answer = prior._predict(x, TIMES)
    # rounding of x_t, of relative size 2^-24, is divided by sqrt(abar) for x0 and by sqrt(1 - abar) for eps
    level, unit = SCHEDULE.level(TIMES), 8 * 2.0**-23
    assert bool(((answer.x0 - clean).abs() <= unit * x.abs().max() / level.signal).all())
    assert bool(((answer.eps - noise).abs() <= unit * x.abs().max() / level.noise).all())
    assert answer.variance is None and prior.source is None


def test_an_unknown_kind_of_prediction_is_refused() -> None:
    assert "eps" in refusal(NetworkPrior, nn.Identity(), SCHEDULE, predicts="epss")


class Fixed(nn.Module):
    """Answers zeros, then `raw` as variance channels, from channel to channel `more`."""

    def __init__(self, raw: float, more: float = 0.0) -> None:
        super().__init__()
        self.raw = torch.tensor([raw, raw + more, raw + 2 * more]).reshape(1, 3, 1, 1)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        return torch.cat([torch.zeros_like(x), self.raw.expand_as(x)], 1)


@pytest.mark.parametrize("schedule", [SCHEDULE, Schedule.cosine()], ids=["linear", "cosine"])
@pytest.mark.parametrize("raw", [-1.0, -0.4, 0.3, 1.0])
def test_learned_variance_inverts_the_reverse_variance(schedule: Schedule, raw: float) -> None:
    """The reverse step has variance beta_tilde + c^2 Sigma, c = beta sqrt(abar before) / (1 - abar)."""
    times = torch.tensor([1, 5, 300, 998])
    prior = NetworkPrior(Fixed(raw), schedule, learned_variance=True)
    variance = prior._predict(torch.zeros(4, 3, 2, 2), times).variance
    assert variance is not None and prior.source == "learned"
    beta, abar, before = schedule.betas[times], schedule.abar(times), schedule.abar(times - 1)
    tilde = beta * (1 - before) / (1 - abar)
    total = torch.exp((raw + 1) / 2 * beta.log() + (1 - raw) / 2 * tilde.log())
    c = beta * before.sqrt() / (1 - abar)
    expected = (total - tilde) / c**2
    # the subtraction above cancels all but beta - tilde of beta, in float64
    tolerance = 1e-5 * (1 - abar) + 1e-14 * beta / c**2
    assert bool(((variance[:, 0, 0, 0].double() - expected).abs() <= tolerance).all())


class Answer(nn.Module):
    """Whatever it was given, for images and for noise levels."""

    def __init__(self, answer: object) -> None:
        super().__init__()
        self.answer = answer

    def forward(self, *_: Tensor) -> object:
        return self.answer


@pytest.mark.parametrize("answer", [None, torch.zeros(1, 3, 4, 5).numpy(), torch.zeros(1, 3, 1, 1), torch.zeros(3, 4, 5)])
def test_an_answer_of_another_kind_or_shape_is_refused(answer: object) -> None:
    """One of a single pixel would be spread over the image in silence."""
    for prior in (NetworkPrior(Answer(answer), SCHEDULE), DenoiserPrior(Answer(answer), SCHEDULE)):
        assert "expected a tensor [1, 3, 4, 5]" in refusal(prior.predict, torch.zeros(1, 3, 4, 5), torch.tensor([5]))


def test_channels_that_do_not_fit_are_refused() -> None:
    x, t = torch.zeros(1, 3, 4, 4), torch.tensor([5])
    assert "returned [1, 6, 4, 4]; expected a tensor [1, 3, 4, 4]" in refusal(NetworkPrior(Fixed(0), SCHEDULE).predict, x, t)
    assert "takes images with 3 channels" in refusal(
        NetworkPrior(Fixed(0), SCHEDULE, learned_variance=True).predict, torch.zeros(1, 2, 4, 4), torch.tensor([5])
    )


def test_grey_images_pass_as_three_channels_and_come_back_as_one() -> None:
    clean, noise, _ = pair()
    network = Oracle(clean[:1], noise[:1], "x0")
    prior = NetworkPrior(network, SCHEDULE, predicts="x0")
    x = torch.randn(1, 1, 8, 8)
    answer = prior.predict(x, torch.tensor([40]))
    assert torch.equal(network.seen[0], x.expand(-1, 3, -1, -1))
    assert torch.equal(answer.x0, clean[:1].mean(1, keepdim=True))
    level = SCHEDULE.level(torch.tensor([40]))
    assert torch.allclose(level.signal * answer.x0 + level.noise * answer.eps, x, atol=1e-6)


@pytest.mark.parametrize("unit_range", [False, True])
def test_a_denoiser_sees_the_clean_image_plus_its_sigma(unit_range: bool) -> None:
    clean, noise, x = pair()
    seen: list[Tensor] = []

    class Denoiser(nn.Module):
        def forward(self, noisy: Tensor, sigma: Tensor) -> Tensor:
            seen.extend([noisy, sigma])
            return (clean + 1) / 2 if unit_range else clean

    answer = DenoiserPrior(Denoiser(), SCHEDULE, unit_range=unit_range)._predict(x, TIMES)
    sigma = SCHEDULE.level(TIMES).sigma
    shown, scale = ((clean + 1) / 2, 0.5) if unit_range else (clean, 1.0)
    assert torch.allclose(seen[1], scale * sigma.reshape(-1))
    assert torch.allclose(seen[0], shown + scale * sigma * noise, rtol=1e-4, atol=1e-5)
    assert torch.allclose(answer.x0, clean, atol=1e-6)


def test_times_can_be_rescaled_and_half_precision_stays_inside() -> None:
    clean, noise, x = pair()
    network = Oracle(clean.half(), noise.half(), "eps")
    prior = NetworkPrior(network, Schedule.linear(steps=4000), dtype=torch.float16, time_factor=0.25)
    answer = prior._predict(x, torch.tensor([0, 2, 3999]))
    assert network.seen[0].dtype == torch.float16
    assert network.seen[1].tolist() == [0.0, 0.5, 999.75]
    assert answer.x0.dtype == answer.eps.dtype == torch.float32


class Plain(Prior):
    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        weight = torch.eye(x.shape[1], dtype=x.dtype)[:, :, None, None]
        return Prediction(torch.nn.functional.conv2d(x, weight), x, None)


def test_autocast_answers_in_float32() -> None:
    prior = AutocastPrior(Plain(SCHEDULE), torch.bfloat16)
    x = torch.tensor([1 + 2.0**-12]).reshape(1, 1, 1, 1)
    answer = prior.predict(x, torch.tensor([3]))
    assert answer.x0.dtype == torch.float32 and float(answer.x0) == 1.0


def test_a_head_supplies_the_variance_also_of_grey_images() -> None:
    class Head(nn.Module):
        def forward(self, x: Tensor, x0: Tensor, abar: Tensor) -> Tensor:
            assert x.shape[1] == x0.shape[1] == 3
            return (x - x0) ** 2 + abar.to(x) + tint

    tint = torch.tensor([1.0, 2.0, 6.0]).reshape(1, 3, 1, 1)
    base = NetworkPrior(Fixed(0, 0.4), SCHEDULE, learned_variance=True)
    prior = HeadedPrior(base, Head())
    t = torch.tensor([200])
    for channels in (1, 3):
        x = torch.randn(1, channels, 4, 4)
        answer, bare = prior.predict(x, t), base.predict(x, t)
        expected = (x - bare.x0) ** 2 + SCHEDULE.abar(t).float() + (tint if channels == 3 else 3.0)  # grey: the mean
        assert torch.equal(answer.x0, bare.x0) and prior.source == "head"
        assert answer.variance is not None and torch.allclose(answer.variance, expected)
        colours = base.predict(x.expand(1, 3, 4, 4), t).variance
        assert bare.variance is not None and colours is not None
        assert torch.allclose(bare.variance, colours if channels == 3 else colours.mean(1, keepdim=True))


def test_a_prior_around_another_takes_over_everything_and_costs_as_much() -> None:
    class Dear(CheapPrior):
        def work(self, t: int, height: int, width: int) -> float:
            return 7.0 * t + height + 100 * width

    base = Dear()
    base.size, base.multiple, base.channels, base.home = (8, 16), 4, 3, Path("weights.pt")
    base.spectrum, base.precision, base.rounded_from = toy_spectrum(), "mixed", {"half": 120}
    shared = ("name", "channels", "size", "multiple", "spectrum", "home", "schedule", "precision", "rounded_from")
    for around in (WrappedPrior(base), AutocastPrior(base, torch.bfloat16), HeadedPrior(base, torch.nn.Identity())):
        assert all(getattr(around, name) is getattr(base, name) for name in shared) and around.work(3, 4, 5) == 21 + 4 + 500
    assert WrappedPrior(base).source == "exact"


@pytest.mark.parametrize("predicts", ["x0", "eps"])
def test_a_network_without_a_derivative_is_told_where_one_is_taken(predicts: str) -> None:
    """Behind `eps` x0 still depends on x, and its derivative would be wrong; a prior's own `_predict` is checked by `Ask`."""

    class Cut(nn.Module):
        def forward(self, x: Tensor, t: Tensor) -> Tensor:
            return (0.5 * x).detach()

    class CutPrior(CheapPrior):
        def _predict(self, x: Tensor, t: Tensor) -> Prediction:
            return super()._predict(x.detach(), t)

    x, t = pair()[2], TIMES
    for prior in (NetworkPrior(Cut(), SCHEDULE, predicts=predicts), DenoiserPrior(Cut()), CutPrior()):
        ask = Ask(prior)
        ask(x, t)
        refused = {refusal(ask.jvp, x, t, x), refusal(ask.transposed_products, x, t, [x])}
        with torch.enable_grad():
            refused.add(refusal(ask, x.clone().requires_grad_(), t))
        (words,) = refused
        assert prior.name in words and "derivative" in words
