"""The numbers of a record: metrics, residuals, counts, memory."""

import math
import sys
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor

from leader.bench.records import Record
from leader.errors import LeaderError
from leader.metrics import METRICS
from leader.metrics.fidelity import data_consistency, rms
from leader.priors.ledger import Counts
from leader.problem import Problem
from leader.result import Result, to_unit_range

DIGITS = 6
"""Decimals of a stored score."""
STATUS = Path("/proc/self/status")
"""The kernel's report on this process, if there is one."""


def scores(restored: Tensor, picture: Tensor, problem: Problem, names: Iterable[str]) -> Record:
    """The metrics `names` of the restored image [1, 3, H, W] in [-1, 1] against the picture in [0, 1], and its residuals.

    residual is that of the clamped picture, residual_raw that of the sampler's output before clamping, both in units
    of [0, 1] pictures. Values that are not finite become None.
    """
    if not bool(torch.isfinite(restored).all()):
        raise LeaderError("The restored image holds values that are not finite; use smaller steps.")
    shown = to_unit_range(restored)
    found = {name: float(METRICS[name].function(shown, picture)[0]) for name in names}
    # the measurement of a [-1, 1] image: its residuals are twice as large
    found["residual"] = float(data_consistency(shown, problem.y, lambda x: problem.operator.A(2 * x - 1))[0]) / 2
    found["residual_raw"] = float(rms(problem.residual(restored))[0]) / 2
    return {name: round(value, DIGITS) if math.isfinite(value) else None for name, value in found.items()}


def counts(result: Result, image: int, size: int) -> Record:
    """The network calls of a run for one image; work counts only calls, in passes over an image of size x size."""
    total = result.ledger.rows.get(image, Counts())
    return {
        "calls": int(total.calls),
        "jvps": int(total.jvps),
        "backwards": int(total.backwards),
        "work": round(total.pixels / size**2, 3),
    }


def measure_memory(device: str = "cpu", peak: bool = False) -> float:
    """Memory of this process in MB of 2^20 bytes, now or at most so far: resident, or on a GPU what torch has allocated.

    The kernel reports kB of 2^10 bytes. ru_maxrss, used if there is no report, survives exec and so includes the parent's size.
    """
    if device.startswith("cuda"):
        return (torch.cuda.max_memory_allocated() if peak else torch.cuda.memory_allocated()) / 2**20
    line = "VmHWM" if peak else "VmRSS"
    if STATUS.is_file():
        for text in STATUS.read_text().splitlines():
            if text.startswith(f"{line}:"):
                return int(text.split()[1]) / 2**10
    if sys.platform == "win32":
        raise LeaderError("Peak memory can be measured on Linux and macOS only; remove 'memory' from the form.")
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
