"""What an examination says of a picture, and how much of that is true: the outcomes of benchmarks/constants.py."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from constants_inputs import Truth
from no_harm import list_calls
from PIL import Image
from real_rows import gaussian, line

from leader.forensics.blur import doubt, periodogram, width
from leader.forensics.blur.search import BlurSearch
from leader.forensics.examination import examine, found_or_none
from leader.forensics.findings import collect_findings
from leader.forensics.jpeg import coefficients
from leader.operators.kernels import disk_kernel
from leader.pictures import from_pil
from leader.restoration.diagnose import advise

NEAR, SAME = 0.2, 0.05
"""Relative differences within which a number is right, and has not changed."""
TOO_WIDE = 1.5
"""Times the width of a blur that a restoration is given beside the true one."""


@dataclass(frozen=True)
class Outcome:
    """What is said of a picture, words and numbers, and how much of it is true, less what is not."""

    said: dict[str, Any]
    score: int


def describe_outcome(image: Image.Image, truth: Truth) -> Outcome:
    """All findings of a picture, what is advised, and what restorations ask besides, with a score."""
    examination = examine(from_pil(image))
    if not truth.looked:
        examination.__dict__["blur"] = BlurSearch(None, "No blur was looked for.")
    found, noise = collect_findings(examination), found_or_none(examination.noise)
    advice, amplified = advise(found), found_or_none(examination.amplified_noise)
    calls = set(list_calls(found))
    said: dict[str, Any] = {"calls": sorted(calls), "advice": advice and advice.task, "share": found.defect_share}
    score = len(calls & truth.calls) - len(calls - truth.calls)
    if noise is not None and amplified is not None:
        kinds = [noise.spectrum is not None, noise.shot is not None, noise.grey is not None]
        levels = {"level": found.noise_level, "compression": noise.compression, "removed": noise.raised().white}
        said |= {"kinds": kinds, **levels, "amplified": amplified.sigma}
        score += truth.level is not None and is_near(found.noise_level, truth.level)
    blur = found.blur.blur
    if blur is not None:
        said |= {"family": blur.shape.family, "width": blur.shape.width, "error": blur.error, "confidence": blur.confidence}
        score += truth.blur is not None and blur.shape.family == truth.blur[0] and is_near(blur.shape.width, truth.blur[1])
    if examination.history is not None:
        read = coefficients.read_coefficients(examination.picture.pixels, examination.history)
        exact = float(np.mean([plane.exact.mean() for plane in read.planes]))
        said |= {
            "quality": read.history.quality,
            "sampling": read.history.sampling,
            "offset": read.history.offset,
            "exact": exact,
        }
    if truth.kernel is not None:
        kernel = examination.recognise_kernel(truth.kernel[1])
        best = max(kernel.probabilities, key=lambda name: kernel.probabilities[name])
        said |= {"best": best, "down": kernel.down.split(":")[0], "doubt": kernel.doubt, "misread": kernel.misread}
        score += best == truth.kernel[0]
    if truth.blur is not None and noise is not None:
        more, right = describe_given_kernels(periodogram.luma_plane(examination.picture.pixels), noise, *truth.blur)
        said, score = said | more, score + right
    return Outcome(said, int(score))


def describe_given_kernels(luma: Any, noise: Any, family: str, true: float) -> tuple[dict[str, Any], int]:
    """What is found where people give the kernel, the true one and one that is too wide."""
    said: dict[str, Any] = {}
    score = 0
    for times in (1.0, TOO_WIDE):
        make = {"gaussian": gaussian, "line": line}.get(family)
        kernel = disk_kernel(true * times) if make is None else torch.from_numpy(make(true * times))
        better, judged = width.find_better_width(luma, kernel, noise), width.judge_width(luma, kernel, noise)
        said[f"factor {times}"] = None if better is None else better.factor
        said[f"odds {times}"] = None if judged is None else [one and one > 0 for one in (judged.odds, judged.sharp)]
        score += is_near(1.0 if better is None else better.factor, 1 / times)
        if times == 1:
            power = doubt.doubt_power(kernel, doubt.scene_behind(luma, kernel, noise), 0.05, luma.shape)
            said["doubt of kernel"] = math.sqrt(float(power.mean()))
    return said, score


def is_near(found: float, truth: float, within: float = NEAR) -> bool:
    return abs(found - truth) <= within * abs(truth)


def compare_outcomes(usual: Outcome, moved: Outcome | None) -> str:
    """A sign: better, worse, other, failed, or the same."""
    if moved is None:
        return "!"
    if moved.score != usual.score:
        return "+" if moved.score > usual.score else "-"
    same = usual.said.keys() == moved.said.keys() and all(
        is_near(moved.said[name], value, SAME)
        if isinstance(value, float) and isinstance(moved.said[name], float)
        else moved.said[name] == value
        for name, value in usual.said.items()
    )
    return "." if same else "="
