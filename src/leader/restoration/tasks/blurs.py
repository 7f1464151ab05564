"""Blurs, removed with a known kernel. Photographs have no circular borders: the frame is extended, see `borders`."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators import paper_gaussian_taps
from leader.pictures.picture import Picture
from leader.restoration.arguments import Exactly, as_kernel, gaussian_std
from leader.restoration.borders import blurred_by_camera, extended_blur
from leader.restoration.tasks.base import Measured, Option, Request, Task, Values

SYNTAX = "FILE|gaussian:STD|motion:SEED"
HELP = "the kernel of the blur; STD in pixels"


def _kernel(kernel: Any, request: Request) -> Tensor:
    return as_kernel(kernel)


def _needed(task: str) -> LeaderError:
    return LeaderError(f"The task '{task}' needs the kernel of the blur; give motion:SEED, gaussian:STD or a file.")


def _no_kernel(request: Request) -> Tensor:
    raise _needed("deblur")


def _drawn_kernel(request: Request) -> Tensor:
    if request.seed is None:
        raise _needed("deblur-motion")
    request.notes.append(f"The motion kernel is motion:{request.seed}.")
    return as_kernel(f"motion:{request.seed}")


def _gaussian(kernel: Any, request: Request) -> Tensor:
    if not isinstance(kernel, Exactly):
        gaussian_std(kernel)  # refuses what is no Gaussian
    return as_kernel(kernel)


def _paper_kernel(request: Request) -> Tensor:
    request.notes.append(
        "No kernel was given: the blur is taken to be the papers' 5 x 5 taps; use --kernel gaussian:STD for another."
    )
    taps = paper_gaussian_taps()
    return torch.outer(taps, taps)


class Deblur(Task):
    name: ClassVar[str] = "deblur"
    title: ClassVar[str] = "deblurring with a known kernel"
    description: ClassVar[str] = "Removes the blur of a kernel that you provide, circular. Option: kernel, a table of numbers."
    example: ClassVar[str] = "leader restore blurred.png sharp.png --task deblur --kernel kernel.npy"
    options: ClassVar[tuple[Option, ...]] = (Option("kernel", SYNTAX, HELP, Tensor, _kernel, _no_kernel, "none"),)
    amplifies: ClassVar[bool] = True

    def measured(self, picture: Picture, values: Values) -> Measured:
        operator, window = extended_blur(self.shape(picture, values), values["kernel"], self.name)
        return Measured(operator, picture.pixels, picture, window=window)

    def photographed(self, x: Tensor, values: Values) -> Tensor:
        return blurred_by_camera(x, values["kernel"], self.name)


class DeblurMotion(Deblur):
    name = "deblur-motion"
    title = "motion deblurring"
    description = (
        "Removes the blur of a shaken camera, circular. Option: kernel, a table of numbers, or motion:SEED for a random "
        "one; in experiments seed, size (default 61) and intensity (default 0.5)."
    )
    example = "leader restore shaken.png steady.png --task deblur-motion --kernel motion:3"
    options = (Option("kernel", SYNTAX, HELP, Tensor, _kernel, _drawn_kernel, "when degrading, motion:SEED"),)

    def exact(self, given: Values, values: Values, seed: int) -> dict[str, Any]:
        return dict(values)  # a kernel that was drawn must be kept too


class DeblurGaussian(Deblur):
    name = "deblur-gaussian"
    title = "Gaussian deblurring"
    description = (
        "Removes a Gaussian blur. Without options the papers' five taps of standard deviation 10 with "
        "zero boundary; with std (and size) a Gaussian kernel of that width in pixels, circular."
    )
    example = "leader restore blurred.png sharp.png --task deblur-gaussian --kernel gaussian:2.5"
    options = (Option("kernel", "gaussian:STD", HELP, Tensor, _gaussian, _paper_kernel, "the papers' 5 x 5 taps"),)

    def exact(self, given: Values, values: Values, seed: int) -> dict[str, Any]:
        return {} if given.get("kernel") is None else {"std": gaussian_std(given["kernel"])}
