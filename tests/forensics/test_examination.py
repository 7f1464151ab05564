"""One examination: everything is computed once, when first asked; not looked for is told from not there."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from leader.forensics import Examination, NotExamined, examination, examine
from leader.forensics.examination import found_or_none
from leader.forensics.findings import collect_findings
from leader.pictures import Picture, from_pil
from leader.restoration.diagnose import diagnose
from leader.restoration.pose import pose_picture
from tests.forensics.fields import colour
from tests.forensics.jpegs import jpeg


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each search was made."""
    counts: Counter[str] = Counter()

    def count(name: str) -> None:
        search = getattr(examination, name)

        def counted(*given: Any, **more: Any) -> Any:
            counts[name] += 1
            return search(*given, **more)

        monkeypatch.setattr(examination, name, counted)

    for name in ("last_compression", "noise_behind", "find_blur", "find_defects", "find_enlargement", "recognise_kernel"):
        count(name)
    return counts


def picture(side: int = 96) -> Picture:
    return from_pil(Image.fromarray(colour(side, 1)[:, : side - 8]))


def test_nothing_is_searched_before_it_is_asked_for_and_everything_once(searched: Counter[str]) -> None:
    seen = examine(picture())
    assert not searched
    for _ in range(2):
        assert seen.compression is None and found_or_none(seen.noise) is not None
        assert seen.blur.blur is None and not seen.defects.kinds and seen.enlargement is None  # type: ignore[union-attr]
    assert set(searched.values()) == {1} and len(searched) == 5


@pytest.mark.parametrize(("task", "options"), [("sr", {"factor": 2}), ("deblur", {"kernel": "gaussian:1"}), ("denoise", {})])
def test_a_task_after_a_diagnosis_searches_nothing_again(task: str, options: Any, searched: Counter[str]) -> None:
    seen = examine(picture())
    assert diagnose(seen).findings.size == (88, 96)
    before = Counter(searched)
    pose_picture(seen, task, None, options)
    assert searched - before == Counter({"recognise_kernel": 1} if task == "sr" else {})


def test_not_looked_for_is_not_the_same_as_not_there() -> None:
    assert examine(picture()).compression is None
    for unsearched in (examine(picture(), jpeg=False), examine(replace(picture(), bits=16))):
        assert isinstance(unsearched.compression, NotExamined) and unsearched.history is None
    tiny = examine(Picture(np.full((8, 9, 3), 0.5, np.float32)))
    assert isinstance(tiny.noise, NotExamined) and "9 x 8 pixels" in tiny.noise.reason
    holes = np.ones((96, 88), np.float32)
    holes[:20] = 0
    open_ = examine(replace(picture(), alpha=holes))
    assert isinstance(open_.defects, NotExamined) and isinstance(open_.enlargement, NotExamined)


def test_deep_pixels_are_searched_for_blocks_where_a_task_needs_them() -> None:
    copy = replace(from_pil(jpeg(Image.fromarray(colour(96, 2)), 40)), history=None, bits=16)
    seen = examine(copy)
    assert isinstance(seen.compression, NotExamined)
    assert seen.blocks is not None and seen.blocks.quality == pytest.approx(40, abs=3)


def test_a_picture_speaks_for_itself_where_it_is_small_and_by_its_visible_middle_where_not() -> None:
    seen = examine(picture())
    assert seen.visible is seen and examine(seen) is seen and seen.of_measured(seen.picture.pixels, None) is seen
    alpha = np.ones((900, 1000), np.float32)
    alpha[:450] = 0.2
    large = examine(Picture(np.zeros((900, 1000, 1), np.float32), alpha), jpeg=False)
    part = large.visible
    assert part is large.visible and part.picture.size == (768, 768) and large.missing == 0.5
    assert isinstance(part.compression, NotExamined) and collect_findings(large).size == (1000, 900)
    assert part.known is not None and part.known.mean() == pytest.approx(1 - (450 - 64) / 768)


def test_what_is_left_around_holes_keeps_the_history_of_the_whole() -> None:
    """Most defects were there when a picture was compressed."""
    file = from_pil(jpeg(Image.fromarray(colour(96, 3)), 30))
    seen = examine(replace(file, history=None))
    known = np.random.default_rng(0).random((96, 96)) > 0.02
    rest: Examination = seen.of_measured(file.pixels * known[..., None], known)
    assert seen.history is not None and rest.picture.history == seen.history and rest.known is known
