"""What a restoration is asked for: words that reach `prepare`, the same for every door; quality and look."""

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from leader import Problem
from leader.errors import UsageError
from leader.operators import Inpainting
from leader.presets.paths import RunPath, find_path
from leader.restoration import choice, restore
from leader.restoration.choice import Choice
from leader.restoration.request import RestoreRequest, Word, parse_word
from leader.restoration.restore import Preparation, prepare
from leader.schedule import quadratic_grid, uniform_grid
from tests.cheap_prior import CheapPrior, photograph


def test_what_is_left_open_is_left_out() -> None:
    known = inspect.signature(restore.prepare).parameters
    assert all(known[name].default == value for name, value in RestoreRequest().arguments().items() if value)
    assert RestoreRequest().arguments() == {"prior": "embedded", "seed": 0, "settings": {}}
    given = RestoreRequest("sr", 0.0, factor=2, jpeg=False, options={"ratio": 0.5}).arguments()
    assert given == {
        "task": "sr",
        "sigma": 0.0,
        "factor": 2,
        "jpeg": False,
        "options": {"ratio": 0.5},
        "prior": "embedded",
        "seed": 0,
        "settings": {},
    }


def test_budget_and_estimator_win_over_the_settings() -> None:
    file: dict[str, Any] = {"eta": 0.0, "estimator": "noise-energy", "satp": {"budget": 9.0, "eta": 3.0}}
    asked = RestoreRequest(plugins=("leader",), budget=0.05, estimator="hutchinson", settings=file).arguments()
    assert asked["settings"] == {"eta": 0.0, "estimator": "hutchinson", "satp": {"budget": 0.05, "eta": 3.0}}
    assert file["satp"]["budget"] == 9.0, "the file's content is not changed"
    assert RestoreRequest(estimator="none", settings=file).arguments()["settings"]["estimator"] is None
    assert RestoreRequest(settings=file).arguments()["settings"] == file


def test_a_budget_belongs_to_a_plug_in_that_paces() -> None:
    alone = RestoreRequest(budget=0.05).arguments()
    assert alone["plugins"] == ("leader",) and alone["settings"] == {"satp": {"budget": 0.05}}
    paper = RestoreRequest(plugins=("leader-paper",), budget=0.05).arguments()
    assert paper["settings"] == {"satp-paper": {"budget": 0.05}}
    for wrong in (("equs", "ucpm-paper"), ()):
        with pytest.raises(UsageError, match="belongs to the plug-in"):
            RestoreRequest(plugins=wrong, budget=0.05).arguments()
    for number in (-1.0, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="finite"):
            RestoreRequest(budget=number).arguments()


def test_none_stands_alone() -> None:
    assert [RestoreRequest(plugins=names).plugins for names in ("none", ["none"], None)] == [(), (), None]  # type: ignore[arg-type]
    assert RestoreRequest(plugins="satp").plugins == ("satp",)  # type: ignore[arg-type]
    for names in (["none", "satp"], ["satp", "none"], ["none", "none"]):
        with pytest.raises(UsageError, match="stands alone"):
            RestoreRequest(plugins=names)  # type: ignore[arg-type]


def test_other_options_take_their_fields_or_stay_options() -> None:
    request = RestoreRequest("sr", 0.1, factor=2).with_options({"task": "cs", "ratio": 0.5, "seed": 4})
    assert request == RestoreRequest("cs", 0.1, factor=2, seed=4, options={"ratio": 0.5})
    assert request.with_options({"order": "random"}).options == {"ratio": 0.5, "order": "random"}


def test_a_run_asks_for_itself_again() -> None:
    words = {"prior": CheapPrior(), "seed": 5, "steps": 3, "method": "ddnm", "plugins": ("satp",), "kernel": "gaussian:1"}
    first = restore.restore(photograph(16, 24), "deblur", sigma=0.1, kernel_doubt=0.2, **words)  # type: ignore[arg-type]
    summary = {**first.summary(), "prior": {"source": "embedded", "sha256": None}, "dtype": "float32"}
    request = RestoreRequest.from_run(summary)
    assert (request.task, request.seed, request.steps, request.plugins) == ("deblur", 5, 3, ("satp",))
    again = request.prepare(photograph(16, 24), prior=CheapPrior(), dtype=None).run()
    assert np.array_equal(again.array, first.array)


def test_files_are_read_once_and_names_of_priors_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("k.npy", np.outer([1.0, 2.0, 1.0], [1.0, 3.0, 1.0]))
    Path("model.pt").write_bytes(b"")
    read = RestoreRequest(kernel="k.npy", mask="auto", prior="model.pt").read_files()
    Path("k.npy").unlink()
    assert np.asarray(read.kernel).shape == (3, 3) and read.mask == "auto" and read.prior == str(tmp_path / "model.pt")
    plain = RestoreRequest(kernel="motion:3", mask="random:0.5")
    assert plain.read_files() == plain


def test_every_choice_has_a_word() -> None:
    inner = {"settings", "ids", "options"}
    for item in fields(RestoreRequest):
        assert (item.name in inner) is not isinstance(item.metadata.get("word"), Word), item.name
    for item in fields(RestoreRequest):
        listed = item.metadata["word"].names if item.name not in inner else None
        assert listed is None or len(listed()) >= 3


def test_fields_of_a_form() -> None:
    assert (parse_word("seed", 3.0), parse_word("seed", None), parse_word("seed", " ")) == (3, None, None)
    assert (parse_word("steps", "12"), parse_word("sigma", "0,25"), parse_word("budget", "")) == (12, 0.25, None)
    assert parse_word("method", "ddnm") == "ddnm"
    for name, wrong in (("seed", "2.5"), ("seed", -1), ("seed", 2**31)):
        with pytest.raises(UsageError, match="whole number from"):
            parse_word(name, wrong)
    for word in ("many", "nan", [1]):
        with pytest.raises(UsageError, match="The budget must be a number; found"):
            parse_word("budget", word)
    for name in ("method", "prior", "estimator", "task"):
        with pytest.raises(UsageError, match="from a list"):  # visitors of the page have nothing imported
            parse_word(name, "this:zen")


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
    masks[0, ..., :1], masks[1, ..., : int(32 * kept)] = 1, 1
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
    given = ready(settings={"satp": {"eta": 3.0}, "eta": 0.4}).plan
    assert [getattr(item, "budget", None) for item in given.plugins] == [None, 0.1], "what was not given stays"
    assert getattr(given.plugins[1], "eta", None) == 3.0 and given.settings["method"]["eta"] == 0.4


def test_who_replaces_the_plug_ins_keeps_the_settings_of_those_that_belong_to_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"cells": {"inner": 0.5}, "satp": {"budget": 0.5}}
    monkeypatch.setattr(choice, "find_path", lambda *_: RunPath("ddnm", 3, "a test", None, ("cells", "satp"), settings))
    problem = ready().problem
    replaced = Choice(Named(), plugins=("ucpm",)).sampler(problem, ("cells",)).choices
    assert replaced.of_plugins == {"cells": {"inner": 0.5}}
    assert [getattr(item, "name", item) for item in replaced.plugins] == ["ucpm", "cells"]
    assert Choice(Named()).sampler(problem, ("cells",)).choices.of_plugins == settings
