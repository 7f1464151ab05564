"""Figure 2 shows what the loop does, in its order, and who takes part."""

from __future__ import annotations

from pathlib import Path

import pytest

from leader.bench import architecture
from leader.bench.architecture import boxes, draw_architecture
from leader.errors import LeaderError
from leader.methods import METHODS
from leader.plugins import PLUGINS


def test_the_order_is_the_loop_s() -> None:
    found = boxes()
    inside = [box.hook for box in found if box.inside]
    wanted = ["wrap", "estimate", "estimator", "pace", "modulate", "correct", "advance"]
    assert [name for name in inside if name in wanted] == wanted
    members = {box.hook: box.members for box in found}
    assert set(members["correct"]) == set(METHODS) and "hutchinson" in members["estimator"]
    assert {"ucpm", "ucpm-paper"} <= set(members["modulate"]) and "satp" not in members["modulate"]
    assert {"satp", "satp-paper"} <= set(members["pace"]) and {"equs", "equs+"} <= set(members["wrap"])
    named = {name for box in found if box.owner == "plug-in" for name in box.members}
    assert named == set(PLUGINS), "every plug-in acts somewhere"


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_the_same_bytes_twice(tmp_path: Path, suffix: str) -> None:
    first, second = (tmp_path / f"{name}{suffix}" for name in "ab")
    draw_architecture(first)
    draw_architecture(second)
    assert first.read_bytes() == second.read_bytes() and first.stat().st_size > 5_000


def test_a_part_without_words_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delitem(architecture.WORDS, "correct")
    with pytest.raises(LeaderError, match="no words for"):
        boxes()
    with pytest.raises(LeaderError, match="is written as"):
        draw_architecture(tmp_path / "figure.gif")
