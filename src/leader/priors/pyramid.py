"""The embedded prior: a noise-conditioned denoiser in an averaging pyramid, read as a score model.

By Tweedie's formula the posterior mean of x0 given x_t is a Gaussian denoiser applied to x_t / sqrt(abar).
This file turns states in [-1, 1] at a time t into noisy images in [0, 1] with noise s_t/2, picks the pyramid
level where the network (or, on tiny level images, the Gaussian prior) answers, and converts estimate and
variance back.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from leader.errors import LeaderError
from leader.priors.base import Prediction, Prior, from_x0
from leader.priors.coarse_gaussian import CoarseGaussian
from leader.priors.pyramid_net import (
    Plan,
    PyramidConfig,
    PyramidNet,
    enlarge,
    expand,
    halve,
    pad_to_multiple,
    plan,
    receptive_radius,
)
from leader.schedule import Schedule


@dataclass(frozen=True)
class VarianceScale:
    """Factors that calibrate the head's variance, log-linear between noise levels (of [0, 1] images)."""

    sigma: tuple[float, ...] = (1.0,)
    factor: tuple[float, ...] = (1.0,)

    def at(self, sigma: float) -> float:
        """The factor at noise sigma; constant beyond the table."""
        x, xs = math.log(max(sigma, 1e-8)), [math.log(s) for s in self.sigma]
        if x <= xs[0]:
            return self.factor[0]
        for left, right, low, high in zip(xs, xs[1:], self.factor, self.factor[1:]):
            if x <= right:
                share = (x - left) / (right - left)
                return math.exp((1 - share) * math.log(low) + share * math.log(high))
        return self.factor[-1]


class PyramidPrior(Prior):
    """The embedded prior. Any size; RGB, or grey (one channel)."""

    name = "pyramid"
    channels = 3
    source = "head"

    def __init__(
        self,
        net: PyramidNet,
        coarse: CoarseGaussian,
        schedule: Schedule | None = None,
        scale: VarianceScale | None = None,
    ) -> None:
        super().__init__(schedule or Schedule.linear())
        self.net = net
        self.coarse = coarse
        self.scale = scale or VarianceScale()

    @classmethod
    def load(cls, path: str | Path | None = None) -> PyramidPrior:
        """The shipped prior, or one from `path` (a .safetensors file with its .json beside it)."""
        if path is None:
            with resources.as_file(resources.files("leader.priors") / "weights") as folder:
                return cls.load(folder / "pyramid.safetensors")
        weights = Path(path)
        settings_file = weights.with_suffix(".json")
        for file in (weights, settings_file):
            if not file.exists():
                raise LeaderError(f"A pyramid prior needs {file}, which does not exist: give the path of its weights.")
        return cls._build(json.loads(settings_file.read_text()), load_file(weights), weights)

    @classmethod
    def _build(cls, settings: dict[str, Any], tensors: dict[str, Tensor], weights: Path) -> PyramidPrior:
        net = PyramidNet(PyramidConfig(**settings["net"]))
        try:
            net.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
        except RuntimeError as error:
            raise LeaderError(
                f"{weights.name} does not hold the network its .json describes: restore the matching pair."
            ) from error
        net.eval().requires_grad_(False)
        coarse = CoarseGaussian(**{key: tuple(value) for key, value in settings["coarse"].items()})
        scale = VarianceScale(**{key: tuple(value) for key, value in settings["variance_scale"].items()})
        table = settings["schedule"]
        return cls(net, coarse, Schedule.linear(table["beta_start"], table["beta_end"], table["steps"]), scale)

    def sigma(self, t: int) -> float:
        """Noise of the rescaled [0, 1] image at time t."""
        abar = float(self.schedule.abar(t))
        return math.sqrt((1 - abar) / abar) / 2

    def plan(self, t: int, height: int, width: int) -> Plan:
        """The level and the guides used at time t."""
        return plan(self.sigma(t), height, width, self.net.config)

    def work(self, t: int, height: int, width: int) -> float:
        """Full-resolution-equivalent pixels one call processes, all levels counted."""
        where = self.plan(t, height, width)
        if not where.fits:
            return height * width / 4.0**where.level
        return self.net.work(where, height, width)

    def reach(self, t: int, height: int, width: int) -> float:
        """Pixels beyond which nothing influences a prediction; infinite where the Gaussian prior answers."""
        where = self.plan(t, height, width)
        return receptive_radius(self.net.config, where.level, where.guides) if where.fits else math.inf

    def _predict(self, x: Tensor, t: Tensor) -> Prediction:
        signal = self.schedule.level(t, x).signal
        noisy = (x / signal + 1) / 2
        times = t.tolist()
        if len(set(times)) == 1:
            estimate, variance = self.denoise(noisy, self.sigma(times[0]))
        else:
            parts = [self.denoise(noisy[i : i + 1], self.sigma(time)) for i, time in enumerate(times)]
            estimate, variance = torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])
        return from_x0(x, t, 2 * estimate - 1, self.schedule, 4 * variance)

    def denoise(self, noisy: Tensor, sigma: float) -> tuple[Tensor, Tensor]:
        """noisy [B, 1 or 3, H, W] in [0, 1] with noise sigma -> estimate, variance of its error."""
        if noisy.shape[1] == 1:
            return self._denoise_grey(noisy, sigma)
        where = plan(sigma, noisy.shape[2], noisy.shape[3], self.net.config)
        if where.fits:
            estimate, variance = self.net(noisy, noisy.new_full((len(noisy),), sigma), where)
        else:
            estimate, variance = self._denoise_tiny(noisy, where)
        return estimate, variance * self.scale.at(sigma)

    def _denoise_grey(self, noisy: Tensor, sigma: float) -> tuple[Tensor, Tensor]:
        """Three equal channels in, their mean out.

        The copies share their noise: along (1, 1, 1) it is sqrt(3) sigma, and there lies all of a grey image.
        The network, which expects independent channels, is told that much.
        """
        estimate, variance = self.denoise(noisy.expand(-1, 3, -1, -1), math.sqrt(3) * sigma)
        return estimate.mean(1, keepdim=True), variance.mean(1, keepdim=True)

    def _denoise_tiny(self, noisy: Tensor, where: Plan) -> tuple[Tensor, Tensor]:
        height, width = noisy.shape[2:]
        level_image = halve(pad_to_multiple(noisy, 2**where.level), where.level)
        estimate, variance = self.coarse.posterior(level_image, where.sigma, where.level)
        estimate, variance = expand(estimate, where.level), enlarge(variance, where.level, "bilinear")
        return estimate[..., :height, :width], variance[..., :height, :width]
