"""What the camera did: linear degradations y = A x, their adjoints, inverses and spectra."""

from leader.operators.base import Eta, LinearOperator, SpectralOperator
from leader.operators.blur import Blur
from leader.operators.generic import Composition, FromFunctions
from leader.operators.hadamard import WalshHadamard
from leader.operators.kernels import (
    gaussian_kernel,
    gaussian_taps,
    load_kernel,
    motion_kernel,
    paper_gaussian_taps,
)
from leader.operators.masks import box_mask, random_mask
from leader.operators.pointwise import Colourisation, Denoising, Inpainting
from leader.operators.resize import AveragePoolSR, BicubicSR
from leader.operators.separable import SeparableOperator
from leader.operators.separable_blur import SeparableBlur
from leader.operators.tasks import TASKS, build_task

__all__ = [
    "TASKS",
    "AveragePoolSR",
    "BicubicSR",
    "Blur",
    "Colourisation",
    "Composition",
    "Denoising",
    "Eta",
    "FromFunctions",
    "Inpainting",
    "LinearOperator",
    "SeparableBlur",
    "SeparableOperator",
    "SpectralOperator",
    "WalshHadamard",
    "box_mask",
    "build_task",
    "gaussian_kernel",
    "gaussian_taps",
    "load_kernel",
    "motion_kernel",
    "paper_gaussian_taps",
    "random_mask",
]
