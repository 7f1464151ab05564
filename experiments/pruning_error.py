"""What pruning costs where the exact answer is known: the probability flow of a Gaussian prior with four distinct variances.

    python experiments/pruning_error.py

Prints the end-point error of DDIM (eta 0) with SATP against the exact flow, the discrete Gronwall bound with measured terms,
the floor that the grid leaves at B = 0, the constant of the paper's bound, the ratio |x''| / U_t along the path, and how
many of the visited steps are longer than the rule without its max{1, .} allows, here and in the records of Figure 7.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from leader import Problem, Sampler, operators
from leader.priors.gaussian import Gaussian, GaussianPrior
from leader.schedule import Schedule

SHAPE = (1, 4, 8)
ETA = 4.0
RECORDS = Path(__file__).parent / "records" / "figure7-small.jsonl"


def make_prior(times: int) -> GaussianPrior:
    """Four variances and a ramp as the mean; the linear schedule refined to `times` times of the same flow."""
    variances = torch.tensor([0.01, 0.09, 0.25, 0.64], dtype=torch.float64).repeat(8).reshape(SHAPE)
    mean = torch.linspace(-0.5, 0.5, 32, dtype=torch.float64).reshape(SHAPE)
    return GaussianPrior(Gaussian(mean, variances), Schedule.linear(0.1 / times, 20 / times, times))


def spread(prior: GaussianPrior, t: int) -> Tensor:
    """The variance of x_t, per pixel."""
    abar = prior.schedule.abar(t)
    return abar * prior.gaussian.variances + 1 - abar


def flow(prior: GaussianPrior, x: Tensor, t: int, u: int) -> Tensor:
    """The exact probability flow from t to u."""
    now, then = prior.schedule.abar(t).sqrt(), prior.schedule.abar(u).sqrt()
    mean = prior.gaussian.mean
    return then * mean + (spread(prior, u) / spread(prior, t)).sqrt() * (x - now * mean)


def gain(prior: GaussianPrior, t: int, u: int) -> Tensor:
    """How one DDIM step scales the deviation from the mean, per pixel."""
    now, then = prior.schedule.abar(t), prior.schedule.abar(u)
    return ((then * now).sqrt() * prior.gaussian.variances + ((1 - then) * (1 - now)).sqrt()) / spread(prior, t)


def measure(prior: GaussianPrior, steps: int, budget: float) -> tuple[int, float, float, float]:
    """Calls, end-point error, Gronwall's bound with measured terms, and the share of steps that max{1, .} lengthens."""
    x = torch.randn(1, *SHAPE, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    problem = Problem.internal(torch.zeros(1, *SHAPE, dtype=torch.float64), operators.Denoising(SHAPE))
    sampler = Sampler(prior, "ddim", ("satp",), steps=steps, satp={"budget": budget, "eta": ETA})
    result = sampler.run(problem, x_T=x)
    moves = [(visit.t, visit.u) for visit in result.trace[0]]
    error = float((result.images - flow(prior, x, moves[0][0], -1)).norm())
    bound = 0.0
    for t, u in moves:
        factor, then = gain(prior, t, u), flow(prior, x, t, u)
        mean = prior.gaussian.mean
        step = prior.schedule.abar(u).sqrt() * mean + factor * (x - prior.schedule.abar(t).sqrt() * mean)
        bound = float(factor.abs().max()) * bound + float((then - step).norm())
        x = then
    return len(moves), error, bound, share_lengthened([float(visit.U or 0) for visit in result.trace[0]], ETA, budget)


def share_lengthened(uncertainties: Sequence[float], eta: float, budget: float) -> float:
    """The share of visited steps in which eta B / U_t is less than one step, and SATP takes a whole one."""
    return sum(value > eta * budget for value in uncertainties) / len(uncertainties)


def share_on_photographs() -> str:
    """The same in the records of Figure 7, runs on photographs, as a sentence."""
    records = [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]
    satp = records[0]["asked"]["plugins"][0]
    values = [visit[2] for record in records for visit in record["trace"]]
    share = 100 * share_lengthened(values, satp["eta"], satp["budget"])
    setting = f"B = {satp['budget']}, eta {satp['eta']}"
    return f"{len(records)} runs on photographs, {setting}: {share:.1f} % of {len(values)} visited steps"


def main() -> None:
    prior = make_prior(1000)
    print("| B (T = 100, eta 4) | calls | error | Gronwall bound | bound / error | steps that max{1, .} lengthens |")
    print("| --- | --- | --- | --- | --- | --- |")
    for budget in (0.0, 0.001, 0.005, 0.01, 0.05, 0.1):
        calls, error, bound, longer = measure(prior, 100, budget)
        print(f"| {budget:g} | {calls} | {error:.4f} | {bound:.4f} | {bound / error:.2f} | {100 * longer:.1f} % |")
    print(f"\n{share_on_photographs()} are lengthened.")
    fine = make_prior(10_000)
    print("\n| T (B = 0) | error: the floor |\n| --- | --- |")
    for steps in (100, 1000, 10_000):
        print(f"| {steps} | {measure(fine, steps, 0.0)[1]:.6f} |")
    print("\n| B (T = 10000, eta 4) | calls | error |\n| --- | --- | --- |")
    for budget in (0.1, 0.01, 0.001, 0.0):
        calls, error, _, _ = measure(fine, 10_000, budget)
        print(f"| {budget:g} | {calls} | {error:.6f} |")
    rates = [(spread(prior, t + 1).log() - spread(prior, t).log()).abs().max() / 2 for t in range(999)]
    slope = float(torch.stack(rates).max())
    print(f"\nL = {slope:.4f} per time step, T = 990: (e^(LT) - 1) / L = {math.expm1(slope * 990) / slope:.1e}\n")
    start = torch.randn(1, *SHAPE, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    print("| t | U_t | rms x'' | rms x'' / U_t |\n| --- | --- | --- | --- |")
    for t in (980, 800, 600, 400, 200, 100, 50, 10):
        before, here, after = (flow(prior, start, 990, t + shift) for shift in (1, 0, -1))
        bend = float((before - 2 * here + after).square().mean().sqrt())
        variance = prior.predict(here, torch.tensor([t])).variance
        assert variance is not None
        mean = float(variance.mean())
        print(f"| {t} | {mean:.2e} | {bend:.2e} | {bend / mean:.2e} |")


if __name__ == "__main__":
    main()
