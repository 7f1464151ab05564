"""Linear degradations y = A x, their adjoints, inverses and spectra."""

from leader.operators.base import Eta, LinearOperator, SpectralOperator
from leader.operators.blur import Blur
from leader.operators.coloured_inpainting import ColouredInpainting
from leader.operators.generic import Composition, FromFunctions, Stacked
from leader.operators.hadamard import WalshHadamard
from leader.operators.jpeg import Jpeg
from leader.operators.kernels import (
    disk_kernel,
    gaussian_kernel,
    gaussian_taps,
    line_kernel,
    load_kernel,
    motion_kernel,
    paper_gaussian_taps,
)
from leader.operators.pointwise import Colourisation, Denoising, Inpainting, WeightedPixels, box_mask, random_mask
from leader.operators.published import ReflectedBlur, ReleasedBlur, ReleasedColourisation
from leader.operators.resize import AveragePoolSR, BicubicSR
from leader.operators.separable import SeparableOperator
from leader.operators.separable_blur import SeparableBlur
from leader.operators.tasks import TASKS, build_task
from leader.operators.whitened import OPPONENT, WhitenedBlur

__all__ = [
    "OPPONENT",
    "TASKS",
    "AveragePoolSR",
    "BicubicSR",
    "Blur",
    "ColouredInpainting",
    "Colourisation",
    "Composition",
    "Denoising",
    "Eta",
    "FromFunctions",
    "Inpainting",
    "Jpeg",
    "LinearOperator",
    "ReflectedBlur",
    "ReleasedBlur",
    "ReleasedColourisation",
    "SeparableBlur",
    "SeparableOperator",
    "SpectralOperator",
    "Stacked",
    "WalshHadamard",
    "WeightedPixels",
    "WhitenedBlur",
    "box_mask",
    "build_task",
    "disk_kernel",
    "gaussian_kernel",
    "gaussian_taps",
    "line_kernel",
    "load_kernel",
    "motion_kernel",
    "paper_gaussian_taps",
    "random_mask",
]
