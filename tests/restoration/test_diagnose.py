"""diagnose: what is found, in words and JSON, and commands that run."""

import io
import json
import shlex
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

import leader
from leader.errors import LeaderError, UsageError
from leader.forensics import NotExamined, examine
from leader.forensics.blur.search import Blur, BlurSearch
from leader.forensics.blur.shapes import Shape
from leader.forensics.defects.defects import Defects
from leader.forensics.findings import VISIBLE_NOISE, Findings, collect_findings
from leader.forensics.noise.estimate import NoiseEstimate
from leader.messages import Note
from leader.pictures import Picture
from leader.pictures.jpeg_history import JpegHistory
from leader.restoration.diagnose import Advice, Diagnosis, NothingToRepairError, advise, check_advised, diagnose
from leader.restoration.restore import restore
from leader.trust.judging import Level, Verdict
from tests.cheap_prior import CheapPrior
from tests.forensics.blur.fields import field
from tests.forensics.jpegs import photograph

FIELDS: dict[str, type | tuple[type, ...]] = {
    "leader": str,
    "file": (str, type(None)),
    "size": list,
    "bits": int,
    "grey": bool,
    "jpeg": (dict, type(None)),
    "noise": (dict, type(None)),
    "blur": (dict, type(None)),
    "blur_seen": str,
    "enlarged": (float, type(None)),
    "defects": dict,
    "missing": float,
    "advice": (dict, type(None)),
    "words": list,
    "drawing": bool,
    "dithered": bool,
}


def scene(side: int = 192, seed: int = 0) -> NDArray[np.float64]:
    """A random scene in colour [side, side, 3], 0..255."""
    grey = field(seed=seed, side=side, noise=0.0) - 0.5
    tint = field(seed=seed + 1, side=side, noise=0.0) - 0.5
    return np.asarray(255 * (0.5 + 1.5 * np.stack([grey + 0.3 * tint, grey, grey - 0.3 * tint], axis=2)))


def image(values: NDArray[np.float64]) -> Image.Image:
    return Image.fromarray(values.round().clip(0, 255).astype(np.uint8))


def jpeg(picture: Image.Image, quality: int, **options: Any) -> Image.Image:
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=quality, **options)
    return Image.open(buffer)


def checked(found: Diagnosis) -> dict[str, Any]:
    """Its JSON, whose fields are what the documentation says."""
    content: dict[str, Any] = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert list(content) == list(FIELDS) and content["leader"] == "diagnosis 1"
    for name, kinds in FIELDS.items():
        assert isinstance(content[name], kinds), name
    assert content["words"] == found.in_words().splitlines()
    return content


def test_a_clean_picture_gets_no_advice() -> None:
    found = diagnose(image(scene()))
    content = checked(found)
    assert found.advice is None and found.command is None and content["advice"] is None
    assert content["size"] == [192, 192] and not content["grey"] and content["jpeg"] is None and content["blur"] is None
    assert "use --task to say what to do" in found.in_words("terminal")


def test_a_blurred_picture() -> None:
    found = diagnose(image(ndimage.gaussian_filter(scene(), (2, 2, 0))))
    content = checked(found)
    blur = content["blur"]
    assert set(blur) == {"family", "width", "angle", "width_error", "confidence", "kernel"}
    assert blur["family"] == "gaussian" and blur["width"] == pytest.approx(2, rel=0.1) and blur["angle"] is None
    assert 0.7 <= blur["confidence"] < 1 and 0 < blur["width_error"] < 0.4
    assert found.advice is not None and blur["width_error"] / blur["width"] == pytest.approx(
        found.advice.options["kernel_doubt"], abs=1e-3
    ), "in pixels"
    assert found.advice.task == "deblur" and found.advice.options["kernel"] == blur["kernel"]
    assert content["advice"]["command"] == found.command
    assert "standard deviation 2.0 pixels" in found.in_words()


def test_a_noisy_picture() -> None:
    noisy = scene() + 20 * np.random.default_rng(0).standard_normal((192, 192, 3))
    found = diagnose(image(noisy))
    content = checked(found)
    assert content["noise"]["level"] == pytest.approx(20 / 255, rel=0.15) and content["noise"]["visible"]
    assert content["noise"]["white"] and content["noise"]["kind"] == "white"
    assert found.advice == Advice("denoise")


def test_a_jpeg_and_its_copy() -> None:
    file = jpeg(image(scene()), 40)
    content = checked(diagnose(file))
    assert content["jpeg"]["quality"] == 40 and content["jpeg"]["sampling"] == "4:2:0" and not content["jpeg"]["resaved"]
    assert content["jpeg"]["visible"] and content["jpeg"]["error"] > 0.012
    assert checked(diagnose(jpeg(image(scene()), 40, subsampling=1)))["jpeg"]["sampling"] == "4:2:2"
    copy = checked(diagnose(file.convert("RGB")))
    assert copy["jpeg"]["resaved"] and abs(copy["jpeg"]["quality"] - 40) <= 6
    assert "was a JPEG before" in " ".join(copy["words"])


@pytest.mark.parametrize("levels", [2, 4])
def test_dithering_is_neither_noise_nor_blur(levels: int) -> None:
    """Ordered: thresholds in squares of 4 pixels, whose diagonals look like those of a motion."""
    order = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]]) / 16 + 1 / 32
    shades = np.asarray(image(scene()).convert("L").crop((0, 0, 192, 160))) / 255 * (levels - 1)
    dithered = np.floor(shades) + (shades % 1 > np.tile(order, (40, 48)))
    found = diagnose(Image.fromarray(np.round(dithered * 255 / (levels - 1)).astype(np.uint8)))
    content = checked(found)
    assert content["dithered"] and content["blur"] is None and content["jpeg"] is None and found.advice is None
    assert f"only {levels} levels" in found.in_words() and not checked(diagnose(image(scene())))["dithered"]


def test_an_enlarged_picture_is_told_and_not_enlarged_again() -> None:
    found = diagnose(image(scene(96)).resize((192, 192), Image.Resampling.BICUBIC))
    assert checked(found)["enlarged"] == pytest.approx(2, rel=0.02) and found.advice is None
    assert "This picture was only enlarged, by about 2." in found.sentences()
    assert "96 x 96" in found.in_words()


def test_holes_and_grey() -> None:
    pixels = np.full((192, 192, 4), 255, np.uint8)
    pixels[..., :3] = np.asarray(image(scene()))
    pixels[50:70, 60:90, 3] = 0
    found = diagnose(Image.fromarray(pixels))
    assert checked(found)["missing"] == pytest.approx(600 / 192**2)
    assert found.advice is None and "task='inpaint'" in found.in_words()  # a cut-out keeps its transparency
    pixels[..., 3] = 0
    assert "100 %" in diagnose(Image.fromarray(pixels)).in_words()
    grey = diagnose(image(scene()).convert("L").convert("RGB"))
    assert checked(grey)["grey"] and "colourise" in grey.in_words() and grey.advice is None


def test_repairs_follow_each_other_and_the_first_is_the_advice() -> None:
    noisy = scene() + 20 * np.random.default_rng(0).standard_normal((192, 192, 3))
    torn = np.full((192, 192, 4), 255, np.uint8)
    torn[..., :3] = np.asarray(image(noisy))
    torn[50:70, 60:90, 3] = 0
    cut_out = diagnose(Image.fromarray(torn))
    assert cut_out.repairs == (Advice("denoise"),)  # and stays transparent
    peppered = replace(cut_out.findings, missing=0.0, defects=("salt and pepper",), defect_share=0.01)
    both = Diagnosis(peppered, advise(peppered))
    assert [repair.task for repair in both.repairs] == ["inpaint", "denoise"] and both.repairs[0] == both.advice
    assert diagnose(image(noisy)).repairs == (Advice("denoise"),) and diagnose(image(scene())).repairs == ()


@pytest.mark.parametrize(
    "pixels",
    [
        *(np.zeros((8, 8, 3), np.uint8), np.full((8, 300, 3), 255, np.uint8), np.full((100, 100), 0.5, np.float32)),
        *(np.zeros((70, 70, 4), np.uint8), (np.random.default_rng(0).random((80, 80)) * 65535).astype(np.uint16)),
        np.random.default_rng(0).random((64, 65, 2)).astype(np.float32),
    ],
    ids=["tiny", "narrow", "flat grey", "transparent", "16 bits", "grey with alpha"],
)
def test_odd_pictures_get_an_answer(pixels: NDArray[Any]) -> None:
    checked(diagnose(pixels))


def test_pictures_that_cannot_be_served_are_refused_in_a_sentence() -> None:
    with pytest.raises(LeaderError, match="at least 8 x 8"):
        diagnose(np.zeros((4, 4), np.uint8))


def test_commands_are_quoted_for_a_shell() -> None:
    advice = Advice("deblur", {"kernel": "line:9:40", "kernel_doubt": 0.05})
    command = advice.command("it's $HOME.jpg", "-out.png")
    assert shlex.split(command) == [
        *("leader", "restore", "it's $HOME.jpg", "./-out.png"),
        *("--task", "deblur", "--kernel", "line:9:40", "--kernel-doubt", "0.05"),
    ]


@pytest.mark.parametrize(
    ("kinds", "share", "told"),
    [
        *((("scratches",), 0.003, False), (("scratches",), 0.005, True), (("dead pixels",), 0.0001, True)),
        *((("salt and pepper", "scratches"), 0.001, True), (("salt and pepper",), 0.4, False)),
        *((("torn areas",), 0.4, True), (("torn areas",), 0.6, False)),
    ],
)
def test_a_stray_scratch_and_a_picture_of_defects_are_not_told(
    kinds: tuple[str, ...], share: float, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(pixels: NDArray[np.float32], *_: object) -> Defects:
        known = np.ones(pixels.shape[:2], bool)
        known.reshape(-1)[: round(share * known.size)] = False
        return Defects(known, kinds)

    monkeypatch.setattr("leader.forensics.examination.find_defects", found)
    findings = diagnose(image(scene(128))).findings
    assert (findings.defects == kinds) is told and (findings.defect_share > 0) is told


def test_without_a_task_a_picture_gets_what_is_advised_and_is_never_enlarged() -> None:
    noisy = image(scene() + np.random.default_rng(0).normal(0, 25, (192, 192, 3)))
    advised, plain = (
        leader.restore(noisy, task, prior=CheapPrior(), method="ddnm", steps=2, check=False) for task in (None, "denoise")
    )
    assert advised.task == "denoise" and advised.picture.size == noisy.size
    assert np.array_equal(advised.array, plain.array)
    assert advised.notes[1:] == plain.notes and advised.notes[0].endswith("use task='denoise' to ask for the same.")
    file = jpeg(noisy.crop((0, 0, 96, 72)), 60)
    careful = leader.prepare(file, prior=CheapPrior())
    traceless, free = (leader.prepare(file, prior=CheapPrior(), jpeg=care, clipped=not care) for care in (False, True))
    assert traceless.sigma != careful.sigma == free.sigma
    assert careful.problem.censored is not None and free.problem.censored is None


def test_without_a_task_there_is_nothing_to_do_for_a_clean_picture_and_no_option_of_a_task() -> None:
    clean = image(scene())
    with pytest.raises(LeaderError, match=r"^Nothing was found to repair in this picture; choose a task"):
        leader.prepare(clean, prior=CheapPrior())
    with pytest.raises(UsageError, match=r"^The option factor belongs to a task"):
        leader.prepare(clean, prior=CheapPrior(), factor=2)


@pytest.mark.parametrize(
    ("kinds", "share", "jpeg", "drawing", "filled"),
    [
        *((("torn areas",), 8 / 192, False, False, False), (("torn areas",), 12 / 192, False, False, True)),
        *((("scratches",), 0.02, False, False, True), (("scratches",), 0.02, True, False, False)),
        *((("dead pixels",), 0.003, False, False, False), (("dead pixels",), 0.003, True, False, False)),
        *((("salt and pepper",), 0.003, True, False, True), (("salt and pepper",), 0.003, False, True, False)),
        *((("salt and pepper", "scratches"), 0.003, True, False, True), (("scratches",), 0.02, False, True, False)),
    ],
)
def test_what_may_be_content_is_told_and_not_filled_in(
    kinds: tuple[str, ...], share: float, jpeg: bool, drawing: bool, filled: bool
) -> None:
    """Small areas and lone dots may be lamps, lines in a JPEG wires; a corner that is gone is larger."""
    noise = NoiseEstimate(0.001, 0.02, 0.001)
    history = JpegHistory((16,) * 64) if jpeg else None
    found = Findings((192, 192), 8, False, replace(noise, history=history), BlurSearch(None, "?"), None, kinds, share, 0.0)
    said = Diagnosis(replace(found, drawing=drawing), advise(replace(found, drawing=drawing)))
    assert (said.advice == Advice("inpaint", {"mask": "auto"})) is filled
    assert any("It shows" in one for one in said.sentences()) is filled
    assert any("that may be" in one and "use task='inpaint'" in one for one in said.sentences()) is not filled


def test_the_dots_and_lines_of_a_drawing_are_not_filled_in() -> None:
    """A page: a photograph, and below it a plot with axes, a line and its markers on white paper."""
    plot = np.full((192, 192, 3), 255.0)
    plot[:60] = scene()[:60]
    plot[80:170, 20:22] = plot[168:170, 20:180] = 0
    plot[100:102, 30:180] = (200, 30, 30)
    plot[130:150:4, 30:180:5] = 0
    found = diagnose(image(plot))
    assert set(found.findings.defects) == {"scratches", "dead pixels"}  # what they would be in a photograph
    assert found.findings.drawing and found.as_dict()["drawing"]
    assert found.advice is None or found.advice.task != "inpaint"
    assert any("a drawing" in said for said in found.sentences())
    assert not diagnose(image(scene())).findings.drawing


def test_noise_that_shows_is_removed_before_a_blur_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    blurred = ndimage.gaussian_filter(scene(), (2, 2, 0))
    found = diagnose(image(blurred)).findings
    assert found.blur.blur is not None
    monkeypatch.setattr("leader.forensics.examination.find_blur", lambda *_, **__: found.blur)
    noisy = diagnose(image(blurred + np.random.default_rng(0).normal(0, 25, blurred.shape)))
    assert noisy.findings.blur.blur is not None and noisy.advice == Advice("denoise")


def test_noise_that_is_no_stronger_than_the_compression_is_not_removed() -> None:
    found = diagnose(jpeg(image(scene()), 50)).findings
    assert found.noise is not None and found.history is not None
    for share, noisy in ((1.2, False), (1.3, True)):
        weak = replace(found, noise=replace(found.noise, white=0.04, compression=0.04 / share))
        assert weak.noisy == noisy
        assert any("weak beside" in said for said in Diagnosis(weak, None, None).sentences()) != noisy


def test_the_detail_of_a_thumbnail_is_neither_noise_nor_specks_and_noise_of_its_colours_is() -> None:
    """A thumbnail of 28 x 25 pixels: there texture is as fine as noise, but without colour."""
    for number in (0, 1):
        small = photograph(number).resize((28, 25), Image.Resampling.LANCZOS)
        clean, compressed = diagnose(small), diagnose(jpeg(small, 90))
        assert clean.findings.noise_level > 2 * VISIBLE_NOISE and clean.advice is None
        assert "tiny" in [getattr(said, "code", "") for said in clean.sentences()]
        assert compressed.advice == Advice("jpeg") and (number == 0 or compressed.findings.defects)
        noise = 15 * np.random.default_rng(0).standard_normal((25, 28, 3))
        assert diagnose(image(np.asarray(small) + noise)).advice == Advice("denoise")


def test_compression_shows_from_its_limit_on() -> None:
    history = JpegHistory((16,) * 64)
    for error, shows in ((0.0119, False), (0.0121, True)):
        noise = NoiseEstimate(0.001, error, 0.001, history)
        found = Findings((64, 64), 8, False, noise, BlurSearch(None, ""), None, (), 0.0, 0.0)
        assert found.blocky == shows and Diagnosis(found, None).as_dict()["jpeg"]["visible"] == shows
        (sentence,) = [said for said in Diagnosis(found, None).sentences() if "JPEG" in said]
        assert ("which shows" in sentence) == shows and ("hardly" in sentence) != shows


def test_what_lies_in_a_hole_is_not_looked_at() -> None:
    pixels = np.full((96, 120, 3), 0.5, np.float32) + np.random.default_rng(1).normal(0, 0.01, (96, 120, 3)).astype(np.float32)
    pixels[:, 80:] += np.random.default_rng(0).normal(0, 0.3, (96, 40, 3)).astype(np.float32)
    alpha = np.ones((96, 120), np.float32)
    alpha[:, 80:] = 0.4
    examination = examine(Picture(pixels.clip(0, 1), alpha))
    found = collect_findings(examination)
    assert found.missing == pytest.approx(1 / 3) and found.noise_level < 0.02
    assert isinstance(examination.defects, NotExamined) and found.enlarged is None


def test_numbers_of_numpy_are_plain_in_json() -> None:
    """Measurements hand over NumPy's numbers, whose comparisons are NumPy's truth values."""
    noise = NoiseEstimate(np.float64(0.07), np.float32(0.02), 0.001, JpegHistory((16,) * 64, None, (1, 1)))  # type: ignore[arg-type]
    found = Findings((400, 300), 8, np.bool_(True), noise, BlurSearch(None, "?"), None, (), np.float32(0.25), 0.0)  # type: ignore[arg-type]
    content = json.loads(json.dumps(Diagnosis(found, None).as_dict(), allow_nan=False))
    assert content["grey"] is True and content["noise"]["visible"] is True and content["jpeg"]["visible"] is True
    assert content["defects"]["share"] == 0.25


def test_a_motion_along_rows_is_told_and_not_undone() -> None:
    found = diagnose(image(scene()))
    for angle, task in ((2.0, None), (92.0, None), (45.0, "deblur")):
        shape = Shape("line", 7.0, angle)
        blur = Blur(shape, 0.05, 0.95, cast(Any, None))
        assert (advise(replace(found.findings, blur=BlurSearch(blur, "A motion."))) is not None) is (task is not None)


@pytest.mark.parametrize(
    ("task", "level", "codes", "left"),
    [
        ("deblur", "doubtful", ["waves"], True),
        ("deblur", "fine", [], False),
        ("inpaint", "doubtful", ["invented", "misfit"], True),
        ("inpaint", "doubtful", ["invented"], False),
        ("inpaint", "failed", ["invented"], True),
        ("inpaint", "fine", [], False),
        ("jpeg", "failed", ["misfit"], False),
    ],
)
def test_what_nobody_asked_for_is_kept_only_if_nothing_but_invention_is_doubted(
    task: str, level: Level, codes: list[str], left: bool
) -> None:
    done = restore(image(scene()), "denoise", sigma=0.05, steps=2, prior=CheapPrior(), check=False)
    found = replace(diagnose(image(scene(64))), advice=Advice(task, {"kernel": "disk:3"}))
    verdict = Verdict(level, tuple(Note(code, code) for code in codes))
    judged = replace(done, verdict=verdict, posed=replace(done.posed, diagnosis=found))
    with pytest.raises(NothingToRepairError, match=f"judged {level}, so the picture is left") if left else nullcontext():
        check_advised(judged)
