"""Adapters from networks of different conventions to priors: their prediction, dtype and variance.

A network predicts noise, v, a clean image or a denoised image; these classes convert that to a `Prediction`. States and
predictions stay in the dtype of x (float32); only the network runs in half precision.
"""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from leader.errors import LeaderError, unknown_name
from leader.priors.base import LatePrediction, Prediction, Prior, check_derivative, check_size, from_eps, from_x0
from leader.priors.variance_head import VarianceHead
from leader.schedule import Schedule

Predicts = Literal["eps", "v", "x0"]
PREDICTS: tuple[str, ...] = get_args(Predicts)


def from_v(x: Tensor, t: Tensor, v: Tensor, schedule: Schedule, variance: Tensor | None = None) -> Prediction:
    """The Prediction that follows from v = sqrt(abar) eps - sqrt(1 - abar) x0; finite at every level."""
    level = schedule.level(t, x)
    return Prediction(level.signal * x - level.noise * v, level.signal * v + level.noise * x, variance)


CONVERSIONS = {"eps": from_eps, "v": from_v, "x0": from_x0}


def learned_variance(raw: Tensor, t: Tensor, schedule: Schedule) -> Tensor:
    """diag Cov[x0 | x_t] from the variance channels of a network trained with a learned range.

    Such a network interpolates the logarithm of its reverse variance between beta_tilde and beta with the
    share v = (raw + 1) / 2. Since that variance is beta_tilde + c^2 Sigma, without cancellation Sigma = (1 - abar) expm1(v L) /
    expm1(L) with L = log(beta / beta_tilde). `schedule` must hold the betas of training.
    """
    length, largest = _learned_range(t, schedule, raw)
    share = ((raw + 1) / 2).clamp(0, 1)
    return largest * torch.expm1(share * length) / torch.expm1(length)


def learned_share(variance: Tensor, t: Tensor, schedule: Schedule) -> Tensor:
    """v of such a network, in [0, 1], from its diag Cov[x0 | x_t]: the inverse of `learned_variance`."""
    length, largest = _learned_range(t, schedule, variance)
    return (torch.log1p(variance / largest * torch.expm1(length)) / length).clamp(0, 1)


def _learned_range(t: Tensor, schedule: Schedule, like: Tensor) -> tuple[Tensor, Tensor]:
    """log(beta / beta_tilde) and 1 - abar at times t, broadcastable over `like`."""
    abar = schedule.abar_table
    before = torch.cat([abar.new_ones(1), abar[:-1]])
    smallest = schedule.betas * (1 - before) / (1 - abar)
    smallest[0] = smallest[1]  # beta_tilde_0 = 0 has no logarithm: training uses the next value
    range_ = (schedule.betas / smallest).log()
    times = t.cpu()
    length = range_[times].to(like.device, like.dtype).reshape(-1, 1, 1, 1)
    return length, (1 - abar[times]).to(like.device, like.dtype).reshape(-1, 1, 1, 1)


def check_answer(answer: object, x: Tensor, name: str, channels: int) -> Tensor:
    """What a network returned for x [B, C, H, W], in the dtype of x; rejects all but a tensor [B, channels, H, W]."""
    wanted = [x.shape[0], channels, *x.shape[2:]]
    if not isinstance(answer, Tensor) or list(answer.shape) != wanted:
        found = list(answer.shape) if isinstance(answer, Tensor) else type(answer).__name__
        raise LeaderError(
            f"The network of '{name}' returned {found}; expected a tensor {wanted}: check its channels, and whether it learned "
            "its variance."
        )
    check_derivative(answer, x, name)
    return answer.to(x.dtype)


class NetworkPrior(Prior):
    """A network(x [B, C, H, W], t [B]) -> [B, C or 2C, H, W] as a prior.

    predicts          meaning of the first C channels: the noise, v or the clean image
    learned_variance  whether C more channels hold a learned-range variance
    size, multiple    see `Prior`
    dtype             the dtype of the network's input; None leaves that to the network
    time_factor       the network is called at t * time_factor (1000 / T for rescaled times)

    Grey images pass through a three-channel network as three equal channels; the answers are averaged.

    >>> NetworkPrior(torch.nn.Identity(), leader.Schedule.linear(), predicts="x0").predicts
    'x0'
    """

    def __init__(
        self,
        network: nn.Module,
        schedule: Schedule,
        *,
        predicts: str = "eps",
        learned_variance: bool = False,
        channels: int = 3,
        size: tuple[int, int] | None = None,
        multiple: int = 1,
        dtype: torch.dtype | None = None,
        time_factor: float = 1.0,
        name: str = "network",
    ) -> None:
        super().__init__(schedule)
        if predicts not in CONVERSIONS:
            raise unknown_name("prediction", predicts, PREDICTS)
        self.network = network
        self.convert = CONVERSIONS[predicts]
        self.predicts = predicts
        self.learned = learned_variance
        self.channels = self.image_channels = channels
        self.size, self.multiple = size, multiple
        self.dtype = dtype
        self.time_factor = time_factor
        self.name = name
        self.source = "learned" if learned_variance else None

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        if x.shape[1] != self.image_channels:
            return self._predict(x.expand(-1, self.image_channels, -1, -1), t).map(lambda part: part.mean(1, keepdim=True))
        check_size(x, self.name, self.size, self.multiple)
        times = t.to(x.device)
        answer = self.network(
            x if self.dtype is None else x.to(self.dtype), times if self.time_factor == 1 else times * self.time_factor
        )
        answer = check_answer(answer, x, self.name, self.image_channels * (2 if self.learned else 1))
        if not self.learned:
            return self.convert(x, t, answer, self.schedule)
        mean, raw = answer.chunk(2, 1)
        return self.convert(x, t, mean, self.schedule, learned_variance(raw, t, self.schedule))


class DenoiserPrior(Prior):
    """A denoiser for known noise levels, network(x0 + sigma z, sigma [B]) -> x0, as a prior (Tweedie's formula).

    unit_range      the network works in [0, 1]: images and sigma are converted before and after it
    schedule        the noise levels a sampler walks through; linear betas by default
    size, multiple  see `Prior`; `load_prior(prior)` tiles or pads images of any other size

    >>> import torch
    >>> from leader import DenoiserPrior, Problem, Sampler, operators
    >>> class Shrink(torch.nn.Module):  # the best denoiser of white noise images of standard deviation 0.5
    ...     def forward(self, x, sigma):
    ...         return x * (0.25 / (0.25 + sigma**2)).reshape(-1, 1, 1, 1)
    >>> prior = DenoiserPrior(Shrink(), name="shrink")
    >>> problem = Problem(torch.rand(1, 3, 8, 8), operators.AveragePoolSR((3, 16, 16), 2))
    >>> Sampler(prior, "ddnm", plugins=(), steps=10).run(problem).images.shape
    torch.Size([1, 3, 16, 16])
    """

    def __init__(
        self,
        network: nn.Module,
        schedule: Schedule | None = None,
        *,
        unit_range: bool = False,
        channels: int = 3,
        size: tuple[int, int] | None = None,
        multiple: int = 1,
        dtype: torch.dtype | None = None,
        name: str = "denoiser",
    ) -> None:
        super().__init__(schedule or Schedule.linear())
        self.network = network
        self.unit_range = unit_range
        self.channels = self.image_channels = channels
        self.size, self.multiple = size, multiple
        self.dtype = dtype
        self.name = name

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        if x.shape[1] != self.image_channels:
            return self._predict(x.expand(-1, self.image_channels, -1, -1), t).map(lambda part: part.mean(1, keepdim=True))
        check_size(x, self.name, self.size, self.multiple)
        level = self.schedule.level(t, x)
        noisy, sigma = x / level.signal, level.sigma.reshape(-1)
        if self.unit_range:
            noisy, sigma = (noisy + 1) / 2, sigma / 2
        dtype = self.dtype or x.dtype
        clean = check_answer(self.network(noisy.to(dtype), sigma.to(dtype)), x, self.name, self.image_channels)
        return from_x0(x, t, 2 * clean - 1 if self.unit_range else clean, self.schedule)


class LabelledNetwork(nn.Module):
    """A class-conditional network with a fixed class."""

    def __init__(self, network: nn.Module, label: int) -> None:
        super().__init__()
        self.network = network
        self.label = label

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        label = torch.full((x.shape[0],), self.label, dtype=torch.long, device=x.device)
        answer: Tensor = self.network(x, t, label)
        return answer


class WrappedPrior(Prior):
    """A prior around another one, `base`, which provides everything it does not change."""

    def __init__(self, base: Prior) -> None:
        super().__init__(base.schedule)
        self.base = base
        for name in ("name", "channels", "source", "size", "multiple", "spectrum", "home", "precision", "rounded_from"):
            setattr(self, name, getattr(base, name))

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        return self.base._predict(x, t)

    def work(self, t: int, height: int, width: int) -> float:
        return self.base.work(t, height, width)


class AutocastPrior(WrappedPrior):
    """A prior whose network runs in half precision where torch considers it safe; predictions are float32."""

    def __init__(self, base: Prior, dtype: torch.dtype) -> None:
        super().__init__(base)
        self.dtype = dtype

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        with torch.autocast(x.device.type, self.dtype):
            return self.base._predict(x, t).map(lambda part: part.to(x.dtype))


class HeadedPrior(WrappedPrior):
    """A prior with a fitted variance head: head(x_t, x0, abar [B, 1, 1, 1]) -> variance of x0's error.

    >>> HeadedPrior(load_prior("embedded", whole=True), VarianceHead()).source
    'head'
    """

    def __init__(self, base: Prior, head: nn.Module) -> None:
        super().__init__(base)
        if isinstance(head, VarianceHead) and base.channels not in (None, head.shape.channels):
            raise LeaderError(
                f"The variance head was fitted to images of {head.shape.channels} channels, and the prior '{base.name}' "
                f"has {base.channels}: fit it again with `leader fit-variance`."
            )
        self.head = head
        self.source = "head"

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        answer = self.base._predict(x, t)
        return LatePrediction(answer.x0, answer.eps, lambda: self._read_variance(x, t, answer.x0))

    def _read_variance(self, x: Tensor, t: Tensor, x0: Tensor) -> Tensor:
        colour = (-1, self.channels or x.shape[1], -1, -1)
        variance: Tensor = self.head(x.expand(colour), x0.expand(colour), self.schedule.level(t, x).abar)
        return variance.mean(1, keepdim=True) if variance.shape[1] != x.shape[1] else variance
