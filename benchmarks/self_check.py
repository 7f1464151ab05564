"""Does the verdict know when a restoration went wrong? Runs with right and wrong settings, and how many it recognises.

    python benchmarks/self_check.py --photographs DIR... --part val|first|third [--runs N]  makes the runs that are not yet kept
    python benchmarks/self_check.py                                                  judges the kept ones, prints the rates

Parts of 64 x 64 pixels of photographs, a plain or a textured one of each, are degraded and restored with the default method
and quality. Ruined: 3 dB below the given picture (super-resolution: below bicubic interpolation). The limits of the verdict
were set on the runs of `val`, validation photographs, and `first`, some of the training photographs; those of `third`,
photographs of the folders calib and test, on which no limit was ever set, are the test. Records hold the numbers that
`judge` takes, so limits can be tried without running anything again (benchmarks/self_check_fit.py).
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import Record, add_missing, compress, locate_records, measure_psnr, read_records, to_image
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy import stats

RECORDS = locate_records("self-check")
SIDE, MARGIN = 64, 16
ROUNDS = {"val": 6, "first": 6, "third": 7}
"""How many photographs see each case, by part."""
FIRST = {"val": 0, "first": 120, "third": 0}
"""The first photograph that is used: those before it have been looked at."""
PARTS = {
    "third": "fresh photographs, the test",
    "first": "training photographs, which set the limits",
    "val": "validation photographs, which set the limits",
}
LEAST = 1e-6
"""Mean squared error of 60 dB, the most that counts: rounding alone leaves 59."""
CLEAN = 40.0
"""PSNR in dB above which nobody sees a difference: what was 60 dB and became 45 is no ruin."""
Pixels = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """One way to go right or wrong.

    right    whether everything that was said to the restoration is true
    halved   whether the photograph is halved first: the photographs are JPEGs, and a clean picture must not be one
    spoil    the photograph with a margin of MARGIN pixels [H, W, 3] in [0, 1] -> the given picture, 8 bits
    choices  arguments of `prepare`
    """

    name: str
    right: bool
    spoil: Callable[[Pixels, np.random.Generator], Image.Image]
    choices: dict[str, Any] = field(default_factory=dict)
    halved: bool = False


def _centre(pixels: Pixels) -> Pixels:
    return pixels[MARGIN:-MARGIN, MARGIN:-MARGIN]


def _blurred(pixels: Pixels, said: str) -> Pixels:
    """The centre, blurred with its true surroundings."""
    from leader.restoration.arguments import as_kernel

    kernel = as_kernel(said)
    whole = torch.from_numpy(pixels.transpose(2, 0, 1).copy())[:, None]
    sides = (kernel.shape[1] // 2,) * 2 + (kernel.shape[0] // 2,) * 2
    padded = torch.nn.functional.pad(whole, sides, mode="replicate")
    blurred = torch.nn.functional.conv2d(padded, kernel.to(whole).flip(0, 1)[None, None])[:, 0]
    return _centre(blurred.permute(1, 2, 0).numpy())


def _image(pixels: Pixels, rng: np.random.Generator, noise: float = 0.0, jpeg: int | None = None) -> Image.Image:
    noisy = pixels + noise * rng.standard_normal(pixels.shape) if noise else pixels
    image = to_image(255 * noisy)
    return image if jpeg is None else compress(image, jpeg).convert("RGB")


def blur(std: float, noise: float = 0.0, jpeg: int | None = None) -> Callable[[Pixels, np.random.Generator], Image.Image]:
    return smeared(f"gaussian:{std}", noise, jpeg)


def smeared(kernel: str, noise: float = 0.0, jpeg: int | None = None) -> Callable[[Pixels, np.random.Generator], Image.Image]:
    return lambda pixels, rng: _image(_blurred(pixels, kernel), rng, noise, jpeg)


def plain(noise: float = 0.0, jpeg: int | None = None) -> Callable[[Pixels, np.random.Generator], Image.Image]:
    return lambda pixels, rng: _image(_centre(pixels), rng, noise, jpeg)


def small(
    factor: int, noise: float = 0.0, jpeg: int | None = None, how: Image.Resampling = Image.Resampling.BICUBIC
) -> Callable[[Pixels, np.random.Generator], Image.Image]:
    def spoil(pixels: Pixels, rng: np.random.Generator) -> Image.Image:
        image = _image(_centre(pixels), rng).resize((SIDE // factor,) * 2, how)
        return _image(np.asarray(image) / 255, rng, noise, jpeg)

    return spoil


def blotched(pixels: Pixels, rng: np.random.Generator) -> Image.Image:
    """Noise of 0.04 in blotches of about two pixels."""
    field = rng.standard_normal((SIDE + 2, SIDE + 2, 3))
    blotches = sum(field[row : row + SIDE, column : column + SIDE] for row in range(3) for column in range(3)) / 3
    return _image(_centre(pixels) + 0.04 * blotches, rng)


def photons(pixels: Pixels, rng: np.random.Generator) -> Image.Image:
    """Noise that grows with the light: 100 photons in white."""
    return _image(rng.poisson(100 * _centre(pixels)) / 100, rng)


def _scratches(rng: np.random.Generator) -> tuple[Image.Image, Image.Image]:
    """(mask, white where known; scratches of several greys)."""
    mask, paint = Image.new("L", (SIDE, SIDE), 255), Image.new("L", (SIDE, SIDE), 0)
    for _ in range(5):
        ends = [tuple(point) for point in rng.integers(0, SIDE, (2, 2)).tolist()]
        ImageDraw.Draw(mask).line(ends, fill=0, width=2)
        ImageDraw.Draw(paint).line(ends, fill=int(rng.integers(200, 256)), width=2)
    return mask, paint


def scratched(pixels: Pixels, rng: np.random.Generator) -> Image.Image:
    image = _image(_centre(pixels), rng)
    mask, paint = _scratches(rng)
    image.paste(Image.merge("RGB", [paint] * 3), mask=mask.point(lambda value: 255 - value))
    return image


def _mask(inverted: bool) -> Callable[[np.random.Generator], NDArray[np.float32]]:
    def draw(rng: np.random.Generator) -> NDArray[np.float32]:
        known: NDArray[np.float32] = (np.asarray(_scratches(rng)[0]) / 255).astype(np.float32)
        return np.asarray(1 - known if inverted else known, dtype=np.float32)

    return draw


def _deblur(std: float, **more: Any) -> dict[str, Any]:
    return {"task": "deblur-gaussian", "kernel": f"gaussian:{std}", **more}


def _line(length: float) -> dict[str, Any]:
    return {"task": "deblur-motion", "kernel": f"line:{length}:30"}


CASES = (
    Case("deblur: noise 0.02, sigma given", True, blur(1.5, 0.02), _deblur(1.5, sigma=0.02)),
    Case("deblur: kernel 1.5 x too wide, sigma estimated", False, blur(1.5), _deblur(2.25)),
    Case("denoise: noise 0.1, sigma estimated", True, plain(0.1), {"task": "denoise"}),
    Case("deblur: JPEG 75, sigma estimated", False, blur(1.5, jpeg=75), _deblur(1.5)),
    Case("sr: sigma estimated", True, small(2), {"task": "sr", "factor": 2}),
    Case("deblur: sharp picture, sigma estimated", False, plain(), _deblur(1.5)),
    Case("inpaint: scratches", True, scratched, {"task": "inpaint", "sigma": 0.0, "mask": _mask(False)}),
    Case("inpaint: inverted mask", False, scratched, {"task": "inpaint", "sigma": 0.0, "mask": _mask(True)}),
    Case("deblur: sigma estimated", True, blur(1.5), _deblur(1.5)),
    Case("deblur: JPEG 95, sigma estimated", False, blur(1.5, jpeg=95), _deblur(1.5)),
    Case("denoise: noise 0.05, sigma given", True, plain(0.05), {"task": "denoise", "sigma": 0.05}),
    Case("deblur: noise 0.02, sigma 0", False, blur(1.5, 0.02), _deblur(1.5, sigma=0.0)),
    Case("sr: noise 0.02, sigma given", True, small(2, 0.02), {"task": "sr", "factor": 2, "sigma": 0.02}),
    Case("sr: nearest-neighbour thumbnail", False, small(2, how=Image.Resampling.NEAREST), {"task": "sr", "factor": 2}),
    Case("deblur: noise 0.05, sigma estimated", True, blur(1.5, 0.05), _deblur(1.5)),
    Case("deblur: noise 0.02, sigma half", False, blur(1.5, 0.02), _deblur(1.5, sigma=0.01)),
    Case("inpaint: scratches, sigma estimated", True, scratched, {"task": "inpaint", "mask": _mask(False)}),
    Case("deblur: noise 0.02, kernel 1.5 x too wide", False, blur(1.5, 0.02), _deblur(2.25, sigma=0.02)),
    Case("denoise: clean picture", False, plain(), {"task": "denoise"}, halved=True),
    Case("deblur: noise 0.02, sigma double", False, blur(1.5, 0.02), _deblur(1.5, sigma=0.04)),
    Case("deblur: kernel 1.5 x too narrow", False, blur(1.5), _deblur(1)),
    Case("denoise: noise 0.1, sigma half", False, plain(0.1), {"task": "denoise", "sigma": 0.05}),
    Case("denoise: noise 0.05, sigma double", False, plain(0.05), {"task": "denoise", "sigma": 0.1}),
    Case("denoise: noise 0.05, JPEG 75", False, plain(0.05, 75), {"task": "denoise"}),
    Case("sr: JPEG 75", False, small(2, jpeg=75), {"task": "sr", "factor": 2}),
    Case("deblur: kernel 2.5, noise 0.01, sigma given", True, blur(2.5, 0.01), _deblur(2.5, sigma=0.01)),
    Case("denoise: noise 0.02, sigma 0.1", False, plain(0.02), {"task": "denoise", "sigma": 0.1}),
    Case("sr: factor 4, sigma given", True, small(4), {"task": "sr", "factor": 4, "sigma": 0.0}),
    Case("sr: noise 0.05, sigma 0", False, small(2, 0.05), {"task": "sr", "factor": 2, "sigma": 0.0}),
    Case("denoise: noise 0.02, sigma estimated", True, plain(0.02), {"task": "denoise"}),
    Case("deblur: kernel 2.25, sigma estimated", True, blur(2.25), _deblur(2.25)),
    Case("deblur: kernel 1, noise 0.01, sigma estimated", True, blur(1, 0.01), _deblur(1)),
    Case("deblur: line of 7, noise 0.01, sigma estimated", True, smeared("line:7:30", 0.01), _line(7)),
    Case("deblur: line 1.6 x too long, sigma estimated", False, smeared("line:5:30"), _line(8)),
    Case("denoise: blotches of 0.04, sigma estimated", True, blotched, {"task": "denoise"}),
    Case("denoise: noise of light, sigma estimated", True, photons, {"task": "denoise"}),
)


def part(path: Path, textured: bool, halved: bool = False) -> Pixels:
    """A part of a photograph with its margin: the most textured of a raster of places, or the median one."""
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB").reduce(2 if halved else 1), dtype=np.float64) / 255
    side = SIDE + 2 * MARGIN
    places = [
        (top, left) for top in range(0, pixels.shape[0] - side + 1, SIDE) for left in range(0, pixels.shape[1] - side + 1, SIDE)
    ]
    order = sorted(places, key=lambda place: _texture(pixels[place[0] :, place[1] :][:side, :side]))
    top, left = order[-1] if textured else order[len(order) // 2]
    return pixels[top : top + side, left : left + side]


def _texture(pixels: Pixels) -> float:
    return float(np.abs(np.diff(_centre(pixels), axis=0)).mean())


def planned(count: int, rounds: int) -> list[tuple[int, int, bool]]:
    """(case, photograph, textured) of every run, such that any beginning of the list is balanced."""
    return [
        (case, (2 * case + 7 * turn) % count, (case + turn) % 2 == 1) for turn in range(rounds) for case in range(len(CASES))
    ]


def run_one(case: Case, path: Path, textured: bool, number: int, prior: Any) -> dict[str, Any]:
    from leader.restoration.restore import restore

    truth = part(path, textured, case.halved)
    given = case.spoil(truth, np.random.default_rng(number))
    choices = dict(case.choices)
    if callable(choices.get("mask")):
        choices["mask"] = choices["mask"](np.random.default_rng(number))
    restored = restore(given, prior=prior, seed=number, threads=1, **choices)
    centre = np.round(255 * _centre(truth)) / 255
    shown = np.asarray(given.resize((SIDE, SIDE), Image.Resampling.BICUBIC)) / 255
    assert restored.verdict is not None
    return {
        "number": number,
        "psnr_given": round(measure_psnr(shown, centre, LEAST), 3),
        "psnr": round(measure_psnr(np.asarray(restored.image) / 255, centre, LEAST), 3),
        "numbers": {name: value and float(f"{value:.5g}") for name, value in restored.verdict.numbers.items()},
    }


def make(photographs: list[Path], part_name: str, runs: int) -> None:
    """Makes the runs of a part that are missing among the first `runs`."""
    from leader.priors.loading import load_prior

    paths = [path for folder in photographs for path in sorted(folder.glob("*.jpg"))][FIRST[part_name] :]
    prior = load_prior("embedded")

    def list_jobs() -> Iterator[tuple[Record, Callable[[], Record]]]:
        for number, photograph, textured in planned(len(paths), ROUNDS[part_name])[:runs]:
            case, path = CASES[number], paths[photograph]
            what = {"part": part_name, "case": case.name, "photograph": path.stem, "textured": textured}
            yield what, partial(run_one, case, path, textured, photograph + FIRST[part_name], prior)

    add_missing(RECORDS, list_jobs())


def upper_bound(count: int, total: int, confidence: float = 0.95) -> float:
    """Clopper and Pearson's one-sided upper bound of a rate of which `count` of `total` were seen."""
    return 1.0 if count >= total else float(stats.beta.ppf(confidence, count + 1, total - count))


@dataclass(frozen=True)
class Judged:
    """A record, judged: the part it is of, how many dB the restoration gained, and the verdict's level now."""

    case: Case
    psnr: float
    gain: float
    level: str
    part: str
    reasons: tuple[str, ...]


def judged(rows: Iterable[dict[str, Any]]) -> list[Judged]:
    from leader.trust import judge

    cases = {case.name: case for case in CASES}
    found = []
    for row in rows:
        verdict = judge(row["numbers"])
        gain = row["psnr"] - row["psnr_given"]
        found.append(Judged(cases[row["case"]], row["psnr"], gain, verdict.level, row["part"], verdict.reasons))
    return found


def _rate(title: str, rows: list[Judged], bound: bool = False) -> str:
    failed, doubtful = (sum(row.level == level for row in rows) for level in ("failed", "doubtful"))
    if not rows:
        return f"{title}: no runs"
    text = f"{title}: failed {failed} of {len(rows)} ({100 * failed / len(rows):.1f} %), doubtful {doubtful}"
    return text + (f"; failed at most {100 * upper_bound(failed, len(rows)):.1f} % (95 %)" if bound else "")


def report(rows: list[Judged]) -> str:
    lost = [row for row in rows if row.gain <= -3]
    lines = [
        _rate("ruined (3 dB and more below the given picture)", lost),
        _rate(f"  of these below {CLEAN:.0f} dB", [row for row in lost if row.psnr < CLEAN]),
        _rate("1 to 3 dB below", [row for row in rows if -3 < row.gain <= -1]),
        _rate("false alarms, not harmed (above -1 dB)", [row for row in rows if row.gain > -1], True),
        _rate("  of these with right settings", [row for row in rows if row.gain > -1 and row.case.right], True),
        _rate("  of these with wrong settings", [row for row in rows if row.gain > -1 and not row.case.right], True),
    ]
    return "\n".join(lines)


def table(rows: list[Judged]) -> str:
    lines = ["| case | runs | gain in dB: least, median | ruined | fine | doubtful | failed |", "|---|---|---|---|---|---|---|"]
    for case in CASES:
        own = [row for row in rows if row.case is case]
        if own:
            gains = [row.gain for row in own]
            counts = [sum(row.level == level for row in own) for level in ("fine", "doubtful", "failed")]
            ruined = sum(gain <= -3 for gain in gains)
            cells = (case.name, len(own), f"{min(gains):.1f}, {np.median(gains):.1f}", ruined, *counts)
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photographs", type=Path, nargs="+", help="folders of photographs (.jpg)")
    parser.add_argument("--part", choices=list(ROUNDS), default="val", help="what the runs are for")
    parser.add_argument("--runs", type=int, default=10**9, help="how many runs of the part there should be")
    arguments = parser.parse_args()
    if arguments.photographs is not None:
        make(arguments.photographs, arguments.part, arguments.runs)
    everything = judged(read_records(RECORDS))
    for name, words in PARTS.items():
        chosen = [row for row in everything if row.part == name]
        print(f"## {words}: {len(chosen)} runs\n\n```text\n{report(chosen)}\n```\n\n{table(chosen)}\n")
