"""The tasks: one entry each, the same options for restoring and degrading, one story of names."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import leader
from leader import operators, presets
from leader.errors import LeaderError, UsageError
from leader.forensics import Examination, examine
from leader.operators import build_task
from leader.operators.tasks import VARIANTS, list_options
from leader.pictures import Picture
from leader.pictures.container import Measurement
from leader.restoration import invention
from leader.restoration.borders import extended_blur
from leader.restoration.degrade import degrade
from leader.restoration.pose import pose_picture
from leader.restoration.request import RestoreRequest
from leader.restoration.restore import prepare, restore
from leader.restoration.tasks import TASKS, Request, find_task, task_options
from tests.cheap_prior import CheapPrior, photograph
from tests.restoration.repeating import repeat


def picture(height: int = 32, width: int = 40, channels: int = 3) -> Picture:
    return Picture(photograph(height, width, channels).permute(1, 2, 0).numpy())


def test_presets_and_people_use_the_same_names() -> None:
    """A task in a preset can be asked for by that name, and an operator that is built has a name presets may use."""
    assert set(TASKS) == set(operators.TASKS)
    for entry in presets.entries():
        if entry.get("task", "any") != "any":
            find_task(entry["task"])
    for name, (task, fixed) in VARIANTS.items():
        built = operators.build_task(name, (3, 16, 16), factor=2)
        assert built.task == name and built.task == operators.build_task(task, (3, 16, 16), factor=2, **fixed).task


def test_a_variant_is_a_task_with_an_option_fixed() -> None:
    by_name = restore(photograph(16, 16), "sr-average", factor=2, sigma=0.05, prior=CheapPrior(), steps=3)
    by_option = restore(photograph(16, 16), "sr", down="average", factor=2, sigma=0.05, prior=CheapPrior(), steps=3)
    bicubic = restore(photograph(16, 16), "sr-bicubic", factor=2, sigma=0.05, prior=CheapPrior(), steps=3)
    assert np.array_equal(by_name.array, by_option.array) and not np.array_equal(by_name.array, bicubic.array)
    assert by_name.task == "sr" and by_name.summary()["operator"] == "sr-average"
    with pytest.raises(UsageError, match="means down = average"):
        restore(photograph(16, 16), "sr-average", down="bicubic", prior=CheapPrior())


def test_names_and_options_that_are_wrong() -> None:
    with pytest.raises(UsageError, match="did you mean 'deblur-motion'"):
        task_options("deblur-moton", {})
    with pytest.raises(UsageError, match="did you mean 'sr'"):
        find_task("super-resolution")
    with pytest.raises(UsageError, match="did you mean 'kernel'"):
        restore(photograph(16, 16), "deblur", kernle="gaussian:1", prior=CheapPrior())  # type: ignore[call-arg]
    for task in TASKS.values():
        request = Request(examine(picture()), seed=0)
        own = {option.name for option in task.options}
        for name in {"factor", "down", "kernel", "mask", "ratio", "order"} - own:
            with pytest.raises(UsageError, match=f"no use for a {name}"):
                task.read({name: "gaussian:1"}, request)


EXACT: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("sr", {"factor": 2, "down": "bicubic"}, {"factor": 2}),
    ("sr", {"factor": 2, "down": "lanczos"}, {"factor": 2, "down": "lanczos"}),
    ("deblur-gaussian", {"kernel": "gaussian:1.5"}, {"std": 1.5}),
    ("deblur-gaussian", {}, {}),
    ("deblur-motion", {}, {"seed": 7}),
    ("deblur", {"kernel": np.ones((3, 2))}, {"kernel": torch.ones(3, 2)}),
    ("inpaint", {"mask": np.eye(32, 64) < 1}, {"mask": torch.from_numpy((np.eye(32, 64) < 1).astype(np.float32))}),
    ("cs", {"ratio": 0.3}, {"ratio": 0.3, "seed": 7}),
    ("cs", {"ratio": 0.3, "order": "sequency"}, {"ratio": 0.3, "seed": 7, "order": "sequency"}),
    ("colourise", {}, {}),
    ("denoise", {}, {}),
]


@pytest.mark.parametrize(("task", "given", "numbers"), EXACT)
def test_a_measurement_is_that_of_the_named_operator(task: str, given: dict[str, Any], numbers: dict[str, Any]) -> None:
    x = photograph(32, 64)
    made = degrade(x, task, exact=True, seed=7, **given)
    assert made.measurement.image_shape == (3, 32, 64) and made.measurement.sigma == 0
    expected = operators.build_task(task, (3, 32, 64), **numbers).A(x[None])
    assert isinstance(made.content, Measurement)
    assert torch.equal(made.measurement.y, expected)
    assert set(made.measurement.options) <= set(list_options(task))
    assert torch.equal(made.measurement.operator().A(x[None]), expected)


@pytest.mark.parametrize(("task", "given"), [(task, given) for task, given, _ in EXACT if task != "cs"])
def test_a_restoration_assumes_what_the_camera_did(task: str, given: dict[str, Any]) -> None:
    """The operator a picture is read with, applied to the scene, gives the degraded picture."""
    scene = 0.2 + 0.6 * photograph(32, 64)
    given = {"kernel": np.array([[1.0, 2, 0, 0, 0], [0, 3, 1, 1, 0], [0, 0, 2, 0, 1]])} if task == "deblur-motion" else given
    seen = degrade(scene, task, **given).picture
    posed = pose_picture(seen, task, 0.0, {**given, "kernel_doubt": 0} if task.startswith("deblur") else given)
    if posed.window is None:
        again = posed.problem.operator.A(2 * scene[None] - 1)
        assert float((again - posed.problem.y).abs().max()) <= 1e-5
    else:  # inside, where no border is blurred in
        kernel = TASKS[task].read(given, Request(examine(seen)))["kernel"]
        operator, window = extended_blur((3, 32, 64), kernel, task)
        x = torch.zeros(1, *operator.image_shape)
        window.crop(x).copy_(scene)
        reach = max(posed.options["kernel"].shape) // 2 + 1
        inside = (..., slice(reach, 32 - reach), slice(reach, 64 - reach))
        torch.testing.assert_close(window.crop(operator.A(x))[inside], window.crop(posed.problem.y)[inside] / 2 + 0.5)


def test_in_memory_and_file_agree(tmp_path: Path) -> None:
    from leader.pictures import read_picture
    from leader.pictures.container import read_container
    from leader.restoration.degrade import degrade_file

    made = leader.degrade(photograph(32, 32), "sr", sigma=0.05, seed=2, factor=2)
    degrade_file(photograph(32, 32), tmp_path / "a.png", "sr", sigma=0.05, seed=2, factor=2)
    assert np.abs(made.picture.pixels - read_picture(tmp_path / "a.png").pixels).max() <= 0.51 / 65535
    whole = leader.degrade(photograph(32, 32), "sr", sigma=0.05, seed=2, factor=2, exact=True)
    degrade_file(photograph(32, 32), tmp_path / "a.npz", "sr", sigma=0.05, seed=2, factor=2)
    assert torch.equal(whole.measurement.y, read_container(tmp_path / "a.npz").y)
    whole.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert made._repr_png_() is not None and whole._repr_png_() is None
    assert "Degraded sr, sigma 0.05" in repr(made) and "Measurement sr" in repr(whole)
    with pytest.raises(UsageError, match="not a picture"):
        _ = whole.picture
    with pytest.raises(UsageError, match="not a measurement"):
        _ = made.measurement


def test_degrading_draws_with_its_seed() -> None:
    first = degrade(photograph(32, 32), "deblur-motion", seed=3)
    assert first.notes == ("The motion kernel is motion:3.",)
    assert np.array_equal(first.picture.pixels, degrade(photograph(32, 32), "deblur-motion", kernel="motion:3").picture.pixels)
    noisy = [degrade(photograph(32, 32), "denoise", sigma=0.05, seed=seed).picture.pixels for seed in (0, 0, 1)]
    assert np.array_equal(noisy[0], noisy[1]) and not np.array_equal(noisy[0], noisy[2])
    assert float((noisy[0] - noisy[2]).std()) == pytest.approx(0.05 * 2**0.5, rel=0.1)
    with pytest.raises(UsageError, match="integer from 0"):
        degrade(photograph(32, 32), "denoise", seed=-1)


def test_nothing_is_seen_of_missing_pixels() -> None:
    """Not even their noise, in pictures and in measurements."""
    mask = np.random.default_rng(0).random((32, 40)) > 0.5
    for exact in (False, True):
        made = degrade(0.3 + 0.4 * photograph(32, 40), "inpaint", sigma=0.05, mask=mask, exact=exact)
        seen = made.measurement.y[0].permute(1, 2, 0).numpy() if exact else made.picture.pixels
        assert np.abs(seen[~mask]).max() == 0 and seen[mask].min() > 0


def test_defaults() -> None:
    values = TASKS["sr"].read({}, Request(examine(picture()), seed=0))
    assert values == {"factor": 4, "down": "bicubic"}
    assert TASKS["sr"].read({}, Request(examine(picture())))["down"] == examine(picture()).recognise_kernel(4).down
    assert TASKS["sr"].shape(picture(), values) == (3, 128, 160)
    assert TASKS["colourise"].shape(picture(channels=1), {}) == (3, 32, 40)
    coloured = pose_picture(picture(), "colourise", 0.05, {}).problem.y  # of colours the mean is measured
    assert torch.allclose(coloured, 2 * photograph(32, 40).mean(0)[None, None] - 1, atol=1e-6)
    taps = TASKS["deblur-gaussian"].read({}, Request(examine(picture())))["kernel"]
    torch.testing.assert_close(taps, operators.gaussian_kernel(10.0, 5))


def test_what_cannot_be_degraded() -> None:
    with pytest.raises(UsageError, match="not a picture"):
        degrade(photograph(32, 32), "cs")
    with pytest.raises(UsageError, match="needs a mask"):
        degrade(photograph(32, 32), "inpaint")
    with pytest.raises(LeaderError, match="grey already"):
        degrade(photograph(32, 32, 1), "colourise")
    with pytest.raises(UsageError, match=r"\(0, 1\]"):
        degrade(photograph(32, 32), "cs", exact=True, ratio=1.5)
    with pytest.raises(UsageError, match="order of coefficients"):
        degrade(photograph(32, 32), "cs", exact=True, order="chaos")


def test_masks_that_look_inverted_are_doubted() -> None:
    given = picture()
    hole = np.ones((32, 40))
    hole[5:9, 6:12] = 0
    assert pose_picture(given, "inpaint", 0.01, {"mask": hole}).notes == ()
    note, _ = pose_picture(given, "inpaint", 0.01, {"mask": 1 - hole}).notes
    assert "98 % of the picture unknown" in note and "is the mask inverted?" in note
    painted = given.pixels.copy()
    painted[:16] = 1  # half of it is painted over in white, and the mask marks the paint
    half = np.zeros((32, 40))
    half[:16] = 1
    note, also = pose_picture(Picture(painted), "inpaint", 0.01, {"mask": half}).notes
    assert also == invention.NOTE
    assert "one colour" in note and "inverted" in note
    alpha = Picture(given.pixels, (1 - hole).astype(np.float32))
    assert any("unknown" in note for note in pose_picture(alpha, "inpaint", 0.01, {}).notes)
    with pytest.raises(LeaderError, match=r"give the noise level \(0 for none\), and see that the mask is white"):
        pose_picture(given, "inpaint", None, {"mask": 1 - hole})


def test_a_result_beyond_the_largest_picture_is_refused_whatever_its_sides() -> None:
    task = find_task("sr")
    for size in ((600, 600), (10, 40_000)):
        with pytest.raises(LeaderError, match="crop the picture or use a smaller factor"):
            task.shape(Picture(np.zeros((*size, 1), np.float32)), {"factor": 16})
    assert task.shape(Picture(np.zeros((499, 500, 1), np.float32)), {"factor": 16}) == (1, 7984, 8000)
    with pytest.raises(LeaderError, match="16 x 16386 pixels; crop"):  # its weights along the side would fill the memory
        task.shape(Picture(np.zeros((8193, 8, 1), np.float32)), {"factor": 2})
    assert task.shape(Picture(np.zeros((8192, 8, 1), np.float32)), {"factor": 2}) == (1, 16384, 16)


def test_a_kernel_that_is_told_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(*_: object) -> None:
        raise AssertionError("nobody asked")

    monkeypatch.setattr(Examination, "recognise_kernel", looked)
    request = Request(examine(Picture(np.random.default_rng(0).random((40, 40, 3), np.float32))))
    values = find_task("sr").read({"down": "nearest", "factor": 4}, request)
    assert values["down"] == "soft-nearest" and request.doubts[0] > 0
    assert find_task("sr").read({"down": "lanczos", "factor": 2}, request)["down"] == "lanczos"


@pytest.mark.parametrize("ratio", [0, 0.0, -0.1, 1.01, True, "1"])
def test_a_share_of_coefficients_is_more_than_none(ratio: object) -> None:
    with pytest.raises(UsageError, match=r"must lie in \(0, 1\]"):
        find_task("cs").read({"ratio": ratio}, Request(examine(Picture(np.zeros((8, 8, 1), np.float32))), 0))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [({"factor": 1.5}, (30, 36)), ({"factor": 2.3}, (46, 55)), ({"size": "33x71"}, (33, 71)), ({"size": (20, 49)}, (20, 49))],
)
def test_the_result_has_the_size_asked_for(asked: dict[str, Any], expected: tuple[int, int]) -> None:
    small = photograph(24, 20)
    done = restore(small, "sr", sigma=0.02, down="lanczos", steps=3, prior=CheapPrior(), check=False, **asked)
    assert done.picture.size == expected == RestoreRequest(**asked).find_size((20, 24))
    operator = build_task("sr", (3, expected[1], expected[0]), down="lanczos", small=(24, 20))
    x = torch.rand(1, 3, expected[1], expected[0], generator=torch.Generator().manual_seed(1))
    ready = prepare(small, "sr", sigma=0.02, down="lanczos", prior=CheapPrior(), **asked)
    assert torch.equal(ready.problem.operator.A(x), operator.A(x))


def test_a_side_that_is_left_out_keeps_proportions_and_others_are_told() -> None:
    wide = photograph(16, 24)
    for size, expected in (("60x", (60, 40)), ("x40", (60, 40)), ((48, 32), (48, 32))):
        ready = prepare(wide, "sr", sigma=0.02, size=size, prior=CheapPrior())
        assert ready.size == expected and not any("proportions" in note for note in ready.notes)
    stretched = prepare(wide, "sr", sigma=0.02, size="60x60", prior=CheapPrior())
    assert stretched.size == (60, 60) and any("60x40" in str(getattr(note, "remedy", "")) for note in stretched.notes)


def test_a_run_to_a_size_is_repeated() -> None:
    _, again, _ = repeat(photograph(16, 20), "sr", size="33x21", steps=3)
    assert again.picture.size == (33, 21)


@pytest.mark.parametrize(
    "asked",
    [
        *({"factor": factor} for factor in (0.5, 17, float("nan"))),
        *({"size": size} for size in ("10x10", "big", "x", "0x40", (40,), "-40x40", "9999x20", f"{'9' * 5000}x40")),
        {"size": "40x40", "factor": 2},
    ],
)
def test_nonsense_is_refused_in_one_sentence(asked: dict[str, Any]) -> None:
    with pytest.raises(LeaderError) as caught:
        prepare(photograph(16, 20), "sr", sigma=0.02, prior=CheapPrior(), **asked)
    assert len(str(caught.value).splitlines()) == 1
