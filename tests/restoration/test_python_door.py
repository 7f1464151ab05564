"""What Python users meet first: keywords, lists, the attributes of a diagnosis, former names."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch

import leader
from leader.errors import UsageError
from leader.restoration.request import parse_word
from leader.restoration.restore import RestoreChoices, prepare
from leader.uncertainty.estimators import present_name
from tests.cheap_prior import photograph


def test_restore_shows_the_keywords_of_prepare() -> None:
    shared = set(inspect.signature(prepare).parameters)
    assert shared - {"image", "task"} == set(RestoreChoices.__annotations__)
    assert shared < set(inspect.signature(leader.restore).parameters)
    with pytest.raises(UsageError, match="did you mean 'quality'"):
        leader.restore(photograph(), "denoise", qualty="draft")  # type: ignore[call-arg]


@pytest.mark.parametrize("nothing", [None, b"\x89PNG"])
def test_what_cannot_be_a_picture_is_named(nothing: Any) -> None:
    with pytest.raises(UsageError, match=f"found {type(nothing).__name__}"):
        leader.restore(nothing, "denoise")


def test_a_list_of_pictures_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="list of 2"):
        leader.restore([Path("a.png"), "b.png"], "denoise")  # type: ignore[arg-type]


def test_a_diagnosis_has_attributes() -> None:
    noisy = photograph(96, 128) + 0.08 * torch.randn(3, 96, 128, generator=torch.Generator().manual_seed(1))
    found = leader.diagnose(noisy)
    assert found.task == "denoise" and found.size == (128, 96) and found.noise_level == pytest.approx(0.08, rel=0.3)
    assert found.kernel is None and found.jpeg_quality is None and found.defects == () and found.missing == 0


def test_former_names_warn_and_work() -> None:
    with pytest.warns(DeprecationWarning, match="noise-energy"):
        assert present_name("fisher") == "noise-energy"


def test_visitors_of_the_page_have_nothing_imported() -> None:
    for name in ("method", "prior", "estimator", "task"):
        with pytest.raises(UsageError, match="from a list"):
            parse_word(name, "this:zen")
    assert parse_word("kernel", "gaussian:1.5") == "gaussian:1.5" and parse_word("method", "ddnm") == "ddnm"
