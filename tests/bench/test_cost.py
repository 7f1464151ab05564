"""What a run is said to cost, against what it counts."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from leader.bench import setup
from leader.bench.cell import Frozen
from leader.bench.running import run_cell
from leader.bench.setup import cost_of, plan_of, work_of
from leader.schedule import Grid
from tests.bench.tiny import tiny


@pytest.mark.parametrize("method", ["ddnm", "dps", "projdiff", "sitcom"])
def test_the_cost_is_what_a_run_counts(tmp_path: Path, method: str) -> None:
    cell = tiny(tmp_path).cells()[0].altered(method=method, plugins=(), steps=3, estimator=None)
    if method == "sitcom":
        cell = cell.altered(settings=Frozen({"inner": 4}))
    bill, record = cost_of(cell), run_cell(cell).record
    assert (bill.calls, bill.backwards) == (record["calls"], record["backwards"])
    assert bill.passes == pytest.approx(record["work"] + 2 * record["backwards"]), "a backward pass counts twice"
    assert work_of(record) == pytest.approx(bill.passes, rel=1e-3), "and does so in tables"


def test_derivatives_for_sigma_are_on_the_bill(tmp_path: Path) -> None:
    cell = tiny(tmp_path).cells()[0].altered(plugins=("satp",), settings=Frozen({"satp": {"budget": 0.0}, "probes": 3}))
    cell = cell.altered(steps=4, estimator="hutchinson")
    bill, record = cost_of(cell), run_cell(cell).record
    assert bill.jvps == record["jvps"] == 12 and bill.calls == 4
    assert bill.passes == pytest.approx(4 + 2 * 12) and work_of(record) == pytest.approx(bill.passes, rel=1e-3)


@pytest.mark.parametrize(("reverse", "counts"), [(False, (5, 6, 0)), (True, (7, 0, 6))])
def test_probes_of_some_visits_are_on_the_bill(tmp_path: Path, reverse: bool, counts: tuple[int, int, int]) -> None:
    """Five steps, probes at visits 0 and 3; by reverse mode each time costs a call too."""
    table = Frozen({"name": "hutchinson", "probes": 3, "every": 3, "reverse": reverse})
    cell = tiny(tmp_path).cells()[0].altered(plugins=("satp",), settings=Frozen({"satp": {"budget": 0.0}}))
    cell = cell.altered(steps=5, estimator=table)
    bill, record = cost_of(cell), run_cell(cell).record
    assert (bill.calls, bill.jvps, bill.backwards) == (record["calls"], record["jvps"], record["backwards"]) == counts
    assert bill.passes == pytest.approx(counts[0] + 2 * 6) and work_of(record) == pytest.approx(bill.passes, rel=1e-3)
    assert record["asked"]["estimator"] == {**table.plain(), "window": 7, "seed": 0, "memory": 0.0}


def test_passes_follow_the_work_of_the_prior_and_the_times_visited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ProjDiff asks once more at the first time; a prior that is cheap while the noise is high; a way that goes up again."""
    recipe = tiny(tmp_path).cells()[0].altered(method="projdiff", plugins=(), steps=4).recipe
    plan = replace(plan_of(recipe)[0], grids=(Grid((900, 900, 500, 700, 0, -1)),))
    sloping = SimpleNamespace(work=lambda t, height, width: height * width * (1 - t / 1000))
    monkeypatch.setattr(setup, "plan_of", lambda _: (plan, sloping))
    bill = setup._cost(replace(recipe, seed=12345))  # costs are remembered by recipe
    assert bill.calls == 5 and bill.passes == pytest.approx(0.1 + 0.1 + 0.3 + 1.0 + 0.1)
