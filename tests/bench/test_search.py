from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from leader import presets
from leader.bench.records import Store
from leader.bench.schema import parse_toml
from leader.engines import make_engine
from leader.methods import METHODS, make_method
from leader.plugins import BUNDLES, make_plugin
from tests.bench.tiny import tiny

FOLDER = Path(__file__).parents[2] / "experiments"


@pytest.fixture(scope="module")
def search() -> ModuleType:
    spec = importlib.util.spec_from_file_location("experiments_search", FOLDER / "search.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_host_has_ranges_whose_points_it_accepts(search: ModuleType) -> None:
    ranges = parse_toml(FOLDER / "search.toml")
    del ranges["with"]
    assert set(ranges) - set(BUNDLES) == set(METHODS) - {"ddim"}
    for name, bounds in ranges.items():
        for number in range(20):
            point = search.draw(bounds, f"{name}/{number}")
            assert point == search.draw(bounds, f"{name}/{number}")
            if name in BUNDLES:
                for plugin, settings in point.items():
                    make_plugin(plugin, settings)
            else:
                make_method(name, point)


def test_values_to_be_tried_each_come_in_turn_and_leave_the_other_draws_alone(search: ModuleType) -> None:
    ranges = {"ucpm": {"lam": {"low": 0.0, "high": 1.0}}, "satp": {"budget": {"each": [0.1, 0.2, 0.3]}}}
    points = [search.draw(ranges, f"{turn}", turn) for turn in range(1, 6)]
    assert [point["satp"]["budget"] for point in points] == [0.1, 0.2, 0.3, 0.1, 0.2]
    alone = [search.draw({"ucpm": ranges["ucpm"]}, f"{turn}") for turn in range(1, 6)]
    assert [point["ucpm"] for point in points] == [point["ucpm"] for point in alone]


def test_leader_is_searched_in_the_hosts_own_ranges(search: ModuleType) -> None:
    """Every host but DDNM has budgets of its own, five of them; what it does not say is as for all."""
    ranges = parse_toml(FOLDER / "search.toml")
    hosts = set(METHODS) - {"ddim", "ddnm"}
    assert set(ranges["with"]) == hosts
    for host in hosts:
        bounds = search.ranges_of(ranges, host, "leader")
        assert bounds["ucpm"] == ranges["leader"]["ucpm"]
        budgets = [search.draw(bounds, f"{turn}", turn)["satp"]["budget"] for turn in range(1, 6)]
        assert budgets == sorted(set(budgets)) == ranges["with"][host]["leader"]["satp"]["budget"]["each"]
    assert search.ranges_of(ranges, "ddnm", "leader") == ranges["leader"]
    assert search.ranges_of(ranges, "ddpg", "leader-paper") == ranges["leader-paper"]


def test_a_search_finds_the_best_of_its_trials_and_never_loses_to_the_presets(search: ModuleType, tmp_path: Path) -> None:
    cells = tiny(tmp_path).restricted("DDPG", "Motion").cells()
    store, goal = Store(tmp_path / "records", "search"), search.Goal()
    ranges = parse_toml(FOLDER / "search.toml")["ddpg"]
    best, tried = search.search(cells, ranges, 5, goal, store, make_engine())
    assert len(tried) == 5 and tried[0].settings == {}
    assert best.score == max(trial.score for trial in tried) >= tried[0].score
    again, _ = search.search(cells, ranges, 5, goal, Store(tmp_path / "records", "search"), make_engine())
    assert again == best


def test_too_many_calls_are_not_eligible(search: ModuleType, tmp_path: Path) -> None:
    cells = tiny(tmp_path).restricted("DDNM + SATP", "Motion").cells()[:1]
    store, goal = Store(tmp_path / "records", "search"), search.Goal("both")
    ranges = {"satp": {"eta": {"choices": [0.0, 3.0]}}}
    best, tried = search.search(cells, ranges, 8, goal, store, make_engine(), calls_limit=4)
    assert max(trial.calls for trial in tried) == 5 and best.calls <= 4
    slow = [search._with(cell, {"satp": {"eta": 0.0}}) for cell in cells]
    best, tried = search.search(slow, ranges, 8, goal, store, make_engine(), calls_limit=4)
    assert tried[0].calls == 5 and best == max(tried, key=lambda trial: trial.score), "what trial 0 may, others may"


def test_found_settings_are_a_preset(search: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"eta": 0.5, "ucpm": {"phi": "tv", "lam": 0.1}}
    file = tmp_path / "found.toml"
    file.write_text(search.preset_entry("pyramid", "ddnm", "sr-bicubic", 0.05, found, "search"))
    entries = tuple(parse_toml(file)["preset"])
    monkeypatch.setattr(presets, "entries", lambda: entries)
    assert presets.find("pyramid", "ddnm", "sr-bicubic", 0.05) == found
    assert presets.find("pyramid", "ddnm", "sr-bicubic", 0.0) == {}
