"""When a failed run is repeated, which one is kept, and what a restoration says of it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from leader.forensics.blur.width import Width
from leader.messages import Note
from leader.restoration import restore as module
from leader.restoration.repeat import arguments_of
from leader.restoration.restore import Preparation, prepare, restore
from leader.restoration.restored import Restoration
from leader.restoration.second_try import run_with_second_try
from leader.trust import RunFacts, Verdict, measure
from tests.cheap_prior import CheapPrior, photograph

FAILED = {
    "sigma": 0.01,
    "residual": 0.5,
    "detail": 0.9,
    "given_detail": 0.01,
    "excess": 0.2,
    "invented": 0.0,
    "blockiness": 1.0,
    "correlation": 0.0,
}


def ready(**choices: Any) -> Preparation:
    noisy = photograph() + 0.05 * torch.randn(3, 48, 64, generator=torch.Generator().manual_seed(0))
    return prepare(noisy.clamp(0, 1), "denoise", prior=CheapPrior(), steps=3, **choices)


class Scripted:
    """Real runs, whose verdicts are those of a script."""

    def __init__(self, *verdicts: Verdict) -> None:
        self.verdicts, self.sigmas = list(verdicts), list[float]()

    def __call__(self, one: Preparation) -> Restoration:
        self.sigmas.append(one.sigma)
        return replace(one.run(), verdict=self.verdicts[len(self.sigmas) - 1])


def failed(residual: float, detail: float) -> Verdict:
    return Verdict("failed", (Note("x", "x"),), {**FAILED, "residual": residual, "detail": detail})


def test_a_failed_run_is_repeated_with_twice_the_estimate_and_the_kept_one_says_so() -> None:
    script = Scripted(failed(0.5, 0.9), Verdict("fine", (), {**FAILED, "residual": 0.01, "detail": 0.01}))
    first = ready()
    best = run_with_second_try(first, script)
    assert first.sigma == pytest.approx(0.05, rel=0.15) and script.sigmas == [first.sigma, 2 * first.sigma]
    assert best.sigma == 2 * first.sigma and best.sigma_from == "estimated"
    assert [(item.level, item.kept) for item in best.tries] == [("failed", True), ("fine", True)]
    assert [item.sigma for item in best.tries] == [first.sigma, 2 * first.sigma]
    assert "sigma raised" in [getattr(note, "code", "") for note in best.notes]
    summary = best.summary()
    assert summary["sigma"] == best.sigma and [item["kept"] for item in summary["tries"]] == [True, True]
    again = restore(best.given.pixels, **arguments_of(summary, prior=CheapPrior()))
    assert np.array_equal(again.array, best.array) and not again.tries


@pytest.mark.parametrize(("residual", "detail"), [(0.1, 0.95), (0.6, 0.1)])
def test_a_repetition_that_improves_one_thing_alone_is_not_kept(residual: float, detail: float) -> None:
    script = Scripted(failed(0.5, 0.9), failed(residual, detail), failed(residual, detail))
    first = ready()
    best = run_with_second_try(first, script)
    assert len(script.sigmas) == 3 and script.sigmas[2] == 4 * first.sigma
    assert best.sigma == first.sigma and [item.kept for item in best.tries] == [True, False, False]


def test_every_repetition_has_a_multiple_of_what_was_estimated() -> None:
    script, first = Scripted(failed(0.6, 0.9), failed(0.3, 0.5), failed(0.1, 0.2)), ready()
    best = run_with_second_try(first, script)
    assert script.sigmas == [first.sigma * factor for factor in (1, 2, 4)] and [item.kept for item in best.tries] == [True] * 3


def test_what_was_given_or_is_not_failed_is_run_once() -> None:
    for one, level in ((ready(sigma=0.02), "failed"), (ready(), "doubtful")):
        script = Scripted(Verdict(level, (Note("x", "x"),), FAILED))  # type: ignore[arg-type]  # two of the three levels
        best = run_with_second_try(one, script)
        assert len(script.sigmas) == 1 and best.tries == () and best.sigma == one.sigma


def test_what_more_noise_cannot_cure_is_run_once() -> None:
    one = ready()
    script = Scripted(Verdict("failed", (Note("x", "x"),), {**FAILED, "sharp": 5.0}))
    best = run_with_second_try(one, script)
    assert len(script.sigmas) == 1 and best.tries == () and best.sigma == one.sigma


def test_a_picture_that_was_left_as_it_is_is_run_once() -> None:
    script = Scripted(failed(0.5, 0.9))
    first = ready()
    left = replace(first, posed=replace(first.posed, sigma=0.0))
    assert left.sigma_from == "estimated" and run_with_second_try(left, script).tries == ()
    assert script.sigmas == [0.0]


def test_a_blur_is_judged_by_the_evidence_for_its_kernel() -> None:
    sharp = photograph(72, 72)
    told = restore(sharp, "deblur", kernel="gaussian:2", prior=CheapPrior(), steps=3, sigma=0.01)
    assert told.verdict is not None and float(told.verdict.numbers["too_wide"] or 0) > 1
    assert "too wide" in [reason.code for reason in told.verdict.reasons]
    vouched = restore(sharp, "deblur", kernel="gaussian:2", kernel_doubt=0, prior=CheapPrior(), steps=3, sigma=0.01)
    assert vouched.verdict is not None and vouched.verdict.numbers["too_wide"] is None


def test_the_check_does_not_touch_the_picture_and_repeats() -> None:
    noisy = ready().given.pixels
    choices: dict[str, Any] = {"prior": CheapPrior(), "steps": 3, "seed": 5}
    one, same, without = (restore(noisy, "denoise", check=check, **choices) for check in (True, True, False))
    assert without.verdict is None and without.summary()["verdict"] is None
    assert one.verdict is not None and one.verdict == same.verdict
    assert np.array_equal(one.array, without.array)
    assert one.summary()["verdict"] == one.verdict.as_dict()
    assert one.summary()["network"] == without.summary()["network"]
    other = restore(noisy, "denoise", prior=CheapPrior(), steps=3, seed=6).verdict
    assert other is not None and other.numbers["residual"] != one.verdict.numbers["residual"]
    looked, without = (restore(noisy[:16, :16], "sr", check=check, sigma=0.1, **choices) for check in (True, False))
    assert looked.verdict is not None and looked.verdict.numbers["change"] is not None
    assert looked.summary()["network"] == without.summary()["network"], "the ledger of the run does not count the look"


def test_the_frame_around_a_blurred_picture_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the picture the measurement is a continuation: whatever happens there changes no number but the network's."""
    known: dict[str, Any] = {"kernel": "gaussian:1", "kernel_doubt": 0}  # doubt is whitened across the border
    one = prepare(photograph(40, 52), "deblur", prior=CheapPrior(), sigma=0.02, steps=3, **known)
    seen: list[dict[str, Any]] = []

    def watch(facts: RunFacts) -> dict[str, float | None]:
        spoilt, error = facts.images.clone(), torch.full_like(facts.images, 1e-3)
        wide = error.clone()
        spoilt[..., :3, :] = wide[..., :3, :] = 1.0
        seen.extend(measure(part) for part in (replace(facts, error=error), replace(facts, images=spoilt, error=wide)))
        return seen[0]

    monkeypatch.setattr(module, "measure", watch)
    one.run()
    clean, spoilt = ({key: value for key, value in numbers.items() if value is not None} for numbers in seen)
    assert clean == pytest.approx(spoilt, rel=1e-4)  # transforms of the whole frame round differently


def test_the_verdict_knows_the_pictures_own_noise_where_nothing_else_was_to_be_removed() -> None:
    rng = np.random.default_rng(2)
    noisy = np.clip(0.25 + 0.5 * photograph(64, 64).permute(1, 2, 0).numpy() + 0.05 * rng.standard_normal((64, 64, 3)), 0, 1)
    judged = restore(noisy, "denoise", prior=CheapPrior(), steps=3, sigma=0.05).verdict
    assert judged is not None and judged.numbers["noise"] == pytest.approx(0.05, rel=0.15)
    assert judged.numbers["change"] is None, "what it would change may be the picture's own: nobody asks"
    larger = restore(noisy[:16, :16], "sr", prior=CheapPrior(), steps=3, sigma=0.05).verdict
    assert larger is not None and larger.numbers["noise"] is None and larger.numbers["enlarged"] == 16
    assert larger.numbers["change"] is not None, "the network was asked once more"
    tiny = restore(noisy[:9, :9], "denoise", prior=CheapPrior(), steps=3, sigma=0.05).verdict
    assert tiny is not None and tiny.numbers["noise"] is None, "too small for an estimate"
    guessed = restore(noisy, "denoise", prior=CheapPrior(), steps=3).verdict
    assert guessed is not None and guessed.numbers["noise"] is None, "an estimate rests on the same picture"
    assert (judged.numbers["estimated"], guessed.numbers["estimated"]) == (0.0, 1.0)


def test_a_repetition_that_is_fine_but_explains_less_is_neither_kept_nor_the_end() -> None:
    worse = Verdict("fine", (), {**FAILED, "residual": 0.6, "detail": 0.9})
    better = Verdict("fine", (), {**FAILED, "residual": 0.01, "detail": 0.01})
    first, script = ready(), Scripted(failed(0.5, 0.9), worse, better)
    best = run_with_second_try(first, script)
    assert script.sigmas == [first.sigma, 2 * first.sigma, 4 * first.sigma] and best.sigma == 4 * first.sigma
    assert [(item.level, item.kept) for item in best.tries] == [("failed", True), ("fine", False), ("fine", True)]
    script = Scripted(failed(0.5, 0.9), worse, worse)
    assert run_with_second_try(first, script).sigma == first.sigma


def test_the_verdict_is_told_all_that_is_known_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[RunFacts] = []

    def keep(facts: RunFacts) -> dict[str, Any]:
        asked.append(facts)
        return FAILED

    monkeypatch.setattr(module, "measure", keep)
    made = ready(sigma=0.1, ids=7, seed=5)
    width = Width(odds=1.5, sharp=-2.0)
    replace(made, posed=replace(made.posed, width=width, misread=0.3)).run()
    (facts,) = asked
    assert (facts.seed, facts.image, facts.width, facts.misread, facts.estimated) == (5, 7, width, 0.3, False)
    numbers = measure(facts)
    assert (numbers["too_wide"], numbers["sharp"], numbers["compressed"], numbers["misread"]) == (1.5, -2.0, 0.0, 0.3)
    assert measure(replace(facts, width=Width(odds=None, sharp=2.0)))["compressed"] == 1.0
    blur: dict[str, Any] = {"kernel": "gaussian:2", "kernel_doubt": 0}
    prepare(photograph(40, 52), "deblur", prior=CheapPrior(), sigma=0.02, steps=3, **blur).run()
    changes = [measure(replace(asked[1], image=image))["change"] for image in (7, 7, 8)]
    assert changes[0] == changes[1] != changes[2], "the image's id chooses the noise of the look"
    assert measure(replace(asked[1], look=False))["change"] is None
