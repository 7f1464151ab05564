"""What is counted: calls, backward passes and forward derivatives apart, image by image, for every method."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from leader import Result, Sampler
from leader.methods import METHODS
from tests.oracle.scenes import IDS, Scene, scene

STEPS = 5
INNER = 4
PLAIN = ("ddim", "ddnm", "ddrm", "diffpir", "ddpg", "idpg", "pirp", "posterior", "red-diff", "repaint")
PER_STEP: dict[str, tuple[int, int, int]] = {
    **dict.fromkeys(PLAIN, (1, 0, 0)),
    **dict.fromkeys(("dps", "mcg", "pigdm"), (1, 1, 0)),
    "daps": (5, 0, 0),
    "dcdp": (20, 0, 0),
    "projdiff": (1, 0, 1),
    "sitcom": (INNER, INNER - 1, 0),
}
"""Calls and backward passes per visited time, and calls at the start, by the methods' papers."""


def run(made: Scene, method: str, plugins: Any = (), estimator: str | None = None, **given: Any) -> Result:
    settings: dict[str, Any] = {"inner": INNER, "margin": 0.0, "rate": 1e-4} if method == "sitcom" else {}
    steps = given.pop("steps", STEPS)
    sampler = Sampler(made.prior, method, plugins, steps, estimator=estimator, use_presets=False, **settings, **given)
    return sampler.run(made.problem, ids=IDS)


@pytest.mark.parametrize("sigmas", [(0.0, 0.0), (0.05, 0.05)])
@pytest.mark.parametrize("method", METHODS)
def test_counts_per_image(method: str, sigmas: tuple[float, float]) -> None:
    made = scene("cs", sigmas)
    result = run(made, method)
    forward, backward, start = PER_STEP[method]
    assert set(result.ledger.rows) == set(IDS)
    for row in result.ledger.rows.values():
        assert row.calls == forward * STEPS + start
        assert (row.backwards, row.jvps) == (backward * STEPS, 0)
        assert row.pixels == 16 * row.calls
    total = result.ledger.total
    assert (total.calls, total.backwards) == (2 * (forward * STEPS + start), 2 * backward * STEPS)
    cost = METHODS[method](**({"inner": INNER} if method == "sitcom" else {})).cost
    assert (cost.forward, cost.backward, cost.start) == (forward, backward, start), "what the method said before"


@pytest.mark.parametrize("method", ["ddnm", "dps", "sitcom"])
@pytest.mark.parametrize(
    ("estimator", "probes", "jvps"), [("hutchinson", 1, 1), ("hutchinson", 3, 3), ("noise-energy", 1, 0), ("head", 1, 0)]
)
def test_estimators_are_counted_apart(method: str, estimator: str, probes: int, jvps: int) -> None:
    """Sigma costs derivatives, no calls and no backward passes."""
    made = scene("cs", (0.05, 0.05))
    plain, found = run(made, method), run(made, method, estimator=estimator, probes=probes)
    for image in IDS:
        before, after = plain.ledger.rows[image], found.ledger.rows[image]
        assert after.jvps == jvps * STEPS
        assert (after.calls, after.backwards, after.pixels) == (before.calls, before.backwards, before.pixels)
    assert torch.equal(plain.images, found.images), "and changes no picture by itself"


@pytest.mark.parametrize("method", ["ddnm", "dps", "sitcom", "projdiff"])
def test_images_are_counted_for_themselves(method: str) -> None:
    """With SATP each image has its own number of visits; in a batch it counts what it counts alone."""
    made = scene("cs", (0.05, 0.05))
    options: dict[str, Any] = {"steps": 20, "satp": {"budget": 0.05, "eta": 4.0}}
    together = run(made, method, ("satp",), **options)
    visits = [len(together.trace[image]) for image in IDS]
    assert visits[0] != visits[1], visits
    forward, backward, start = PER_STEP[method]
    for row, image in enumerate(IDS):
        counts = together.ledger.rows[image]
        assert (counts.calls, counts.backwards) == (forward * visits[row] + start, backward * visits[row])
    made.prior.one_by_one = False
    assert run(made, method, ("satp",), **options).ledger.rows == together.ledger.rows
