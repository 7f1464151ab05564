from pathlib import Path

import pytest
from experiments import search

from leader import presets
from leader.bench.records import Store
from leader.bench.schema import parse_toml
from leader.engines import make_engine
from leader.methods import METHODS, make_method
from leader.plugins import BUNDLES, make_plugin
from leader.presets.stored import format_entry
from tests.bench.tiny import tiny

FOLDER = Path(__file__).parents[2] / "experiments"


def test_every_host_has_ranges_whose_points_it_accepts() -> None:
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


def test_a_search_finds_the_best_of_its_trials_and_never_loses_to_the_presets(tmp_path: Path) -> None:
    cells = tiny(tmp_path).restricted("DDPG", "Motion").cells()
    store = Store(tmp_path / "records", "search")
    ranges = parse_toml(FOLDER / "search.toml")["ddpg"]
    best, tried = search.search(cells, ranges, 5, store, make_engine())
    assert len(tried) == 5 and tried[0].settings == {}
    assert best.score == max(trial.score for trial in tried) >= tried[0].score
    again, _ = search.search(cells, ranges, 5, Store(tmp_path / "records", "search"), make_engine())
    assert again == best


def test_too_many_calls_are_not_eligible(tmp_path: Path) -> None:
    cells = tiny(tmp_path).restricted("DDNM + SATP", "Motion").cells()[:1]
    store = Store(tmp_path / "records", "search")
    ranges = {"satp": {"eta": {"choices": [0.0, 3.0]}}}
    best, tried = search.search(cells, ranges, 8, store, make_engine(), calls_limit=4)
    assert max(trial.calls for trial in tried) == 5 and best.calls <= 4
    slow = [search._with(cell, {"satp": {"eta": 0.0}}) for cell in cells]
    best, tried = search.search(slow, ranges, 8, store, make_engine(), calls_limit=4)
    assert tried[0].calls == 5 and best == max(tried, key=lambda trial: trial.score), "what trial 0 may, others may"


def test_found_settings_are_a_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"eta": 0.5, "ucpm": {"phi": "tv", "lam": 0.1}}
    file = tmp_path / "found.toml"
    where = {"prior": "pyramid", "method": "ddnm", "task": "sr-bicubic", "noise": 0.05}
    file.write_text(format_entry({**where, "settings": found, "source": "search"}))
    entries = tuple(parse_toml(file)["preset"])
    monkeypatch.setattr(presets, "entries", lambda: entries)
    assert presets.find("pyramid", "ddnm", "sr-bicubic", 0.05) == found
    assert presets.find("pyramid", "ddnm", "sr-bicubic", 0.0) == {}
