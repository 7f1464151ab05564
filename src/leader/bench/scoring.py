"""The numbers of a record: metrics, residuals, counts."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from leader.bench.records import Record
from leader.errors import LeaderError
from leader.metrics import METRICS
from leader.metrics.fidelity import data_consistency, rms
from leader.problem import Problem
from leader.result import Result, to_unit_range

DIGITS = 6
"""Decimals of a stored score."""


def scores(restored: Tensor, picture: Tensor, problem: Problem, names: Iterable[str]) -> Record:
    """The metrics `names` of the restored image [1, 3, H, W] in [-1, 1] against the picture in [0, 1], and its residuals.

    residual is that of the clamped picture, residual_raw that of the sampler's output before clamping, both in units
    of [0, 1] pictures. What is not finite is None.
    """
    if not bool(torch.isfinite(restored).all()):
        raise LeaderError("The restored image holds values that are not finite; use smaller steps.")
    shown = to_unit_range(restored)
    found = {name: float(METRICS[name].function(shown, picture)[0]) for name in names}
    # the measurement of a [-1, 1] image: its residuals are twice as large
    found["residual"] = float(data_consistency(shown, problem.y, lambda x: problem.operator.A(2 * x - 1))[0]) / 2
    found["residual_raw"] = float(rms(problem.residual(restored))[0]) / 2
    return {name: round(value, DIGITS) if math.isfinite(value) else None for name, value in found.items()}


def counts(result: Result, size: int) -> Record:
    """What the run asked of the network; work is in passes over an image of size x size."""
    total = result.ledger.total
    return {
        "calls": int(total.calls),
        "jvps": int(total.jvps),
        "backwards": int(total.backwards),
        "work": round(total.pixels / size**2, 3),
    }
