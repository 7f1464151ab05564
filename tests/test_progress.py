"""Time left, the pace of a machine, what is shown meanwhile, and durations in words."""

import itertools
import re
import threading
import time

import numpy as np
import pytest

from leader.folders.run import FolderMeter
from leader.progress import Busyness, MachinePace, ProgressDisplay, TimeLeft, format_clock, format_duration


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_items_of_one_kind_take_as_long_as_those_before() -> None:
    clock = Clock()
    left = TimeLeft(10, 30.0, overhead=1.0, clock=clock)
    assert left.seconds_left is None and left.share == 0
    for done in range(1, 5):
        clock.now += 6
        left.finish(3.0)
        assert left.seconds_left == pytest.approx((10 - done) * 6, rel=0.2) and left.share == pytest.approx(done / 10)
    left.drop(9.0, 3)
    assert left.seconds_left == pytest.approx(3 * 6, rel=0.2) and left.share == pytest.approx(0.7)


def test_the_pace_is_a_least_squares_fit_that_leans_on_the_usual_ratio_as_on_one_item() -> None:
    clock, items = Clock(), [(0.1, 0.5), (0.4, 0.9), (1.0, 1.6)]
    left = TimeLeft(5, 4.5, overhead=0.2, clock=clock)
    for cost, seconds in items:
        clock.now += seconds
        left.finish(cost)
    rows = np.array([[1.0, cost] for cost, _ in items] + [[1.0, -0.2]])
    fixed, per_cost = np.linalg.lstsq(rows, np.array([0.5, 0.9, 1.6, 0.0]), rcond=None)[0]
    assert left.seconds_left == pytest.approx(2 * fixed + 3.0 * per_cost)


def test_no_time_is_negative_whatever_the_items_took() -> None:
    clock = Clock()
    left = TimeLeft(4, 22.0, overhead=0.5, clock=clock)
    for cost, seconds in ((10.0, 1.0), (1.0, 8.0)):  # the large one was faster
        clock.now += seconds
        left.finish(cost)
    assert left.seconds_left == pytest.approx(9 / 12 * (11 + 2 * 0.5))
    idle = TimeLeft(2, 0.0, clock=clock)
    idle.finish(0.0)
    assert idle.seconds_left is None and idle.share == 1, "what costs nothing says nothing"


def test_a_folder_counts_pictures_and_weighs_them_by_their_bytes() -> None:
    clock = Clock()
    meter = FolderMeter([100, 100, 300, 100], clock=clock)
    assert meter.seconds_left is None and str(meter) == "0 of 4 pictures"
    clock.now = 10.0
    meter.settle(100, failed=True)  # says nothing of the pace, but is no longer ahead
    assert meter.seconds_left is None and meter.share == pytest.approx((1 + 100 / 150) / 8)
    clock.now = 20.0
    meter.settle(100)
    alone = meter.seconds_left
    assert alone is not None and 30 < alone < 60, "the large one of the two ahead takes longer"
    assert str(meter) == f"2 of 4 pictures, 1 failed, about {format_clock(alone)} left"
    meter.settle(300)
    meter.settle(100)
    assert str(meter) == "4 of 4 pictures, 1 failed" and meter.share == pytest.approx(1)
    assert FolderMeter([]).share == 1
    empty = FolderMeter([0, 0])
    empty.settle(0)
    assert empty.share == 0.5


def test_the_pace_follows_the_runs_of_this_machine_that_are_nearest_in_size() -> None:
    pace = MachinePace(2e-6)
    assert pace.predict_seconds(1e6) == pytest.approx(2.0)
    for _ in range(5):
        pace.learn(1e6, 6.0)
    for _ in range(9):
        pace.learn(1e9, 200.0)
    assert pace.predict_seconds(1e6) == pytest.approx(6.0) and pace.predict_seconds(2e6) == pytest.approx(12.0)
    assert pace.predict_seconds(1e9) == pytest.approx(200.0)
    pace.learn(1e6, 600.0)
    assert pace.predict_seconds(1e6) == pytest.approx(6.0), "one that was disturbed does not count"


def test_a_line_now_and_then_where_there_is_no_terminal() -> None:
    clock, said = Clock(), list[str]()
    with ProgressDisplay(said.append, 10.0, clock) as display:
        for second in range(0, 30, 4):
            clock.now = second
            display.show(second / 30, f"second {second}")
    assert said == ["second 12", "second 24"]
    with ProgressDisplay(said.append, None, clock) as silent:
        clock.now = 1e6
        silent.show(1.0, "the end")
    assert len(said) == 2


def test_a_line_is_said_also_while_one_step_takes_long() -> None:
    said: list[str] = []
    heard = threading.Event()

    def say(text: str) -> None:
        said.append(text)
        if len(said) == 2:
            heard.set()

    display = ProgressDisplay(say, 0.02)
    for _ in range(2):  # as a folder uses it again
        heard.clear()
        said.clear()
        with display:
            assert heard.wait(10)
            display.show(0.5, "half")
        count = len(said)
        time.sleep(0.1)
        assert len(said) == count  # nothing after the end


def test_a_bar_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")

    def draw(share: float, every: float | None = 10.0) -> str:
        with ProgressDisplay(print, every) as display:
            display.show(share, "half of it")
        out, shown = capsys.readouterr()
        assert out == "", "results alone go to stdout"
        return shown

    few, many = draw(0.1), draw(0.9)
    assert "half of it" in few and draw(0.1, None) == ""
    done = [re.findall("━+", shown.partition("half of it")[0].rpartition("\r")[2])[0] for shown in (few, many)]
    assert 8 * len(done[0]) < len(done[1]), "what is done comes first, in a colour of its own"
    assert few.rindex("\x1b[?25h") > few.rindex("half of it"), "the cursor is given back"


def test_durations() -> None:
    assert [format_clock(s) for s in (0.4, 65, 3600, 86399.6)] == ["0:00", "1:05", "1:00:00", "24:00:00"]
    assert [format_duration(s) for s in (0.2, 12.4, 89.6, 150, 5300, 7200)] == [
        "1 s",
        "12 s",
        "90 s",
        "2 min",
        "88 min",
        "2.0 h",
    ]


def test_a_pace_prefers_runs_of_its_own_kind() -> None:
    pace = MachinePace(1.0)
    pace.learn(100.0, 50.0, "slow")
    pace.learn(100.0, 10.0, "quick")
    assert pace.predict_seconds(200.0, "slow") == pytest.approx(100.0) and pace.predict_seconds(
        200.0, "quick"
    ) == pytest.approx(20.0)
    assert pace.predict_seconds(200.0, "other") == pytest.approx(100.0), "at most what others take"


def test_busyness_is_what_passes_for_a_second_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter", itertools.count(0.0, 6.0).__next__)
    monkeypatch.setattr(time, "thread_time", itertools.count(0.0, 2.0).__next__)
    assert Busyness().ratio == pytest.approx(3.0)
    monkeypatch.setattr(time, "perf_counter", itertools.count(0.0, 1.0).__next__)
    assert Busyness().ratio == 1.0, "never faster than alone"
