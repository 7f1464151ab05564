"""Is the stated confidence of a blur how often it is right? Blurred, enlarged, soft and sharp photographs without a task.

    python benchmarks/blur_confidence.py run photos/calib       searches what is not recorded
    python benchmarks/blur_confidence.py table --part val       stated confidence beside how often it was right, by bins
    python benchmarks/blur_confidence.py fit --part calib       the map from odds and width to a confidence

Crops of benchmarks/mild_kinds.py, of whose kinds those without old, drawn and grey ones; and behind Gaussians (1 to 3
pixels), disks (1.8 to 5) and straight motions (5 to 17, any angle), with noise of up to 2 grey levels, as pixels and behind
JPEG 75 to 95. A choice is right where its family is, its width is within 20 % and its angle within 15 degrees. What is known
to be enlarged is not searched for a blur, and does not count. Records, in benchmarks/records/blur-confidence.jsonl, hold the
candidates, so that a new map needs no new search.
"""

import math
from collections import defaultdict
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from common import Record, add_missing, compress, locate_records, read_crop, read_records, to_image
from mild_kinds import KINDS, SIDE, Rng, factor_of, seed_of
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage, optimize

from leader.forensics import examine
from leader.forensics.blur.candidates import Found, candidates
from leader.forensics.blur.evidence import PRIOR_MEAN, Scene
from leader.forensics.blur.periodogram import luma_plane
from leader.forensics.blur.search import choose_candidate, describe_choice, state_confidence
from leader.forensics.blur.shapes import Shape
from leader.forensics.findings import SURE_UNASKED
from leader.forensics.noise.estimate import NoiseEstimate
from leader.pictures import from_pil

RECORDS = locate_records("blur-confidence")
MARGIN = 32
WIDTHS = {"gaussian": (1.0, 3.0), "disk": (1.8, 5.0), "line": (5.0, 17.0)}
BLURRED = tuple(f"{family}{file}" for family in WIDTHS for file in ("", " JPEG"))
MILD = tuple(kind for kind in KINDS if kind not in ("old", "drawn", "grey"))
BINS = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
PRIOR = 0.005
"""Of the square of a weight, in log-likelihood: next to nothing, but weights stay finite where the right ones stand apart."""
Array = NDArray[np.float64]

app = typer.Typer(add_completion=False, help=__doc__)


def make_kernel(family: str, width: float, angle: float) -> Array:
    """Taps [n, n] of sum 1: points of a fine grid, each shared among its four neighbours."""
    reach = math.ceil(4 * width if family == "gaussian" else width) + 1
    if family == "line":
        along = np.linspace(-width / 2, width / 2, 2001)
        down, across = -along * math.sin(math.radians(angle)), along * math.cos(math.radians(angle))
        weight = np.ones_like(along)
    else:
        steps = np.arange(-reach + 1, reach - 1, 1 / 16) + 1 / 32
        down, across = (plane.reshape(-1) for plane in np.meshgrid(steps, steps, indexing="ij"))
        far = np.hypot(down, across)
        weight = np.exp(-((far / width) ** 2) / 2) if family == "gaussian" else (far <= width).astype(float)
    taps = np.zeros((2 * reach + 1,) * 2)
    top, left = np.floor(down).astype(int), np.floor(across).astype(int)
    for i, j in np.ndindex(2, 2):
        share = (1 - np.abs(down - top - i)) * (1 - np.abs(across - left - j))
        np.add.at(taps, (top + i + reach, left + j + reach), weight * share)
    found: Array = taps / taps.sum()
    return found


def blur_crop(path: Path, kind: str, rng: Rng) -> tuple[Image.Image, list[Any]]:
    """A blurred crop, and (family, width, angle) of its kernel."""
    family, low_high = kind.split()[0], WIDTHS[kind.split()[0]]
    width, angle = float(np.exp(rng.uniform(*np.log(low_high)))), float(rng.uniform(0, 180))
    pixels = np.asarray(read_crop(path, SIDE + 2 * MARGIN), np.float64)
    taps = make_kernel(family, width, angle)
    blurred = np.stack([ndimage.convolve(pixels[..., channel], taps) for channel in range(3)], -1)
    blurred = blurred[MARGIN:-MARGIN, MARGIN:-MARGIN]
    blurred = blurred + rng.uniform(0, 2) * rng.standard_normal(blurred.shape)
    image = to_image(blurred)
    return compress(image, int(rng.integers(75, 96))) if kind.endswith("JPEG") else image, [family, width, angle]


def search_picture(path: Path, kind: str) -> Record:
    rng = seed_of(path, kind)
    truth: list[Any] = ["none", 0.0, 0.0]
    if kind in BLURRED:
        image, truth = blur_crop(path, kind, rng)
    else:
        image = KINDS[kind](read_crop(path, SIDE), rng)
        if kind.startswith("enlarged"):
            truth = ["enlarged", factor_of(seed_of(path, kind)), 0.0]
    examination = examine(from_pil(image))
    noise = examination.noise
    assert isinstance(noise, NoiseEstimate)
    found = [
        [one.shape.family, one.shape.width, one.shape.angle, one.evidence, one.width_error]
        for one in candidates(luma_plane(examination.picture.pixels), noise)
    ]
    return {"truth": truth, "enlarged": examination.enlargement, "found": found}


def judge_record(record: Record) -> tuple[tuple[float, float], bool] | None:
    """What the confidence of a record's choice follows from, and whether it is right; None where no blur is chosen."""
    if record["enlarged"] is not None or not record["found"]:
        return None
    scene = Scene(PRIOR_MEAN)
    kept = tuple(Found(Shape(name, width, turn), proof, error, scene) for name, width, turn, proof, error in record["found"])
    chosen, ahead = choose_candidate(kept)
    if ahead is None:
        return None
    family, width, angle = record["truth"]
    turned = abs((chosen.shape.angle - angle + 90) % 180 - 90)
    right = chosen.shape.family == family and abs(chosen.shape.width / width - 1) <= 0.2
    return describe_choice(chosen, ahead), right and (family != "line" or turned <= 15)


@app.command()
def run(photographs: Path, every: Annotated[int, typer.Option(help="Of so many photographs one.")] = 1) -> None:
    """Searches every kind of the photographs of a folder; its name is that of the part."""
    pairs = [(path, kind) for path in sorted(photographs.iterdir())[::every] for kind in (*BLURRED, *MILD)]
    what = {"part": photographs.name}
    jobs = (({**what, "photograph": path.name, "kind": kind}, partial(search_picture, path, kind)) for path, kind in pairs)
    add_missing(RECORDS, jobs)


@app.command()
def table(part: Annotated[str, typer.Option(help="val, calib or test.")] = "val") -> None:
    """How often choices were right, by stated confidence; what was named, by kind."""
    rows = [(record["kind"], judge_record(record)) for record in read_records(RECORDS) if record["part"] == part]
    stated = [(state_confidence(*judged[0]), judged[1]) for _, judged in rows if judged is not None]
    print("| stated | pictures | mean stated | right |\n|---|---:|---:|---:|")
    for low, high in pairwise(BINS):
        inside = [one for one in stated if low <= one[0] < high]
        if inside:
            said, right = np.mean(np.array(inside, dtype=float), axis=0)
            print(f"| {100 * low:.0f} to {100 * high:.0f} % | {len(inside)} | {100 * said:.1f} % | {100 * right:.1f} % |")
    kinds: dict[str, list[bool | None]] = defaultdict(list)
    for kind, judged in rows:
        named = judged is not None and state_confidence(*judged[0]) >= SURE_UNASKED
        kinds[kind].append(judged[1] if named and judged is not None else None)
    print("\n| kind | pictures | named | right |\n|---|---:|---:|---:|")
    for kind, right in kinds.items():
        print(f"| {kind} | {len(right)} | {len(right) - right.count(None)} | {right.count(True)} |")


@app.command()
def fit(part: Annotated[str, typer.Option(help="val, calib or test.")] = "calib") -> None:
    """Prints the log odds of a blur at the least width, what a width e times as large adds, and the largest confidence."""
    records = [record for record in read_records(RECORDS) if record["part"] == part]
    judged = [found for record in records if (found := judge_record(record)) is not None]
    described, right = np.array([one[0] for one in judged]), np.array([float(one[1]) for one in judged])
    weights = fit_odds(described, right)
    surest = count_surest(confidence_of(described, weights), right)
    print(f"{len(records)} pictures, {int(right.sum())} of {len(right)} choices right")
    print(f"least_odds = {weights[0]:.2f}, odds_by_width = {weights[1]:.2f}, surest = {surest:.3f}")


def confidence_of(described: Array, weights: Array) -> Array:
    """The confidence [N] of choices [N, 2] with two weights, without a limit."""
    found: Array = described[:, 0] / (1 + np.exp(-weights[0] - weights[1] * described[:, 1]))
    return found


def fit_odds(described: Array, right: Array) -> Array:
    """The weights [2] under which choices [N, 2] that are right [N] or not are likeliest."""

    def surprise(weights: Array) -> float:
        chance = confidence_of(described, weights).clip(1e-9, 1 - 1e-9)
        return float(-np.log(np.where(right > 0, chance, 1 - chance)).sum() + PRIOR * (weights**2).sum())

    found: Array = optimize.minimize(surprise, np.zeros(2)).x
    return found


def count_surest(stated: Array, right: Array) -> float:
    """1 - 1 / (n + 2), of the n surest choices before the first wrong one: what so many right ones can tell (Laplace)."""
    order = np.argsort(-stated, kind="stable")
    wrong = np.nonzero(right[order] == 0)[0]
    return 1 - 1 / ((int(wrong[0]) if len(wrong) else len(right)) + 2)


if __name__ == "__main__":
    app()
