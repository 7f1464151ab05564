"""Samples for trying the page: the photographs of the package, degraded as by `leader degrade`."""

from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from leader.pictures import Picture, read_picture, write_picture


@dataclass(frozen=True)
class Sample:
    """A photograph of the package, its degradation, and the proposed repair in the page's format."""

    title: str
    photograph: str
    repair: dict[str, Any]
    task: str
    sigma: float = 0.01
    options: dict[str, Any] = field(default_factory=dict)


_BLUR: dict[str, Any] = {"kernel": "gaussian:2"}
SAMPLES = {
    "small": Sample("Small", "BuddiesOfBudgie_5bf63903e7.png", {"kind": "small", "factor": 4}, "sr", 0.01, {"factor": 4}),
    "blurred": Sample(
        "Blurred", "BuddiesOfBudgie_e620f959a3.png", {"kind": "blurred", "blur": 2.0}, "deblur-gaussian", 0.01, _BLUR
    ),
    "noisy": Sample("Noisy", "BuddiesOfBudgie_a4823d5794.png", {"kind": "noisy"}, "denoise", 0.1),
    "torn": Sample("Scratched", "BuddiesOfBudgie_38d7effaac.png", {"kind": "missing"}, "scratch", 0.0),
    "grey": Sample("Grey", "BuddiesOfBudgie_5b325ab9d6.png", {"kind": "grey"}, "colourise", 0.005),
}


def make_sample(sample: Sample, path: Path) -> None:
    """Writes a sample as a PNG, always the same."""
    from leader.restoration.degrade import degrade

    with resources.as_file(resources.files("leader.samples") / "test" / sample.photograph) as file:
        if sample.task == "scratch":
            picture = _scratch(read_picture(file))
        else:
            picture = degrade(file, sample.task, sigma=sample.sigma, seed=0, **sample.options).picture
    target = path.with_suffix(".png")
    write_picture(target, picture)
    target.rename(path)


def _scratch(picture: Picture) -> Picture:
    """Two long transparent scratches: missing parts that need no brush."""
    width, height = picture.size
    rows, columns = np.mgrid[:height, :width] / np.array([height, width]).reshape(2, 1, 1)
    first = np.abs(columns - 0.3 - 0.25 * rows + 0.02 * np.sin(12 * rows)) < 0.02
    second = np.abs(rows - 0.75 + 0.3 * columns) < 0.018
    alpha = 1 - (first | second).astype(np.float32)
    return Picture(picture.pixels * alpha[..., None], alpha, picture.bits, picture.icc)
