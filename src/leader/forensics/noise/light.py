"""Noise of light: added before a camera's gamma, where its variance is floor + gain * light, and strongest in the shadows.

The line is fitted as that of `shot`, to the squares of the finest detail of light instead of pixel values. Noise that is white
behind gamma grows with light, and its line goes through nothing: only a clear floor makes a picture noisier in its shadows, and
only where it has some. Texture of the shadows alone looks the same, but is not everywhere in them; where it is, and there is no
colour to compare, it passes for weak noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from leader.errors import LeaderError
from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import Array, Flags
from leader.forensics.noise.clipping import share_left, unclip_mean
from leader.forensics.noise.shot import Blocks, ShotNoise, fit_line, share_of_weakest_colour
from leader.forensics.noise.texture_limit import FEW_BLOCKS, FINEST, find_quantile

_CONSTANTS = read_constants("noise.light")
GAMMA, CLEAR_FLOOR, FALLING, PATCHY = _CONSTANTS.numbers("gamma", "clear_floor", "falling", "patchy")
FAINTEST_GREY, FAINTEST = _CONSTANTS.numbers("faintest_grey", "faintest")
LEAST = 3e-4
"""Standard deviation of light that any block has at least: the rounding of dark pixels to 8 bits."""


@dataclass(frozen=True)
class LightNoise(ShotNoise):
    """Variance of light, pixels ** gamma: floor + gain * light; as noise of pixels in [0, 1] never below least^2, and with
    white noise of standard deviation `white` beside it.
    """

    gamma: float = GAMMA
    white: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.gamma, float) and 0 < self.gamma < math.inf):
            raise LeaderError(f"The gamma of noise of light is a number above 0; found {self.gamma!r}.")
        if not (isinstance(self.white, float) and 0 <= self.white < math.inf):
            raise LeaderError(f"The white noise beside noise of light is a number from 0; found {self.white!r}.")

    def std(self, brightness: Array) -> Array:
        """Standard deviation of pixels at these brightnesses; where noise exceeds the light, as where both are as strong."""
        light = np.maximum(brightness.clip(0, 1) ** self.gamma, math.sqrt(max(self.floor, LEAST**2)))
        slope = light ** (1 / self.gamma - 1) / self.gamma
        of_light = np.maximum(slope * np.sqrt(np.maximum(self.floor + self.gain * light, 0)), self.least)
        found: Array = np.hypot(of_light, self.white)
        return found

    def raised(self, sigma: float) -> LightNoise:
        """With white noise of standard deviation sigma added."""
        return replace(self, white=math.hypot(self.white, sigma))

    def words(self) -> str:
        """The finding as a sentence without a full stop."""
        dark, bright = self.std(np.array([0.1, 0.9]))
        return f"The noise falls with brightness: from {dark:.2g} in the shadows to {bright:.2g} in bright areas"


def light_noise(pixels: Array, known: Flags | None, least: float) -> LightNoise | None:
    """The noise of pixels [H, W, 1 or 3] in [0, 1] if it is clearly noise of light that falls with brightness, else None.

    known  [H, W] marks valid pixels
    least  smallest standard deviation at any brightness: that of rounding
    """
    blocks = Blocks.of(pixels.clip(0) ** GAMMA, known)  # decimal numbers may lie below black
    if blocks is None:
        return None
    flat = blocks.flattest_of_every_brightness()
    coefficients, mean = blocks.coefficients[flat], blocks.mean[flat]
    line = fit_line(coefficients, mean, LEAST)
    if line is None or line.floor < CLEAR_FLOOR * line.floor_error:
        return None
    of_light = ShotNoise(max(line.gain, LEAST**2), line.floor, LEAST)
    if _is_patchy(of_light, coefficients, mean):
        return None
    faintest = FAINTEST_GREY
    if pixels.shape[2] == 3:
        share = share_of_weakest_colour(of_light, coefficients, mean)
        if share == 0:  # a picture without colour in three channels
            return None
        faintest, of_light = FAINTEST, of_light.weakened(share)
    found = LightNoise(of_light.gain, of_light.floor, least)
    dark, bright = found.std(np.array([0.2, 0.8]))
    return found if found.floor >= faintest**2 and (dark / bright) ** 2 > FALLING else None


def _is_patchy(noise: ShotNoise, coefficients: Array, mean: Array) -> bool:
    """Whether one in twenty of the darker blocks [N, C, 8, 8] of these means [N, C] has far less than this noise: texture is
    not everywhere.
    """
    std = noise.std(unclip_mean(mean, noise.std(mean)))
    share = (coefficients[..., FINEST] ** 2).mean(-1).mean(1) / (share_left(mean, std) * std**2).mean(1)
    brightness = mean.mean(1)
    few = float(np.quantile(share[brightness <= np.median(brightness)], FEW_BLOCKS))
    return few < PATCHY**2 * find_quantile(FEW_BLOCKS, int(FINEST.sum()) * mean.shape[1])
