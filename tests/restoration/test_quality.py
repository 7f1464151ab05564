"""Quality and look in a restoration: what they choose, and what wins over them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from leader import Problem
from leader.errors import UsageError
from leader.operators import Inpainting
from leader.presets.paths import RunPath, find_path
from leader.restoration import choice
from leader.restoration.choice import Choice
from leader.restoration.restore import Preparation, prepare
from leader.schedule import quadratic_grid, uniform_grid
from tests.cheap_prior import CheapPrior, photograph


class Named(CheapPrior):
    """A prior that costs nothing, under the name whose paths were measured."""

    name = "embedded"


def ready(**choices: Any) -> Preparation:
    return prepare(photograph(24, 32), "denoise", sigma=0.05, prior=Named(), **choices)


def coloured(**choices: Any) -> Preparation:
    return prepare(photograph(24, 32), "colourise", sigma=0.05, prior=Named(), **choices)


def test_noise_is_removed_directly_by_every_quality_and_the_look_says_how_far() -> None:
    for quality in ("draft", "standard", "best"):
        assert ready(quality=quality).plan.grid.visits == 3 + 3
        assert ready(quality=quality, look="faithful").plan.grid.visits == 3 + 1
        assert ready(quality=quality).same == ("draft", "standard", "best")
    assert ready(plugins=()).plan.grid.visits == 21


def test_who_asks_for_a_word_that_changes_nothing_is_told() -> None:
    same = "The qualities draft, standard and best are the same for denoising here."
    assert [ready(quality=quality).notes for quality in (None, "draft", "standard", "best")] == [(), (same,), (), (same,)]
    assert ready(look="faithful").notes == ready(look="natural").notes == () == ready(quality="best", steps=5).notes
    assert ready(method="ddnm").notes == () == ready(method="ddnm").same
    small = prepare(photograph(24, 32), "sr", sigma=0.05, prior=Named(), quality="best", down="bicubic")
    assert small.notes[-1] == "The qualities standard and best are the same for super-resolution here."
    grey = prepare(photograph(24, 32), "colourise", sigma=0.05, prior=Named(), quality="draft", look="faithful")
    assert grey.notes[1:] == ("The looks natural and faithful are the same for colourisation here.",)
    assert grey.same == ("draft",)
    clean = prepare(photograph(24, 32), "denoise", sigma=0.0, prior=Named(), quality="best")
    assert clean.notes == () and clean.plan.settings["steps"] == 1, "nothing is to be done, whatever the words"


def test_quality_and_look_choose_method_grid_and_steps() -> None:
    for quality in ("draft", "standard", "best"):
        path, plan = find_path("embedded", "colourise", 0.05, quality, "natural"), coloured(quality=quality).plan
        assert (plan.method.name, plan.settings["steps"]) == (path.method, path.steps)
        assert len(plan.grid.times) == path.steps + 1 and not plan.grid.uniform  # the quadratic grid
    small = prepare(photograph(24, 32), "sr", sigma=0.05, prior=Named(), look="faithful").plan
    assert small.method.name == "projdiff" and small.plugins == ()


def test_what_is_given_wins() -> None:
    assert ready(steps=7).plan.settings["steps"] == 7
    assert [item.name for item in ready(plugins="satp").plan.plugins] == ["satp"]
    assert ready(settings={"eta": 0.25}).plan.settings["method"]["eta"] == 0.25
    assert coloured(settings={"grid": "uniform"}).plan.grid.uniform
    by_name = ready(method="ddrm").plan
    assert by_name.method.name == "ddrm" and by_name.settings["steps"] == 100 and by_name.grid.uniform
    assert [item.name for item in by_name.plugins] == ["ucdc", "satp"]


def test_a_method_and_a_quality_exclude_each_other() -> None:
    for given in ({"quality": "best"}, {"look": "faithful"}):
        with pytest.raises(UsageError, match="not both"):
            ready(method="ddnm", **given)
    with pytest.raises(UsageError, match="did you mean 'draft'"):
        ready(quality="drafd")


@pytest.mark.parametrize("kept", [0.25, 0.5])
def test_the_path_of_a_mask_depends_on_how_much_it_leaves(kept: float) -> None:
    """A batch counts as its fullest mask."""
    masks = torch.zeros(2, 1, 16, 32)
    masks[0, ..., :4], masks[1, ..., : int(32 * kept)] = 1, 1
    problem = Problem.internal(torch.zeros(2, 3, 16, 32), Inpainting((3, 16, 32), masks))
    assert Choice(Named()).path(problem) == find_path("embedded", "inpaint", 0.0, "standard", "natural", kept)
    assert (Choice(Named()).path(problem).settings["step"] == 1.85) == (kept < 0.3)


def test_a_path_of_single_times_is_visited_and_gives_way_to_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    path = RunPath("ddnm", 3, "a test", "quadratic", times=(900, 200, 10, -1))
    monkeypatch.setattr(choice, "find_path", lambda *_: path)
    assert ready().plan.grid.times == (900, 200, 10, -1)
    assert ready(steps=4).plan.grid.times == quadratic_grid(4).times
    assert ready(settings={"grid": "uniform"}).plan.grid.times == uniform_grid(3).times


def test_a_path_may_ask_for_the_mean_of_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "find_path", lambda *_: RunPath("ddnm", 2, "a test", average=3))
    assert ready().average == 3 and ready(ids=5).ids == (5, 6, 7)
    assert ready(average=1).average == 1 and ready(method="ddnm").average == 1  # what is given wins
    singles = [ready(average=1, ids=name).run().result.images for name in range(3)]
    assert torch.allclose(ready().run().result.images, torch.stack(singles).mean(0), atol=1e-6)


def test_settings_of_a_path_s_plugin_go_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    path = RunPath("ddnm", 5, "a test", "quadratic", ("leader",), {"eta": 0.3, "satp": {"budget": 0.1}})
    monkeypatch.setattr(choice, "find_path", lambda *_: path)
    assert [getattr(item, "budget", None) for item in ready().plan.plugins] == [None, 0.1]
    without = ready(plugins=()).plan
    assert without.plugins == () and without.settings["method"]["eta"] == 0.3


def test_who_replaces_the_plug_ins_keeps_the_settings_of_those_that_belong_to_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"cells": {"inner": 0.5}, "satp": {"budget": 0.5}}
    monkeypatch.setattr(choice, "find_path", lambda *_: RunPath("ddnm", 3, "a test", None, ("cells", "satp"), settings))
    problem = ready().problem
    replaced = Choice(Named(), plugins=("ucpm",)).sampler(problem, ("cells",)).choices
    assert replaced.of_plugins == {"cells": {"inner": 0.5}}
    assert [getattr(item, "name", item) for item in replaced.plugins] == ["ucpm", "cells"]
    assert Choice(Named()).sampler(problem, ("cells",)).choices.of_plugins == settings
