from __future__ import annotations

import pytest

from leader.folders.progress import FolderMeter, clock_words


def test_time_left_follows_count_and_bytes() -> None:
    now = [0.0]
    meter = FolderMeter([100, 100, 300, 100], clock=lambda: now[0])
    assert meter.seconds_left is None and meter.words() == "0 of 4 pictures"
    now[0] = 10.0
    meter.done(100)  # weight 0.5 + 0.5 * 100 / 150 = 5/6, of 4 in all
    assert meter.seconds_left == pytest.approx(10 * (4 - 5 / 6) / (5 / 6))
    meter.done(100, failed=True)  # says nothing of the pace, but is no longer ahead
    assert meter.seconds_left == pytest.approx(10 * (4 - 10 / 6) / (5 / 6))
    assert meter.words() == "2 of 4 pictures, 1 failed, about 0:28 left"
    meter.done(300)
    meter.done(100)
    assert meter.words() == "4 of 4 pictures, 1 failed" and meter.share == 1


def test_no_pictures_and_empty_ones() -> None:
    assert FolderMeter([]).share == 1
    meter = FolderMeter([0, 0])
    meter.done(0)
    assert meter.share == 0.5


@pytest.mark.parametrize(("seconds", "words"), [(0.4, "0:00"), (65, "1:05"), (3600, "1:00:00"), (86399.6, "24:00:00")])
def test_clock_words(seconds: float, words: str) -> None:
    assert clock_words(seconds) == words
