"""The embedded prior: a noise-conditioned denoiser in an averaging pyramid, used as a score model.

By Tweedie's formula the posterior mean of x0 given x_t is a Gaussian denoiser applied to x_t / sqrt(abar). This file turns
states in [-1, 1] at a time t into noisy images in [0, 1] with noise s_t/2, picks the pyramid level where the network (or, on
tiny level images, the Gaussian prior) answers, and converts estimate and variance back.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from leader.errors import LeaderError, UsageError
from leader.priors.base import Prediction, Prior, from_x0
from leader.priors.betas import make_schedule
from leader.priors.coarse_gaussian import CoarseGaussian
from leader.priors.json_files import check_flag, check_keys, check_list, check_number, check_table, check_whole
from leader.priors.pyramid_net import (
    Late,
    LevelPlan,
    PyramidConfig,
    PyramidNet,
    enlarge,
    expand,
    halve,
    pad_to_multiple,
    plan,
    receptive_radius,
)
from leader.priors.spectrum import find_spectrum
from leader.priors.tensor_files import load_network, read_safetensors
from leader.schedule import Schedule
from leader.toml import read_table

REMEDY = "restore the file that `leader train` or `leader publish` wrote"
WIDEST_RANGE = 64.0
"""Largest sigma_max over expert_max: each doubling is one more guide, and sides are padded to two to the number of guides."""


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


@dataclass(frozen=True)
class PyramidSettings:
    """The settings in the .json beside a pyramid's weights."""

    net: PyramidConfig
    coarse: CoarseGaussian
    schedule: Schedule
    scale: VarianceScale


def read_settings(weights: Path) -> PyramidSettings:
    """The settings beside a pyramid's weights, with every value validated."""
    file = weights.with_suffix(".json")
    content = read_table(file, "a pyramid prior's settings", REMEDY)
    parts = {
        key: check_table(content.get(key), f"'{key}' in {file}") for key in ("net", "coarse", "schedule", "variance_scale")
    }
    try:
        return PyramidSettings(
            _net(parts["net"], file),
            _coarse(parts["coarse"], file),
            make_schedule(parts["schedule"], str(file)),
            _scale(parts["variance_scale"], file),
        )
    except UsageError as error:  # an unknown value in a file is not a usage error
        raise LeaderError(str(error)) from error


def _net(found: dict[str, Any], file: Path) -> PyramidConfig:
    check_keys(found, PyramidConfig.__dataclass_fields__, f"setting of 'net' in {file}")
    values = {item.name: found.get(item.name, item.default) for item in fields(PyramidConfig)}
    for key in ("width", "depth", "head_width", "min_level_size"):
        check_whole(values[key], f"{key} in {file}", 1, 4096)
    for key in ("sigma_max", "expert_max", "variance_floor"):
        check_number(values[key], f"{key} in {file}", 1e-8, 1e3)
    check_flag(values["cascade"], f"cascade in {file}")
    if values["sigma_max"] > WIDEST_RANGE * values["expert_max"]:
        raise LeaderError(
            f"sigma_max in {file} is over {WIDEST_RANGE:.0f} times expert_max, which asks for more levels than a picture "
            f"has: {REMEDY}."
        )
    return PyramidConfig(**values)


def _coarse(found: dict[str, Any], file: Path) -> CoarseGaussian:
    check_keys(found, CoarseGaussian.__dataclass_fields__, f"setting of 'coarse' in {file}")
    values = {}
    for item in fields(CoarseGaussian):
        count = (1, 64) if item.name == "detail" else (3, 3)
        low = 0.0 if item.name in ("mean", "detail") else 1e-12  # the others divide or weigh
        numbers = check_list(found.get(item.name), f"{item.name} in {file}", *count)
        values[item.name] = tuple(check_number(value, f"{item.name} in {file}", low, 1e3) for value in numbers)
    return CoarseGaussian(**values)


def _scale(found: dict[str, Any], file: Path) -> VarianceScale:
    check_keys(found, VarianceScale.__dataclass_fields__, f"setting of 'variance_scale' in {file}")
    columns = []
    for key in ("sigma", "factor"):
        numbers = check_list(found.get(key), f"{key} in {file}", 1, 1000)
        columns.append(tuple(check_number(value, f"{key} in {file}", 1e-8, 1e8) for value in numbers))
    sigma, factor = columns
    if len(sigma) != len(factor) or any(after <= before for before, after in pairwise(sigma)):
        raise LeaderError(f"The variance_scale in {file} needs rising noise levels and a factor for each: {REMEDY}.")
    return VarianceScale(sigma, factor)


def embedded_file() -> Path:
    """The weights that ship with the package."""
    return Path(str(resources.files("leader.priors") / "weights" / "pyramid.safetensors"))


class PyramidPrior(Prior):
    """The embedded prior. Any size; RGB, or grey (one channel).

    >>> PyramidPrior.load().channels
    3
    """

    name = "pyramid"
    channels = 3
    source = "head"

    def __init__(
        self, net: PyramidNet, coarse: CoarseGaussian, schedule: Schedule | None = None, scale: VarianceScale | None = None
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
        settings = read_settings(weights)
        tensors, _ = read_safetensors(weights)
        net = load_network(lambda: PyramidNet(settings.net), tensors, weights, str(weights.with_suffix(".json")))
        net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        prior = cls(net, settings.coarse, settings.schedule, settings.scale)
        prior.spectrum = find_spectrum(weights)
        return prior

    def with_bodies(self, bodies: Mapping[str, nn.Module]) -> PyramidPrior:
        """The prior with other bodies by name ("main", "expert") and all else in common."""
        made, net = copy.copy(self), copy.copy(self.net)
        made._modules, net._modules = {**self._modules, "net": net}, {**self.net._modules, **bodies}
        return made

    def sigma(self, t: int) -> float:
        """Noise of the rescaled [0, 1] image at time t."""
        abar = float(self.schedule.abar(t))
        return math.sqrt((1 - abar) / abar) / 2

    def plan(self, t: int, height: int, width: int) -> LevelPlan:
        """The level and the guides used at time t."""
        return plan(self.sigma(t), height, width, self.net.config)

    def work(self, t: int, height: int, width: int) -> float:
        """Full-resolution-equivalent pixels processed by one call, over all levels."""
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
            estimate, late = self._denoise(noisy, self.sigma(times[0]))
            return from_x0(x, t, 2 * estimate - 1, self.schedule, lambda: 4 * late())
        parts = [self.denoise(noisy[i : i + 1], self.sigma(time)) for i, time in enumerate(times)]
        estimate, variance = torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])
        return from_x0(x, t, 2 * estimate - 1, self.schedule, 4 * variance)

    def denoise(self, noisy: Tensor, sigma: float) -> tuple[Tensor, Tensor]:
        """noisy [B, 1 or 3, H, W] in [0, 1] with noise sigma -> estimate, variance of its error."""
        estimate, late = self._denoise(noisy, sigma)
        return estimate, late()

    def _denoise(self, noisy: Tensor, sigma: float) -> tuple[Tensor, Late]:
        """The estimate, and what computes its variance.

        Of grey images, three equal channels go in, and their mean comes out. The copies share their noise: along (1, 1, 1), the
        direction of grey images, it is sqrt(3) sigma. The network expects independent channels, so it is given that level.
        """
        if noisy.shape[1] == 1:
            estimate, late = self._denoise(noisy.expand(-1, 3, -1, -1), math.sqrt(3) * sigma)
            return estimate.mean(1, keepdim=True), lambda: late().mean(1, keepdim=True)
        height, width = noisy.shape[2:]
        where = plan(sigma, height, width, self.net.config)
        if where.fits:
            estimate, late = self.net.answer(noisy, noisy.new_full((len(noisy),), sigma), where)
            return estimate, lambda: late() * self.scale.at(sigma)
        level_image = halve(pad_to_multiple(noisy, 2**where.level), where.level)
        tiny, variance = self.coarse.posterior(level_image, where.sigma, where.level)
        inside = (..., slice(height), slice(width))
        return (
            expand(tiny, where.level)[inside],
            lambda: enlarge(variance, where.level, "bilinear")[inside] * self.scale.at(sigma),
        )
