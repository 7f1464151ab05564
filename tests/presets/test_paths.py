"""What quality and look stand for."""

import pytest

from leader.methods import METHODS, make_method
from leader.plugins import expand, make_plugin
from leader.presets import paths
from leader.presets.paths import LOOKS, QUALITIES, _entries, find_path, list_same
from leader.schedule import GRIDS, Grid
from tests.sentences import refusal

TASKS = ["sr-bicubic", "sr-average", "deblur-gaussian", "deblur-motion", "deblur", "inpaint", "colourise", "denoise", "cs"]


def test_every_entry_can_run_and_says_where_it_comes_from() -> None:
    for entry in _entries():
        assert entry["method"] in METHODS and entry.get("grid", "uniform") in GRIDS and 1 <= entry["steps"] <= 100
        plugins, settings = expand(tuple(entry.get("plugins", ()))), entry.get("settings", {})
        make_method(entry["method"], {name: value for name, value in settings.items() if name not in plugins})
        for name in plugins:
            make_plugin(str(name), settings.get(name, {}))
        times = entry.get("times", [])
        assert not times or (times == sorted(set(times), reverse=True) and len(times) == entry["steps"] + 1 and times[-1] == -1)
        assert entry.get("average", 1) in (1, 2, 4, 8)
        assert entry["source"] and entry["quality"] in (*QUALITIES, "any") and entry["look"] in (*LOOKS, "any")


@pytest.mark.parametrize("task", [*TASKS, "jpeg"])
@pytest.mark.parametrize("sigma", [0.0, 0.0011, 0.02, 0.05, 0.2])
def test_more_quality_never_means_less_work(task: str, sigma: float) -> None:
    for look in LOOKS:
        found = [find_path("embedded", task, sigma, quality, look) for quality in QUALITIES]
        calls = [path.steps * path.average for path in found]
        one_word = task == "denoise" and sigma > 0
        assert one_word or (calls == sorted(calls) and calls[0] < calls[2]) or task == "deblur-motion"


def test_words_that_stand_for_the_same_path_are_known() -> None:
    """The qualities of denoising are one and its looks are two; best enlarges as standard does; other looks share a path."""
    for sigma in (0.004, 0.06, 0.2):
        for quality in QUALITIES:
            assert list_same("embedded", "denoise", sigma, quality, "faithful") == (QUALITIES, ("faithful",))
    assert list_same("embedded", "sr-bicubic", 0.0, "best", "natural") == (("standard", "best"), ("natural",))
    assert list_same("embedded", "sr-bicubic", 0.0, "draft", "natural") == (("draft",), ("natural",))
    assert list_same("embedded", "deblur", 0.03, "best", "faithful") == (("best",), LOOKS)


@pytest.mark.parametrize("sigma", [0.01, 0.1, 0.3])
def test_the_looks_of_denoising_differ_by_the_calls_below_the_noise_level(sigma: float) -> None:
    calls = {look: find_path("embedded", "denoise", sigma, "standard", look).settings["direct"]["calls"] for look in LOOKS}
    assert calls == {"natural": 3, "faithful": 1}


def test_the_most_specific_entry_wins() -> None:
    clean = find_path("embedded", "sr-bicubic", 0.0, "standard", "natural")
    assert (clean.method, clean.grid, clean.steps, clean.settings["step"]) == ("projdiff", "quadratic", 21, 1.8)
    assert clean.average == 1 and find_path("embedded", "sr-bicubic", 0.0, "standard", "faithful").average == 2
    # the nearest noise level counts: at 0.02 that of 0.05 was measured to be the better one
    for sigma, beyond in ((0.0011, 1.6), (0.005, 1.6), (0.01, 1.6), (0.02, 1.84), (0.04, 1.84), (0.2, 1.84)):
        found = find_path("embedded", "sr-bicubic", sigma, "standard", "natural")
        assert (found.method, found.settings["early_step"]) == ("projdiff", beyond)
    for quality in QUALITIES:
        free, noisy = (find_path("embedded", "inpaint", sigma, quality, "natural").settings for sigma in (0.0, 0.05))
        assert "step" in free and "step" not in noisy  # what acts without noise, and what acts with it
        assert find_path("embedded", "inpaint", 0.01, quality, "faithful").method == "projdiff"
    # ProjDiff is for noisy blurs only
    assert find_path("embedded", "deblur-gaussian", 0.05, "standard", "natural").method == "projdiff"
    assert find_path("embedded", "deblur-gaussian", 0.005, "standard", "natural").method == "ddnm"


def test_masks_that_leave_few_pixels_have_a_path_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {known: find_path("embedded", "inpaint", 0.0, "standard", "natural", known) for known in (0.1, 0.3, 0.31, 1.0)}
    assert found[0.1] == found[0.3] != found[0.31] == found[1.0] == find_path("embedded", "inpaint", 0.0, "standard", "natural")
    assert found[0.3].settings["step"] > found[1.0].settings["step"]
    for known in (0.1, 1.0):  # the other words choose as ever
        assert find_path("embedded", "inpaint", 0.0, "best", "natural", known).average == 2
        for quality, look in (("draft", "natural"), ("standard", "faithful")):
            assert find_path("embedded", "inpaint", 0.0, quality, look, known) == find_path(
                "embedded", "inpaint", 0.0, quality, look
            )
        assert list_same("embedded", "inpaint", 0.0, "standard", "natural", known) == (("standard",), ("natural",))
    turned = _entries()[::-1]
    monkeypatch.setattr(paths, "_entries", lambda: turned)  # wherever it stands
    assert find_path("embedded", "inpaint", 0.0, "standard", "natural", 0.3) == found[0.3]


def test_a_quality_and_a_look_that_were_measured_win_over_any(monkeypatch: pytest.MonkeyPatch) -> None:
    words = (("draft", "natural", 1), ("draft", "any", 2), ("any", "natural", 3), ("any", "any", 4))
    entries = [
        {"prior": "any", "quality": quality, "look": look, "method": "ddnm", "steps": steps, "source": "here"}
        for quality, look, steps in words
    ]
    asked = (("draft", "natural", 1), ("draft", "faithful", 2), ("best", "natural", 3), ("best", "faithful", 4))
    for given in (entries, entries[::-1]):
        monkeypatch.setattr(paths, "_entries", lambda given=tuple(given): given)
        for quality, look, steps in asked:
            assert find_path("x", "denoise", 0.0, quality, look).steps == steps


def test_times_are_visited_one_by_one_unless_another_number_of_steps_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    one = {"prior": "any", "quality": "any", "look": "any", "method": "ddnm", "steps": 3, "grid": "quadratic", "source": "here"}
    monkeypatch.setattr(paths, "_entries", lambda: ({**one, "times": [900, 200, 10, -1]},))
    path = find_path("x", "denoise", 0.0, "best", "natural")
    assert path.route() == path.with_steps(3).route() == Grid((900, 200, 10, -1))
    assert path.with_steps(4).route() == "quadratic" and path.with_steps(4).steps == 4
    monkeypatch.setattr(paths, "_entries", lambda: (one, {**one, "steps": 2}))
    last = find_path("x", "denoise", 0.0, "best", "natural")
    assert last.route() == "quadratic" and last.steps == 2, "of equal entries the later one counts"


def test_priors_that_were_never_measured_get_the_papers_path() -> None:
    path = find_path("someone's", "sr-bicubic", 0.05, "standard", "natural")
    assert (path.method, path.steps, path.grid, path.plugins) == ("ddnm", 100, None, ("ucpm", "satp"))
    assert find_path("someone's", "sr-bicubic", 0.05, "draft", "natural").steps == 20


@pytest.mark.parametrize(("quality", "look", "word"), [("bset", "natural", "best"), ("best", "naturel", "natural")])
def test_wrong_words_are_told(quality: str, look: str, word: str) -> None:
    assert f"did you mean '{word}'" in refusal(find_path, "embedded", "sr-bicubic", 0.0, quality, look)


@pytest.mark.parametrize(("sigma", "quiet"), [(0.0012, False), (0.006, False), (0.012, True), (0.042, True), (0.06, False)])
def test_blurred_jpegs_take_the_quiet_way(sigma: float, quiet: bool) -> None:
    """Their levels, with what is uncertain of a kernel, are 0.01 to 0.045 at qualities 40 to 92; those of PNGs below 0.007."""
    for quality in QUALITIES:
        assert (find_path("embedded", "deblur", sigma, quality, "natural").plugins == ("wiener",)) is quiet
