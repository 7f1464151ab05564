"""LEADer's settings with each host are those that its recorded trials found (experiments/searches/leader-hosts.jsonl)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leader import presets
from leader.bench.experiment import load_tasks

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
HOSTS = ("ddpg", "ddrm", "diffpir", "dps", "idpg", "pirp", "projdiff", "sitcom")
"""All but DDNM, whose trials are in leader.jsonl."""
OPERATORS = {"sr": "sr-bicubic"}
"""What the presets call a task where experiments call it otherwise."""
PARTS = ("ucpm", "satp")
TRIALS = 6
SAVED = 0.01
"""The share of the calls that a setting must save, unless what was set before saves less."""

NOTHING = 0.01
"""A gain that changes nothing: what was set before stays."""


def trials(method: str, label: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The host without LEADer, and all trials with it, in order."""
    lines = (EXPERIMENTS / "searches" / "leader-hosts.jsonl").read_text(encoding="utf-8").splitlines()
    found = [row for row in map(json.loads, lines) if (row["method"], row["task"]) == (method, label)]
    (host,) = (row for row in found if not row["plugins"])
    return host, [row for row in found if row["plugins"] == "leader"]


@pytest.mark.parametrize("task", load_tasks(EXPERIMENTS / "tasks.toml"), ids=lambda task: task.label)
@pytest.mark.parametrize("method", HOSTS)
def test_the_preset_is_the_best_of_the_hosts_own_trials(method: str, task: Any) -> None:
    host, tried = trials(method, task.label)
    assert [row["trial"] for row in tried] == list(range(TRIALS)) and tried[0]["settings"] == {}
    limit = max((1 - SAVED) * host["calls"], tried[0]["calls"])
    best = max((row for row in tried if row["calls"] <= limit), key=lambda row: row["score"])
    assert [row for row in tried if row["best"]] == [best]
    name = OPERATORS.get(task.name, task.name)
    entries = [item for item in presets.entries() if (item.get("prior"), item["method"]) == ("embedded", method)]
    (entry,) = (item for item in entries if item["task"] == name and (item["noise"] == "none") == (task.sigma == 0))
    own = {part: entry["settings"][part] for part in PARTS}
    assert "LEADer" in entry["source"] and entry["source"].startswith("ours: ")
    assert (best["score"] > tried[0]["score"] + NOTHING) == (own == best["settings"]) != ("stays" in entry["source"])
    found = presets.find("embedded", method, name, task.sigma)
    assert {part: {key: found[part][key] for key in own[part]} for part in PARTS} == own, "nothing else wins over it"
    assert found["satp"]["eta"] == 0.7 and found["ucpm"]["phi"] == "tv"
