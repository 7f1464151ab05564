"""What lies between a picture and its run, piece by piece: each was once broken on trial and nobody noticed."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from leader import Problem, Sampler, operators
from leader.errors import LeaderError, UsageError
from leader.forensics import examine
from leader.forensics.blur.search import Blur, BlurSearch
from leader.forensics.blur.shapes import Shape
from leader.forensics.blur.width import Refuted, Width
from leader.forensics.findings import Findings
from leader.forensics.noise.estimate import NoiseEstimate, rounding
from leader.forensics.noise.shot import ShotNoise
from leader.forensics.noise.spectrum import NoiseSpectrum
from leader.pictures import Picture
from leader.priors.base import Prediction
from leader.restoration import ahead, borders, memory, pose
from leader.restoration.arguments import as_mask, as_picture
from leader.restoration.choice import Choice
from leader.restoration.degrade import degrade
from leader.restoration.diagnose import Diagnosis, _advice
from leader.restoration.ensemble import ensemble
from leader.restoration.invention import strong_blur
from leader.restoration.progress import WorkLeft
from leader.restoration.provenance import stamp_of
from leader.restoration.repeat import _shape_of_noise, _sigma_of, _unpacked, arguments_of
from leader.restoration.restore import Preparation, _prior, prepare
from leader.restoration.surroundings import memory_in_words
from leader.restoration.tasks import TASKS, Measured, Request, blurs, find_task
from leader.restoration.tasks.pointwise import Denoising
from leader.restoration.whitening import Coloured, can_be_whitened
from leader.trust import ErrorMap
from tests.cheap_prior import CheapPrior, photograph
from tests.forensics.blur.fields import SCENE


def choice(**given: Any) -> Choice:
    empty: dict[str, Any] = dict.fromkeys(("quality", "look", "method", "plugins", "steps"))
    return Choice(CheapPrior(), **{**empty, "settings": {}, **given})


def test_who_replaces_the_plug_ins_keeps_the_settings_of_those_that_belong_to_the_task() -> None:
    path = {"cells": {"inner": 0.5}, "satp": {"budget": 0.5}}
    sampler = choice(plugins=("ucpm",))._made("ddnm", ("cells", "satp"), 3, None, path, ("cells",))
    assert sampler.choices.of_plugins == {"cells": {"inner": 0.5}}
    assert [getattr(item, "name", item) for item in sampler.choices.plugins] == ["ucpm", "cells"]
    assert choice()._made("ddnm", ("cells", "satp"), 3, None, path, ("cells",)).choices.of_plugins == path


@pytest.mark.parametrize("given", [{"quality": "best"}, {"look": "faithful"}, {"quality": "best", "look": "faithful"}])
def test_a_method_stands_alone(given: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="give either them or a method"):
        choice(method="ddnm", **given)


def found(blur: Blur | None = None, **changes: Any) -> Findings:
    noise = NoiseEstimate(0.0, 0.0, 0.001)
    search = BlurSearch(blur, "Something was seen.")
    plain: dict[str, Any] = {
        "size": (600, 400),
        "bits": 8,
        "grey": False,
        "noise": noise,
        "blur": search,
        "enlarged": None,
        "defects": (),
        "defect_share": 0.0,
        "missing": 0.0,
    }
    return Findings(**{**plain, **changes})


@pytest.mark.parametrize(("size", "small"), [((256, 200), True), ((257, 40), False), ((40, 257), False)])
def test_a_picture_is_small_where_both_sides_are(size: tuple[int, int], small: bool) -> None:
    said = Diagnosis(found(size=size), None).sentences()
    assert any("It is small" in sentence for sentence in said) == small


@pytest.mark.parametrize(("family", "angle"), [("disk", None), ("gaussian", None), ("line", 30.0)])
def test_a_blur_is_told_with_the_error_of_its_width_in_pixels(family: Any, angle: float | None) -> None:
    blur = Blur(Shape(family, 4.0, 30.0), 0.0821, 2.0, 0.9, SCENE)
    findings = found(blur)
    told = Diagnosis(findings, _advice(findings)).as_dict()
    assert told["blur"]["width_error"] == pytest.approx(4.0 * 0.0821) and told["blur"]["angle"] == angle
    assert told["advice"]["options"] == {"kernel": blur.kernel, "kernel_doubt": 0.082}


def ready(**choices: Any) -> Preparation:
    given: dict[str, Any] = {"task": "denoise", "sigma": 0.1, "prior": CheapPrior(), "steps": 2, "method": "ddnm", **choices}
    return prepare(photograph(40, 48), **given)


def test_the_verdict_is_told_all_that_is_known_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    monkeypatch.setattr("leader.restoration.restore.verdict", lambda *words, **more: asked.append((words, more)))
    made = ready(ids=7, seed=5)
    posed = replace(made.posed, white=True, width=Width(odds=1.5, due=0.02, sharp=-2.0), misread=0.3)
    replace(made, posed=posed).run()
    ((words, more),) = asked
    assert words[4:6] == (5, 7)
    assert {name: more[name] for name in ("too_wide", "due", "sharp", "compressed", "misread", "white", "estimated")} == {
        "too_wide": 1.5,
        "due": 0.02,
        "sharp": -2.0,
        "compressed": False,
        "misread": 0.3,
        "white": True,
        "estimated": False,
    }
    assert more["noise"] is not None, "somebody gave a level: the picture's own noise is looked at"
    replace(made, posed=replace(posed, sigma_from="estimated")).run()
    assert asked[1][1]["noise"] is None and asked[1][1]["estimated"]


def test_a_finished_run_is_cropped_judged_and_told_in_the_units_of_the_picture() -> None:
    blurred = ready(task="deblur", kernel="gaussian:1", kernel_doubt=0.0)
    _, height, width = blurred.problem.image_shape
    assert (height, width) != (40, 48)
    ran = blurred.run(check=False).result
    whole = torch.arange(3.0 * height * width).reshape(1, 3, height, width)
    errors = ErrorMap(whole[0, 0], {}, "uncalibrated")
    done = blurred.finished(replace(ran, images=whole, error_std=whole, posterior_std=None), errors, 0.0, False)
    assert blurred.posed.window is not None and done.result.error_std is not None
    assert torch.equal(done.result.error_std, blurred.posed.window.crop(whole))
    assert done.notes[-1] == errors.note and "not calibrated" in done.notes[-1]
    assert replace(done, seconds=1.23456).summary()["seconds"] == 1.235


def test_as_many_runs_as_are_asked_for() -> None:
    assert ready(average=3).average == 3 and ready().average == 1
    single = ready().run(check=False).result
    assert len(single.trace) == 1 and single.posterior_std is not None and float(single.posterior_std.min()) > 0


def test_a_prior_is_moved_to_where_it_is_asked_for() -> None:
    prior = CheapPrior()
    prior.register_buffer("here", torch.zeros(1))
    home = _prior(prior, "meta", None).weights_device()
    assert home is not None and home.type == "meta"


def test_a_stamp_has_six_digits_of_the_noise_and_sixteen_of_the_weights() -> None:
    made = ready()
    result = made.run(check=False).result
    origin = replace(made.origin, prior="embedded", prior_sha256="0123456789abcdef" * 4)
    record = json.loads(stamp_of(replace(made.posed, sigma=0.123456789), result, origin).record)
    assert (record["sigma"], record["weights"]) == (0.123457, "0123456789abcdef")


def test_a_picture_beyond_the_memory_is_refused_and_one_that_fits_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = memory.memory_needed((3, 100, 200))
    for there, fits in ((needed, True), (needed - 1, False), (None, True)):
        monkeypatch.setattr(memory, "memory_here", lambda there=there: there)
        if fits:
            memory.check_memory((3, 100, 200))
        else:
            with pytest.raises(LeaderError, match="Restoring 200 x 100 pixels takes at least"):
                memory.check_memory((3, 100, 200))


@pytest.mark.parametrize("size", [(45, 3), (3, 45)])
def test_a_kernel_larger_than_the_picture_either_way_is_refused(size: tuple[int, int]) -> None:
    shape = (1, 20, 60) if size[0] > size[1] else (1, 60, 20)
    with pytest.raises(LeaderError, match="The kernel covers"):
        borders.extended_blur(shape, torch.ones(size), "deblur")
    _, window = borders.extended_blur((1, shape[2], shape[1]), torch.ones(size), "deblur")
    assert (window.height, window.width) == (shape[2], shape[1])


def test_a_picture_lies_in_the_middle_of_its_frame() -> None:
    operator, window = borders.extended_blur((1, 30, 50), torch.ones(3, 21), "deblur")
    _, height, width = operator.image_shape
    assert (window.top, window.left) == ((height - 30) // 2, (width - 50) // 2) and window.top != window.left


@pytest.mark.parametrize("numbers", [1, 2, 3])
def test_a_kept_table_has_as_many_numbers_as_it_says(numbers: int) -> None:
    text = base64.b64encode(zlib.compress(np.arange(float(numbers)).tobytes())).decode()
    packed = {"shape": [1, 2], "dtype": "float64", "zlib": text}
    if numbers == 2:
        assert _unpacked("kernel", packed).values.tolist() == [[0.0, 1.0]]
    else:
        with pytest.raises(LeaderError, match="must be 16 bytes"):
            _unpacked("kernel", packed)


def test_kept_shot_noise_is_gain_floor_and_least() -> None:
    kept = _sigma_of({"sigma": 0.1, "shot_noise": [0.01, -0.002, 0.003]})
    assert kept == Coloured(0.1, ShotNoise(gain=0.01, floor=-0.002, least=0.003))
    assert _shape_of_noise(ShotNoise(0.01, -0.002, 0.003))["shot_noise"] == [0.01, -0.002, 0.003]


@pytest.mark.parametrize("name", ["task", "sigma", "seed", "threads", "steps", "device", "settings", "method"])
def test_options_of_a_kept_run_are_those_of_its_task_alone(name: str) -> None:
    prior = CheapPrior()
    summary = ready(prior=prior).run(check=False).summary()
    assert arguments_of(summary, prior)["task"] == "denoise"
    with pytest.raises(LeaderError, match="'options' must be options of the task"):
        arguments_of({**summary, "options": {name: 3}}, prior)


@pytest.mark.parametrize("name", ["seed", "threads", "steps", "probes", "trust_time"])
def test_true_is_no_number_of_a_kept_run(name: str) -> None:
    prior = CheapPrior()
    summary = ready(prior=prior).run(check=False).summary()
    with pytest.raises(LeaderError, match=f"'settings.{name}' must be int; found True"):
        arguments_of({**summary, "settings": {**summary["settings"], name: True}}, prior)


class Doubting(Denoising):
    """Denoising by somebody who is unsure twice."""

    def read(self, given: Any, request: Request) -> dict[str, Any]:
        request.doubts.extend([0.03, 0.04])
        return {}


def test_doubts_are_independent_and_lift_the_limits_of_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pose, "_estimate_noise", lambda *_: NoiseEstimate(0.12, 0.0, 0.001))
    bright = as_picture(photograph(16, 16) * 1.8)
    with pytest.raises(LeaderError, match="holds values from"):
        pose.pose_picture(bright, "denoise", 0.01, {})
    monkeypatch.setattr(pose, "task_options", lambda *_: (Doubting(), {}))
    assert pose.pose_picture(bright, "denoise", 0.01, {}).sigma == 0.01
    assert pose.pose_picture(as_picture(photograph(16, 16)), "denoise", None, {}).sigma == pytest.approx(0.13)


@pytest.mark.parametrize("bits", [8, 16])
def test_a_doubt_by_frequency_stands_beside_rounding_to_so_many_bits(bits: int) -> None:
    picture = Picture(np.full((8, 8, 3), 0.5, np.float32), bits=bits)
    operator = operators.Denoising((3, 8, 8))
    measured = Measured(operator, picture.pixels, picture, doubt_power=torch.ones(1, 8, 8))
    level, shape, _ = pose._noise(measured, 0.0, find_task("denoise"), Request(examine(measured.picture)))
    assert level == 0 and isinstance(shape, NoiseSpectrum) and shape.level == pytest.approx(rounding(bits))


def test_a_container_is_known_by_every_name_of_its_task() -> None:
    content = degrade(photograph(16, 16), "sr", factor=2, exact=True).measurement
    for name in ("sr", "sr-bicubic", "sr-average", None):
        assert pose.pose_container(content, name, 0.0, {}).task == "sr"
    with pytest.raises(UsageError, match="found the task 'denoise'"):
        pose.pose_container(content, "denoise", 0.0, {})


def test_a_measurement_that_is_no_picture_is_shown_as_its_inverse_in_the_range_of_pictures() -> None:
    content = degrade(photograph(16, 16), "cs", ratio=1.0, exact=True).measurement
    shown = pose.pose_container(content, None, 0.0, {}).given.pixels
    assert np.allclose(shown, photograph(16, 16).permute(1, 2, 0).numpy(), atol=1e-4)


def test_containers_keep_the_bits_of_the_picture() -> None:
    pixels = np.full((16, 16, 3), 40_000, np.uint16)
    assert degrade(pixels, "denoise", exact=True).measurement.bits == 16
    assert degrade(pixels.astype(np.uint8), "denoise", exact=True).measurement.bits == 8


def test_colours_of_noise_need_colours_of_pictures() -> None:
    mask = torch.ones(8, 8)
    mask[2, 3] = 0
    grey, colour = (operators.Inpainting((channels, 8, 8), mask) for channels in (1, 3))
    one, three = NoiseSpectrum(np.ones((1, 2, 2))), NoiseSpectrum(np.ones((3, 2, 2)))
    assert [can_be_whitened(*pair) for pair in ((grey, one), (grey, three), (colour, one), (colour, three))] == [
        True,
        False,
        True,
        True,
    ]


def test_a_mask_may_have_channels_first_or_last() -> None:
    mask = np.zeros((6, 9), np.float32)
    mask[1:4, 2:8] = 1
    for given in (mask, mask[None], np.stack([mask] * 3), mask[..., None], np.stack([mask] * 3, -1)):
        assert np.array_equal(as_mask(given, (9, 6)).numpy(), mask)


def test_runs_of_an_ensemble_walk_the_times_of_their_own_image() -> None:
    problem = Problem.internal(torch.zeros(2, 1, 8, 8), operators.Denoising((1, 8, 8)), torch.tensor([0.05, 0.4]))
    sampler = Sampler(CheapPrior(), "ddnm", "direct", 20, use_presets=False)
    runs = ensemble(problem, 2, sampler=sampler).runs
    firsts = [visits[0].t for visits in runs.trace.values()]
    grids = sampler.plan(problem).grids
    assert firsts == [grids[0].times[0]] * 2 + [grids[1].times[0]] * 2
    assert [len(visits) for visits in runs.trace.values()] == [grids[0].visits] * 2 + [grids[1].visits] * 2


def test_the_pace_is_a_least_squares_fit_that_leans_on_the_usual_ratio_as_on_one_step() -> None:
    left = WorkLeft(ready())
    left._took = [(0.1, 0.5), (0.4, 0.9), (1.0, 1.6)]
    rows = np.array([[1.0, cost] for cost, _ in left._took] + [[1.0, -0.2]])
    expected = np.linalg.lstsq(rows, np.array([0.5, 0.9, 1.6, 0.0]), rcond=None)[0]
    assert left._pace() == pytest.approx(tuple(expected))


def test_a_kernel_of_more_than_128_pixels_is_judged_whole() -> None:
    kernel = torch.zeros(151, 151)
    kernel[150, 150] = 1
    assert not strong_blur(kernel) and strong_blur(torch.ones(151, 151))


def test_a_network_tied_to_a_size_is_timed_at_that_size(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []

    class Tied(CheapPrior):
        def _predict(self, x: torch.Tensor, t: torch.Tensor) -> Prediction:
            asked.append(tuple(x.shape))
            return super()._predict(x, t)

    monkeypatch.setattr(ahead, "WORTH_ASKING", 0)
    made = ready(prior=Tied())
    for size, expected in (((16, 24), (1, 3, 16, 24)), (None, (1, 3, 256, 256))):
        made.sampler.prior.size = size
        seconds = ahead.seconds_ahead(made, iter((0.0, 2.0)).__next__)
        assert asked[-1] == expected
        pixels = expected[2] * expected[3]
        assert seconds == pytest.approx(2.0 / pixels * 2 * 40 * 48 * 1.2)


@pytest.mark.parametrize("words", ["CUDA out of memory.", "Memory exhausted", "out of MEMORY"])
def test_a_lack_of_memory_is_told_however_it_is_written(words: str) -> None:
    with pytest.raises(LeaderError, match="memory does not suffice for a picture of 5 x 4 pixels"), memory_in_words((3, 4, 5)):
        raise RuntimeError(words)
    with pytest.raises(RuntimeError, match="other"), memory_in_words((3, 4, 5)):
        raise RuntimeError("something other")


@pytest.mark.parametrize(("given", "used"), [(None, 0.0821), (0.3, 0.3), (0.0, 0.0)])
def test_a_doubt_that_is_given_stands_beside_a_kernel_that_is_found(
    monkeypatch: pytest.MonkeyPatch, given: float | None, used: float
) -> None:
    blur = Blur(Shape("disk", 4.0), 0.0821, 2.0, 0.9, SCENE)
    request = Request(examine(as_picture(photograph(16, 16))))
    monkeypatch.setitem(vars(request.examination), "blur", BlurSearch(blur, ""))
    found_options = blurs._with_found_kernel({"kernel": "auto", "kernel_doubt": given}, request)
    assert (found_options["kernel"], found_options["kernel_doubt"]) == ("disk:4", used)


def test_a_kernel_that_somebody_gives_is_doubted_by_a_tenth_unless_it_degrades() -> None:
    picture = as_picture(photograph(16, 16))
    assert (
        blurs.KERNEL_DOUBT.missing(Request(examine(picture))) == 0.1
        and blurs.KERNEL_DOUBT.missing(Request(examine(picture), 3)) == 0.0
    )


@pytest.mark.parametrize(("error", "used"), [(0.05, 0.05), (0.3, 0.1)])
def test_a_kernel_that_was_narrowed_is_doubted_no_more_than_before(
    monkeypatch: pytest.MonkeyPatch, error: float, used: float
) -> None:
    monkeypatch.setattr(blurs, "find_better_width", lambda *_: Refuted(0.5, error))
    request = Request(examine(as_picture(photograph(40, 40))))
    values = {"kernel": operators.gaussian_kernel(3.0), "kernel_doubt": 0.1}
    narrower = blurs._held_against_the_picture({"kernel": "gaussian:3"}, values, request)
    assert narrower["kernel_doubt"] == used and "used instead" in request.notes[-1]


@pytest.mark.parametrize("bits", [8, 16])
def test_a_picture_too_small_for_an_estimate_has_the_noise_of_its_rounding(bits: int) -> None:
    found_noise = blurs._noise(examine(Picture(np.full((8, 8, 1), 0.5, np.float32), bits=bits)))
    assert found_noise == NoiseEstimate(0.0, 0.0, rounding(bits))


def test_what_tasks_say_of_themselves() -> None:
    said = {name: (task.is_picture, task.in_containers, task.amplifies, task.plugins) for name, task in TASKS.items()}
    usual = (True, True, False, ())
    assert said == {
        "sr": usual,
        "deblur-gaussian": (True, True, True, ()),
        "deblur-motion": (True, True, True, ()),
        "deblur": (True, True, True, ()),
        "inpaint": usual,
        "cs": (False, True, False, ()),
        "colourise": usual,
        "denoise": usual,
        "jpeg": (True, False, False, ("cells",)),
    }
    assert {name: task.weak_noise for name, task in TASKS.items() if task.weak_noise} == {"denoise": 1.5 / 255}
