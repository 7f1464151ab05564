"""benchmarks/real.py: its degradations are what they say, its records are kept, its table counts what the user is left with."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

pytest.importorskip("skimage")
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))  # programs, not a package

import real
from real_rows import FILES, MARGIN, SIDE, Row, centre, gaussian, line, nothing, rows, scratch_mask, scratched, white, write

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


def record(**changes: Any) -> dict[str, Any]:
    plain = {"row": "jpeg 40", "nothing": [30.0, 0.2], "simple": {"median": 29.0, "nl means": 31.0}, "seconds": 2.0}
    return {**plain, "restored": [32.0, 0.1], "verdict": "fine", "sigma": 0.1, "level": None, "widths": None, **changes}


def test_what_was_not_written_counts_as_nothing() -> None:
    assert real.delivered(record()) == [32.0, 0.1] == real.delivered(record(verdict="doubtful"))
    refused = {key: value for key, value in record(refused="No.").items() if key not in ("restored", "verdict")}
    for item in (record(verdict="failed"), refused, record(restored=None)):
        assert real.delivered(item) == [30.0, 0.2]
    it = real.summary([record(), record(verdict="failed"), refused, record(restored=[28.9, 0.5], verdict="fine")])
    assert (it["failed"], it["doubtful"], it["refused"], it["unsaid"], it["count"]) == (1, 0, 1, 1, 4)
    assert it["gain"] == pytest.approx((2 - 1.1) / 4) and it["least"] == pytest.approx(-1.1)
    assert (it["tool"], it["simple"]) == ("nl means", 31.0)
    assert real.unsaid(record(restored=[28.9, 0.5])) and not real.unsaid(record(restored=[29.1, 0.5]))
    assert not real.unsaid(record(restored=[20.0, 0.5], verdict="doubtful"))


def test_the_bars() -> None:
    kernel = gaussian(2)
    chosen = [
        Row("gaussian 2", "png", "kernel auto", nothing, "deblur", {"kernel": "auto"}, kernel),
        Row("noise 20", "jpeg 75", "", white(20), "denoise", level=20),
    ]
    kept = [record(row=chosen[0].name, widths=[2.0, other]) for other in (2.3, 2.5)]
    kept += [record(row=chosen[1].name, restored=[29.8, 0.19], sigma=sigma, level=0.1) for sigma in (0.114, 0.12)]
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
        return {key: value for key, value in record(sigma=np.pi).items() if key != "row"}

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
