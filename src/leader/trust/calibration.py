"""The calibration of a referee: factors, by task and noise, that make its intervals cover what they say.

Conformal: on photographs that neither trained nor chose the referee, the quantile of |error| / std at a level is the factor
by which std is multiplied for an interval to cover that share of the pixels. Factors are kept by family of tasks, whether
data steps are in the metric of Sigma, and noise level (of JPEG: strength), log-linear between the levels; a task that was
never calibrated gets the widest factors of all, and a note says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.files import replacing
from leader.operators.jpeg import Jpeg
from leader.priors.json_files import check_list, check_number, check_table
from leader.problem import Problem
from leader.toml import read_table
from leader.trust.evidence import LEAST_NOISE
from leader.trust.residual import measure_far_share

SUFFIX = ".json"
LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Shares of pixels that intervals should cover."""
SHOWN = 0.9
"""The level at which `error_std` is exact: 1.6449 of it cover nine of ten."""
GAUSSIAN = {0.5: 0.6745, 0.8: 1.2816, 0.9: 1.6449, 0.95: 1.9600}
"""Standard deviations of a Gaussian within which these shares lie."""
NODES = (0.0, 0.02, 0.05, 0.1)
"""Noise levels at which factors are fitted, for [0, 1] images."""
STRONG = 0.2
"""One more for denoising, whose pictures have such noise."""
WEAK = LEAST_NOISE / 2
"""One more for picture files: where they show no noise, half a grey level and less, they err more than unrounded measurements
without any.
"""
HOLE = 0.002
"""Share of a picture far from anything known above which inpainting fills a hole rather than scattered pixels."""
LEAN = 32
"""Number of runs of all families that are added to a family's own at a noise level: referees behave much the same in all of
them, and sixteen photographs alone determine a factor less well.
"""
ALONE = {"colourise": LEAN, "jpeg": 2}
"""Families that use only their own runs, on which no other leans, and how many of all levels are added at each: errors of
invented colours are unlike all others, and so are those of a compression, which differ as much between its strengths as between
pictures.
"""
METRIC = ", metric"
"""Ends the name of a family whose runs take their data step in the metric of Sigma: their errors are smaller."""
Factors = tuple[float, ...]


@dataclass(frozen=True)
class Node:
    """The factors at one noise level, or strength of a JPEG (for [0, 1] images), one for each of `LEVELS`, and the number of
    runs behind them.
    """

    noise: float
    factors: Factors
    runs: int


@dataclass(frozen=True)
class Calibration:
    """Factors by family of tasks, each at ascending noise levels."""

    families: Mapping[str, tuple[Node, ...]]

    def find_factors(self, family: str, noise: float) -> tuple[Factors, bool]:
        """The factors for a family at a noise level, and whether that family was calibrated, in its metric or in the other."""
        task = family.removesuffix(METRIC)
        for name in (family, task, task + METRIC):
            if name in self.families:
                return _interpolate(self.families[name], noise), True
        every = [_interpolate(nodes, noise) for nodes in self.families.values()]
        return tuple(max(values) for values in zip(*every)), False

    def save(self, path: Path) -> None:
        """Writes the tables as JSON."""
        content = {
            "levels": list(LEVELS),
            "families": {
                name: [{"noise": node.noise, "factors": _round(node.factors), "runs": node.runs} for node in nodes]
                for name, nodes in self.families.items()
            },
        }
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Calibration:
        """The tables of a file; anything else is refused."""
        what, remedy = "factors of `leader calibrate`", "make it again with `leader calibrate`"
        content = read_table(path, what, remedy)
        if content.get("levels") != list(LEVELS):
            raise LeaderError(f"{path} holds no factors for the levels {', '.join(map(str, LEVELS))}: {remedy}.")
        families = check_table(content.get("families"), f"The families of {path}")
        if not families:
            raise LeaderError(f"{path} holds factors for no task: {remedy}.")
        return cls(
            {name: _read_nodes(nodes, f"The factors for {name[:40]} in {path}", remedy) for name, nodes in families.items()}
        )


def _read_nodes(given: Any, what: str, remedy: str) -> tuple[Node, ...]:
    nodes = []
    for item in check_list(given, what, 1, 64):
        entry = check_table(item, what)
        values = check_list(entry.get("factors"), what, len(LEVELS), len(LEVELS))
        factors = tuple(check_number(value, what, 0.0, 1e6) for value in values)
        if list(factors) != sorted(factors):
            raise LeaderError(f"{what} must not fall from level to level: {remedy}.")
        runs = check_number(entry.get("runs"), what, 0, 1e9)
        nodes.append(Node(check_number(entry.get("noise"), what, 0.0, 10.0), factors, int(runs)))
    noises = [node.noise for node in nodes]
    if noises != sorted(set(noises)):
        raise LeaderError(f"{what} must stand in the order of their noise levels: {remedy}.")
    return tuple(nodes)


def _interpolate(nodes: Sequence[Node], noise: float) -> Factors:
    """Log-linear between noise levels; constant beyond the ends. Where weak noise has factors, those of none are for none."""
    if noise > 0 and len(nodes) > 1 and nodes[1].noise <= WEAK:
        nodes = nodes[1:]
    places, here = [_locate(node.noise) for node in nodes], _locate(noise)
    if here <= places[0] or len(nodes) == 1:
        return nodes[0].factors
    for (low, first), (high, second) in zip(zip(places, nodes), zip(places[1:], nodes[1:])):
        if here <= high:
            share = (here - low) / (high - low)
            return _blend(second.factors, first.factors, share)
    return nodes[-1].factors


def _blend(first: Factors, second: Factors, share: float) -> Factors:
    """The geometric mean, with `share` of the first."""
    return tuple(a**share * b ** (1 - share) for a, b in zip(first, second))


def find_family(name: str, known: Tensor | None, metric: bool = False) -> str:
    """The family of an operator's task; a task may have a second one for large holes (known: [H, W] bool), and each has another
    for data steps in the metric of Sigma.
    """
    from leader.restoration.tasks import TASKS

    task = next((task for task in TASKS.values() if name in (task.name, *task.operators)), None)
    if task is None:
        return name + METRIC * metric
    has_hole = known is not None and measure_far_share(known[None]) > HOLE
    return (task.hole_family if task.hole_family and has_hole else task.trust_family or task.name) + METRIC * metric


def find_level(problem: Problem) -> float:
    """The level of a problem of one image at which its factors stand, for [0, 1] images: its noise; the strength of a JPEG
    compression, of which the estimated noise says less.
    """
    operator = problem.operator
    return operator.strength if isinstance(operator, Jpeg) else float(problem.sigma[0]) / 2


def nearest_level(noise: float) -> float:
    """The nearest of `NODES`, `WEAK` and `STRONG` to an estimated noise level for [0, 1] images; 0 for none at all."""
    levels = (WEAK, *(node for node in NODES if node > 0), STRONG)
    return min(levels, key=lambda node: abs(_locate(node) - _locate(noise))) if noise > 0 else 0.0


def _locate(noise: float) -> float:
    """The logarithm of a noise level; what is weaker counts as `WEAK`."""
    return math.log(max(noise, WEAK))


def fit_factors(ratios: Sequence[tuple[str, float, Tensor]]) -> Calibration:
    """Factors from runs: (family, noise for [0, 1] images, |error| / std of its open pixels).

    Every run has the same weight, regardless of its number of pixels. A family with few runs at a noise level borrows from the
    others: as if `LEAN` runs of all families were among its own.
    """
    if not ratios:
        raise LeaderError("There are no runs to calibrate with; give more pictures.")
    shared = [(level, values) for family, level, values in ratios if family.removesuffix(METRIC) not in ALONE]
    whole = {level: quantiles([values for noise, values in shared if noise == level]) for level in {one[0] for one in shared}}
    families: dict[str, tuple[Node, ...]] = {}
    for family in sorted({name for name, _, _ in ratios}):
        nodes, own = [], quantiles([values for name, _, values in ratios if name == family])
        for level in sorted({noise for name, noise, _ in ratios if name == family}):
            chosen = [values for name, noise, values in ratios if (name, noise) == (family, level)]
            lean = ALONE.get(family.removesuffix(METRIC))
            share = len(chosen) / (len(chosen) + (LEAN if lean is None else lean))
            beside = whole[level] if lean is None else own
            nodes.append(Node(level, _blend(quantiles(chosen), beside, share), len(chosen)))
        families[family] = tuple(nodes)
    return Calibration(families)


def quantiles(runs: Sequence[Tensor], levels: Sequence[float] = LEVELS) -> Factors:
    """Quantiles of the values of several runs with equal weights, regardless of their numbers of pixels."""
    values = torch.cat([run.flatten().double() for run in runs])
    weights = torch.cat([torch.full((run.numel(),), 1 / run.numel(), dtype=torch.float64) for run in runs])
    order = values.argsort()
    total = weights[order].cumsum(0)
    places = torch.searchsorted(total, torch.tensor(levels, dtype=torch.float64) * len(runs)).clamp_max(len(values) - 1)
    return tuple(float(value) for value in values[order][places])


def beside(referee: Path) -> Path:
    """Where the factors of a referee are stored."""
    return referee.with_name(referee.name + SUFFIX)


def calibration_of(referee: Path) -> Calibration | None:
    """The factors stored beside a referee, if it was calibrated."""
    file = beside(referee)
    return _open(file, file.stat().st_mtime_ns) if file.is_file() else None


@lru_cache(maxsize=8)
def _open(file: Path, changed: int) -> Calibration:
    return Calibration.load(file)


def _round(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.4g}") for value in values]
