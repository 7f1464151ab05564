"""What a user would do without leader: doing nothing, and the simple tools of scikit-image, of which a row gets the best."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter
from real_rows import FACTOR, Row
from scipy import ndimage
from skimage import restoration

Unit = NDArray[np.float64]
"""[H, W, 3] in [0, 1]."""
OUTLIER = 0.15
"""Distance of a pixel from the median of its neighbours from which on it counts as a defect."""


def nothing(given: Unit, row: Row) -> Unit:
    """The degraded picture; a small one enlarged by bicubic interpolation."""
    return _enlarged(given, Image.Resampling.BICUBIC) if row.task == "sr" else given


def _enlarged(given: Unit, how: Image.Resampling) -> Unit:
    image = Image.fromarray((255 * given).round().astype(np.uint8))
    return np.asarray(image.resize((image.width * FACTOR, image.height * FACTOR), how)) / 255.0


def _unsharp(given: Unit, percent: int) -> Unit:
    image = Image.fromarray((255 * given).round().astype(np.uint8))
    return np.asarray(image.filter(ImageFilter.UnsharpMask(2, percent, 0))) / 255.0


def _median(given: Unit, side: int) -> Unit:
    found: Unit = ndimage.median_filter(given, (side, side, 1), mode="reflect")
    return found


def _means(given: Unit) -> Unit:
    """Non-local means, with the noise level read from the median of the finest diagonal differences."""
    diagonal = (given[::2, ::2] - given[1::2, ::2] - given[::2, 1::2] + given[1::2, 1::2]) / 2
    sigma = max(float(np.median(np.abs(diagonal))) / 0.6745, 1 / 255)
    found: Unit = restoration.denoise_nl_means(
        given, h=0.8 * sigma, sigma=sigma, patch_size=5, patch_distance=6, fast_mode=True, channel_axis=-1
    )
    return found


def _wiener(given: Unit, kernel: Unit, balance: float) -> Unit:
    sides = [(length, length) for length in kernel.shape]
    padded = np.pad(given, [*sides, (0, 0)], mode="reflect")
    found = np.stack([restoration.wiener(padded[..., c], kernel, balance) for c in range(3)], -1)
    inside: Unit = found[kernel.shape[0] : -kernel.shape[0], kernel.shape[1] : -kernel.shape[1]].clip(0, 1)
    return inside


def _filled(given: Unit) -> Unit:
    """Outliers filled in by biharmonic interpolation."""
    defect = (np.abs(given - _median(given, 5)) > OUTLIER).any(-1)
    found: Unit = restoration.inpaint_biharmonic(given, defect, channel_axis=-1)
    return found


def simple(given: Unit, row: Row) -> dict[str, Unit]:
    """The answers of the simple tools that fit the row, by name."""
    if row.task == "sr":
        lanczos = _enlarged(given, Image.Resampling.LANCZOS)
        return {"lanczos": lanczos, "unsharp": _unsharp(nothing(given, row), 50)}
    answers = {"median": _median(given, 3), "nl means": _means(given)}
    if row.task == "deblur":
        answers["unsharp"] = _unsharp(given, 100)
        kernel = row.options["kernel"]
        if not isinstance(kernel, str):
            answers |= {f"wiener {balance:g}": _wiener(given, kernel, balance) for balance in (0.003, 0.03)}
    if row.task == "inpaint":
        answers |= {"median 5": _median(given, 5), "biharmonic": _filled(given)}
    return answers
