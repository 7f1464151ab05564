"""A restoration in words: what reaches `prepare`, the same for every door, and what is refused."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leader.errors import UsageError
from leader.restoration import restore
from leader.restoration.request import RestoreRequest, Word, parse_word
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
