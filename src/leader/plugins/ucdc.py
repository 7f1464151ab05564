"""UCDC, uncertainty-calibrated data consistency: the host's data step in the metric of Sigma.

    x_hat = x0 + Sigma A^T (A Sigma A^T + sigma^2)^{-1} (y - A x0)

This is LEADer's own objective, 1/2 (x - x0)^T Sigma^{-1} (x - x0), minimised under the data instead of before a projection that
takes all pixels for equally uncertain. Methods use it through the `metric` of their Context (`leader.uncertainty.metric`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.plugins.base import Plugin, StepInfo
from leader.priors.base import Prior
from leader.problem import Problem
from leader.uncertainty.covariance import Covariance, error_covariance, independent
from leader.uncertainty.metric import ByImage, Calibrated, Memory, Metric

COVARIANCES = ("full", "diagonal")
MAPS = ("local", "mean", "shuffle")


@dataclass(frozen=True)
class UCDC(Plugin):
    """The host's data step in the metric of the local uncertainty."""

    name: ClassVar[str] = "ucdc"
    summary: ClassVar[str] = "takes the data step in the metric of the local uncertainty"
    paper: ClassVar[str] = "this project: docs/metric.md"
    needs_sigma: ClassVar[bool] = True

    covariance: str = "full"
    """"full": pixels are correlated as the prior's fitted spectrum says; "diagonal": each knows itself alone."""
    power: float = 1.0
    """Of the local variance: Sigma^power, with its mean kept."""
    scale: float = 1.0
    """Of Sigma against the noise of the data; below 1 trusts the estimate more."""
    iterations: int = 8
    """Of the conjugate gradients of a step at most."""
    map: str = "local"
    """"local": Sigma itself; "mean": its mean U_t; "shuffle": its pixels in random order. The latter two are ablations."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.power >= 0 and self.scale > 0 and self.iterations >= 1):
            raise LeaderError(
                "UCDC needs power >= 0, scale > 0 and iterations >= 1; "
                f"found {self.power}, {self.scale} and {self.iterations}."
            )
        for name, allowed in (("covariance", COVARIANCES), ("map", MAPS)):
            if getattr(self, name) not in allowed:
                raise LeaderError(f"UCDC's {name} is one of {', '.join(allowed)}; found '{getattr(self, name)}'.")

    def metric(self, prior: Prior, sigma: Tensor, info: StepInfo, problem: Problem, lasting: dict[Hashable, Any]) -> Metric:
        memory = lasting.setdefault("metric", Memory())
        metrics = []
        for row, name in enumerate(info.ids):
            spread = self._reshaped(sigma[row : row + 1])
            operator = problem.operator if problem.batch == 1 else problem.operator.select(torch.tensor([row]))
            covariance = self._covariance(prior, int(info.t[row]), spread)
            metrics.append(Calibrated(covariance, operator, float(spread.mean()), self.iterations, memory, name))
        return metrics[0] if len(metrics) == 1 else ByImage(metrics)

    def _covariance(self, prior: Prior, t: int, spread: Tensor) -> Covariance:
        return independent(spread) if self.covariance == "diagonal" else error_covariance(prior, t, spread)

    def _reshaped(self, spread: Tensor) -> Tensor:
        """Sigma of one image to the power asked for, its mean kept, times the scale."""
        mean = spread.mean().clamp_min(1e-12)
        if self.map == "mean":
            return (self.scale * mean).expand_as(spread)
        if self.power != 1:
            shaped = spread.clamp_min(0) ** self.power
            spread = shaped * (mean / shaped.mean().clamp_min(1e-12))
        return self.scale * spread.clamp_min(1e-8)
