"""Benchmarks: degradations are what they say, calls and what the user is left with are counted right, records are kept."""

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))  # programs, not a package

import blur_confidence
import no_harm
import real
from common import read_crop
from mild_kinds import KINDS, draw, enlarge, factor_of, seed_of
from real_rows import FILES, MARGIN, SIDE, Row, centre, gaussian, line, nothing, rows, scratch_mask, scratched, white, write

from leader.forensics.defects.drawing import is_drawing
from leader.pictures import from_pil
from leader.restoration.diagnose import diagnose
from tests.forensics.fields import colour

CROP = Image.fromarray(colour(192, 7))


def test_a_crop_is_the_middle_at_half_size(tmp_path: Path) -> None:
    pixels = np.zeros((500, 700, 3), np.uint8)
    pixels[150:350, 250:450] = 200  # at half size 75 to 175 and 125 to 225
    Image.fromarray(pixels).save(tmp_path / "one.png")
    crop = np.asarray(read_crop(tmp_path / "one.png", 120))
    assert crop.shape == (120, 120, 3) and (crop[14:106, 14:106] == 200).all() and crop[4, 4].max() == crop[115, 60].max() == 0


def test_every_kind_is_made_and_is_the_same_again() -> None:
    for kind, make in KINDS.items():
        one, other = (make(CROP, seed_of(Path("a.jpg"), kind)) for _ in range(2))
        assert one.size == CROP.size and np.array_equal(np.asarray(one), np.asarray(other)), kind
        assert (getattr(one, "format", None) == "JPEG") == ("JPEG" in kind)
    assert is_drawing(from_pil(draw(CROP, np.random.default_rng(0))).pixels) and not is_drawing(from_pil(CROP).pixels)
    factors = {factor_of(np.random.default_rng(seed)) for seed in range(20)}
    assert factors == {1.5, 2.0}


def test_an_enlarged_picture_has_no_detail_beyond_that_of_the_small_one() -> None:
    for seed in range(4):
        factor = factor_of(np.random.default_rng(seed))
        plane = np.asarray(enlarge(CROP, np.random.default_rng(seed)).convert("L"), float)
        power = np.abs(np.fft.fft2(plane * np.outer(np.hanning(192), np.hanning(192)))) ** 2
        frequency = np.abs(np.fft.fftfreq(192))
        beyond = frequency > 1.3 * 0.5 / factor
        whole = np.abs(np.fft.fft2(np.asarray(CROP.convert("L"), float) * np.outer(np.hanning(192), np.hanning(192)))) ** 2
        assert power[beyond].sum() < 0.2 * whole[beyond].sum()


def test_what_is_called_and_what_may_be() -> None:
    noisy = Image.fromarray(
        (np.asarray(CROP) + np.random.default_rng(0).normal(0, 20, (192, 192, 3))).clip(0, 255).astype(np.uint8)
    )
    assert no_harm.list_calls(diagnose(noisy).findings) == ["noisy"]
    assert no_harm.list_calls(diagnose(CROP).findings) == []
    assert no_harm.list_truths("enlarged, JPEG 85", 1.5) == {"JPEG", "enlarged 1.5"}
    assert no_harm.list_truths("old", 2.0) == {"noisy"} and no_harm.list_truths("soft", 2.0) == set()


def test_the_table_counts_wrong_calls_and_losses(capsys: pytest.CaptureFixture[str]) -> None:
    row: dict[str, Any] = {"photograph": "a", "kind": "soft", "calls": [], "wrong": [], "task": None, "gain": 0.0}
    rows = [row, {**row, "calls": ["blurred"], "wrong": ["blurred"], "task": "deblur", "gain": -0.7}, {**row, "kind": "old"}]
    no_harm.print_table(rows)
    said = capsys.readouterr().out
    assert "| soft | 2 | blurred 1 | 1 | left 1, deblur 1 | -0.70 | -0.70 |" in said
    assert "3 pictures; called something that they are not: 1 (33.3 %)" in said
    assert "worse by more than 0.5 dB: 1; worst -0.70 dB" in said


def test_a_picture_that_is_left_gains_nothing(tmp_path: Path) -> None:
    Image.fromarray(colour(400, 7)).save(tmp_path / "one.png")
    row = no_harm.measure_picture(tmp_path / "one.png", "as it is")
    assert row["task"] is None and row["gain"] == 0 and row["wrong"] == []


@pytest.mark.parametrize(("family", "width", "spread"), [("gaussian", 2.0, 4.0), ("disk", 3.0, 9 / 4), ("line", 9.0, None)])
def test_kernels_have_the_moments_of_their_shapes(family: str, width: float, spread: float | None) -> None:
    """Along an axis: s^2 of a Gaussian, r^2 / 4 of a disk, l^2 / 12 of a line along itself; sharing adds up to 1 / 6."""
    taps = blur_confidence.make_kernel(family, width, 30.0)
    reach = len(taps) // 2
    rows, columns = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    assert taps.sum() == pytest.approx(1) and (taps * rows).sum() == pytest.approx(0, abs=1e-6)
    if spread is not None:
        assert spread <= (taps * rows**2).sum() <= spread + 0.2 and (taps * columns**2).sum() <= spread + 0.2
    else:
        along = columns * np.cos(np.pi / 6) - rows * np.sin(np.pi / 6)
        assert 81 / 12 <= (taps * along**2).sum() <= 81 / 12 + 0.2, "upwards to the right"


def record(truth: list[Any], found: list[list[Any]], enlarged: float | None = None) -> dict[str, Any]:
    return {"truth": truth, "found": found, "enlarged": enlarged}


def test_a_choice_is_right_by_family_width_and_angle() -> None:
    line = [["gaussian", 2.0, 0.0, 5.0, 0.05], ["line", 9.0, 175.0, 30.0, 0.02]]
    for truth, right in (
        (["line", 10.0, 3.0], True),
        (["line", 12.0, 175.0], False),
        (["line", 9.0, 40.0], False),
        (["gaussian", 9.0, 0.0], False),
        (["none", 0.0, 0.0], False),
    ):
        judged = blur_confidence.judge_record(record(truth, line))
        assert judged is not None and judged[1] is right, truth
    assert blur_confidence.judge_record(record(["line", 9.0, 175.0], line, enlarged=2.0)) is None
    assert blur_confidence.judge_record(record(["line", 9.0, 175.0], [["disk", 3.0, 0.0, -4.0, 0.1]])) is None


def test_the_map_is_that_which_the_pictures_were_drawn_from() -> None:
    rng = np.random.default_rng(0)
    described = np.stack([rng.uniform(0.5, 1, 40000), rng.uniform(0, 1, 40000)], 1)
    truth = np.array([-1.5, 4.0])
    chance = described[:, 0] / (1 + np.exp(1.5 - 4 * described[:, 1]))
    assert blur_confidence.confidence_of(described, truth) == pytest.approx(chance)
    assert blur_confidence.fit_odds(described, (rng.random(40000) < chance).astype(float)) == pytest.approx(truth, abs=0.15)
    apart = blur_confidence.fit_odds(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([0.0, 1.0]))
    assert np.isfinite(apart).all() and apart[0] < 0 < apart[1]


def test_no_more_is_stated_than_so_many_right_ones_tell() -> None:
    stated, right = np.array([0.9, 0.99, 0.95, 0.5]), np.array([0.0, 1.0, 1.0, 1.0])
    assert blur_confidence.count_surest(stated, right) == pytest.approx(1 - 1 / 4)
    assert blur_confidence.count_surest(stated, np.ones(4)) == pytest.approx(1 - 1 / 6)


PIXELS = ndimage.gaussian_filter(np.random.default_rng(0).random((SIDE + 2 * MARGIN,) * 2 + (3,)), (3, 3, 0)) * 255


def test_rows_have_names_of_their_own_and_all_are_there() -> None:
    names = [row.name for row in rows()]
    assert len(names) == len(set(names))
    for wanted in ("gaussian 1.5", "gaussian 2.5", "motion 9", "motion 15", "salt and pepper", "small, nearest", "poisson"):
        for file in FILES:
            assert any(name.startswith(f"{wanted}, {file}") for name in names), (wanted, file)
    assert sum(name.startswith("jpeg") for name in names) == 6
    assert sum("too wide" in name for name in names) == 16 and sum("kernel auto" in name for name in names) == 20


def test_kernels_are_as_wide_as_they_say() -> None:
    """A Gaussian's root mean square radius is sqrt(2) s, that of a line its length / sqrt(12)."""
    assert real.width(gaussian(2.5)) == pytest.approx(np.sqrt(2) * 2.5, rel=0.01)
    assert real.width(line(15)) == pytest.approx(15 / np.sqrt(12), rel=0.02)
    down, across = np.indices(line(15).shape) - line(15).shape[0] // 2
    assert float((line(15) * -down * across).sum()) > 0, "upwards to the right"


def test_noise_and_scratches() -> None:
    noisy = white(25)(PIXELS, np.random.default_rng(1))
    assert noisy.shape == (SIDE, SIDE, 3) and (noisy - centre(PIXELS)).std() == pytest.approx(25, rel=0.02)
    known = np.asarray(scratch_mask(np.random.default_rng(4))) > 0
    made = scratched(PIXELS, np.random.default_rng(4))
    assert (made[~known] == 235).all() and (made[known] == centre(PIXELS)[known]).all() and 0.9 < known.mean() < 1


def test_files_are_what_they_are_called(tmp_path: Path) -> None:
    for file in FILES:
        path = write(centre(PIXELS), file, tmp_path)
        with Image.open(path) as image:
            assert image.format == ("JPEG" if re.fullmatch(r"jpeg \d+", file) else "PNG")
            error = np.abs(np.asarray(image).astype(float) - centre(PIXELS))
        assert (error.max() <= 0.5) == (file == "png")


def result(**changes: Any) -> dict[str, Any]:
    plain = {"row": "jpeg 40", "nothing": [30.0, 0.2], "simple": {"median": 29.0, "nl means": 31.0}, "seconds": 2.0}
    return {**plain, "restored": [32.0, 0.1], "verdict": "fine", "sigma": 0.1, "level": None, "widths": None, **changes}


def test_what_was_not_written_counts_as_nothing() -> None:
    assert real.delivered(result()) == [32.0, 0.1] == real.delivered(result(verdict="doubtful"))
    refused = {key: value for key, value in result(refused="No.").items() if key not in ("restored", "verdict")}
    for item in (result(verdict="failed"), refused, result(restored=None)):
        assert real.delivered(item) == [30.0, 0.2]
    it = real.summary([result(), result(verdict="failed"), refused, result(restored=[28.9, 0.5], verdict="fine")])
    assert (it["failed"], it["doubtful"], it["refused"], it["unsaid"], it["count"]) == (1, 0, 1, 1, 4)
    assert it["gain"] == pytest.approx((2 - 1.1) / 4) and it["least"] == pytest.approx(-1.1)
    assert (it["tool"], it["simple"]) == ("nl means", 31.0)
    assert real.unsaid(result(restored=[28.9, 0.5])) and not real.unsaid(result(restored=[29.1, 0.5]))
    assert not real.unsaid(result(restored=[20.0, 0.5], verdict="doubtful"))


def test_the_bars() -> None:
    kernel = gaussian(2)
    chosen = [
        Row("gaussian 2", "png", "kernel auto", nothing, "deblur", {"kernel": "auto"}, kernel),
        Row("noise 20", "jpeg 75", "", white(20), "denoise", level=20),
    ]
    kept = [result(row=chosen[0].name, widths=[2.0, other]) for other in (2.3, 2.5)]
    kept += [result(row=chosen[1].name, restored=[29.8, 0.19], measured=noise, level=0.1) for noise in (0.114, 0.12)]
    text = "\n".join(real.table(kept, chosen))
    assert (
        "| gaussian 2, kernel auto | +2.00, 0.200 to 0.100 |" in text and "| noise 20 |  |  | -0.20, 0.200 to 0.190 |" in text
    )
    assert "1 of 2 ['noise 20, jpeg 75']" in text, "0.2 dB below nothing, and LPIPS only 5 % better"
    assert "1 of 2 crops within 20 % of the width (at least 80 %), 0 refused (at most 20 %)" in text
    assert (
        "within 15 %: 1 of 2" in text and "best simple tool: 1 of 2; better are noise 20, jpeg 75 (nl means, +1.20 dB)" in text
    )


def test_a_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def measure(path: Path, row: Row, quality: str | None, keep: Path | None) -> dict[str, Any]:
        asked.append(row.name)
        return {key: value for key, value in result(sigma=np.pi).items() if key != "row"}

    monkeypatch.setattr(real, "measure", measure)
    chosen, records = rows()[:2], tmp_path / "r" / "real.jsonl"
    for names in (chosen[:1], chosen, chosen):
        real.run([Path("a.png")], names, None, records, None, again=False)
    assert asked == [row.name for row in chosen]
    kept = real.read(records)
    assert [key[2] for key in kept] == ["standard"] * 2 and kept["a", chosen[0].name, "standard"]["sigma"] == 3.1416
    real.run([Path("a.png")], chosen[:1], "draft", records, None, again=False)
    real.run([Path("a.png")], chosen[:1], None, records, None, again=True)
    assert len(asked) == 4 and len(real.read(records)) == 3, "another quality is another record, a run again is not"


def test_the_committed_records_are_those_of_the_table() -> None:
    names = {row.name for row in rows()}
    assert {row for _, row, _ in real.read(real.RECORDS)} <= names
