"""Super-resolution to any size: the size that was asked for, the operator that belongs to it, and the same again."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from leader.errors import LeaderError
from leader.operators import build_task
from leader.restoration.request import RestoreRequest
from leader.restoration.restore import prepare, restore
from tests.cheap_prior import CheapPrior, photograph
from tests.restoration.repeating import repeat


@pytest.mark.parametrize(
    ("asked", "expected"),
    [({"factor": 1.5}, (30, 36)), ({"factor": 2.3}, (46, 55)), ({"size": "33x71"}, (33, 71)), ({"size": (20, 49)}, (20, 49))],
)
def test_the_result_has_the_size_asked_for(asked: dict[str, Any], expected: tuple[int, int]) -> None:
    small = photograph(24, 20)
    done = restore(small, "sr", sigma=0.02, down="lanczos", steps=3, prior=CheapPrior(), check=False, **asked)
    assert done.picture.size == expected == RestoreRequest(**asked).find_size((20, 24))
    operator = build_task("sr", (3, expected[1], expected[0]), down="lanczos", small=(24, 20))
    x = torch.rand(1, 3, expected[1], expected[0], generator=torch.Generator().manual_seed(1))
    ready = prepare(small, "sr", sigma=0.02, down="lanczos", prior=CheapPrior(), **asked)
    assert torch.equal(ready.problem.operator.A(x), operator.A(x))


def test_a_side_that_is_left_out_keeps_proportions_and_others_are_told() -> None:
    wide = photograph(16, 24)
    for size, expected in (("60x", (60, 40)), ("x40", (60, 40)), ((48, 32), (48, 32))):
        ready = prepare(wide, "sr", sigma=0.02, size=size, prior=CheapPrior())
        assert ready.size == expected and not any("proportions" in note for note in ready.notes)
    stretched = prepare(wide, "sr", sigma=0.02, size="60x60", prior=CheapPrior())
    assert stretched.size == (60, 60) and any("60x40" in str(getattr(note, "remedy", "")) for note in stretched.notes)


def test_a_run_to_a_size_is_repeated() -> None:
    _, again, _ = repeat(photograph(16, 20), "sr", size="33x21", steps=3)
    assert again.picture.size == (33, 21)


@pytest.mark.parametrize(
    "asked",
    [
        *({"factor": factor} for factor in (0.5, 17, float("nan"))),
        *({"size": size} for size in ("10x10", "big", "x", "0x40", (40,), "-40x40", "9999x20", f"{'9' * 5000}x40")),
        {"size": "40x40", "factor": 2},
    ],
)
def test_nonsense_is_refused_in_one_sentence(asked: dict[str, Any]) -> None:
    with pytest.raises(LeaderError) as caught:
        prepare(photograph(16, 20), "sr", sigma=0.02, prior=CheapPrior(), **asked)
    assert len(str(caught.value).splitlines()) == 1
