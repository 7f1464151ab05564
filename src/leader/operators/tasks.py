"""The tasks by name, as the command line, the presets and the benches ask for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from leader.errors import LeaderError, UsageError, unknown_name
from leader.operators.base import LinearOperator
from leader.operators.blur import Blur
from leader.operators.hadamard import WalshHadamard
from leader.operators.kernels import gaussian_kernel, motion_kernel, paper_gaussian_taps
from leader.operators.pointwise import Colourisation, Denoising, Inpainting
from leader.operators.resize import AveragePoolSR, BicubicSR
from leader.operators.separable_blur import SeparableBlur

Shape = tuple[int, int, int]
Option = float | int | str | bool | Tensor | None


@dataclass(frozen=True)
class Task:
    """A degradation that can be asked for by name.

    title        a few words
    description  one or two sentences, with the options
    example      a command line
    options      the names `build` accepts
    """

    name: str
    title: str
    description: str
    example: str
    options: tuple[str, ...]
    builder: Callable[..., LinearOperator]

    def build(self, image_shape: Shape, **options: Option) -> LinearOperator:
        """The operator for images (C, H, W). Options that are None count as not given."""
        given = {name: value for name, value in options.items() if value is not None}
        for name in given:
            if name not in self.options:
                if not self.options:
                    raise UsageError(f"The task '{self.name}' has no options; found '{name}'.")
                raise unknown_name(f"option of the task '{self.name}'", name, self.options)
        return self.builder(image_shape, **given)


def build_task(name: str, image_shape: Shape, **options: Option) -> LinearOperator:
    """The operator of a named task; an unknown name is refused with the nearest valid one."""
    return find_task(name).build(image_shape, **options)


def find_task(name: str) -> Task:
    """The task of that name."""
    if name not in TASKS:
        raise unknown_name("task", name, TASKS, titles={task.title: task.name for task in TASKS.values()})
    return TASKS[name]


def _super_resolution(shape: Shape, factor: int = 4, down: str = "bicubic") -> LinearOperator:
    kinds = {"bicubic": BicubicSR, "average": AveragePoolSR}
    if down not in kinds:
        raise unknown_name("way of downsampling", down, kinds)
    return kinds[down](shape, factor)


def _gaussian_blur(shape: Shape, std: float | None = None, size: int | None = None) -> LinearOperator:
    if std is None:
        if size is not None:
            raise UsageError("The size of a Gaussian kernel was given without its standard deviation; give std too.")
        return SeparableBlur(shape, paper_gaussian_taps())
    return _circular(shape, gaussian_kernel(float(std), size), "deblur-gaussian")


def _motion_blur(
    shape: Shape, seed: int = 0, size: int = 61, intensity: float = 0.5, kernel: Tensor | None = None
) -> LinearOperator:
    drawn = motion_kernel(seed, size, intensity) if kernel is None else kernel
    return _circular(shape, drawn, "deblur-motion")


def _user_blur(shape: Shape, kernel: Tensor | None = None) -> LinearOperator:
    if kernel is None:
        raise LeaderError("The task 'deblur' needs the kernel of the blur; give one, or use 'deblur-gaussian'.")
    return _circular(shape, kernel, "deblur")


def _inpainting(shape: Shape, mask: Tensor | None = None) -> LinearOperator:
    if mask is None:
        raise LeaderError("The task 'inpaint' needs a mask; give one that is 1 where the picture is known.")
    return Inpainting(shape, mask)


def _circular(shape: Shape, kernel: Tensor, task: str) -> Blur:
    operator = Blur(shape, kernel)
    operator.task = task
    return operator


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task(
            "sr",
            "super-resolution",
            "Enlarges a small picture by an integer factor. Options: factor (default 4); down = bicubic "
            "(antialiased, what image programs do) or average (what sensors do).",
            "leader restore small.png large.png --task sr",
            ("factor", "down"),
            _super_resolution,
        ),
        Task(
            "deblur-gaussian",
            "Gaussian deblurring",
            "Removes a Gaussian blur. Without options the papers' five taps of standard deviation 10 with "
            "zero boundary; with std (and size) a Gaussian kernel of that width in pixels, circular.",
            "leader restore blurred.png sharp.png --task deblur-gaussian --kernel gaussian:2.5",
            ("std", "size"),
            _gaussian_blur,
        ),
        Task(
            "deblur-motion",
            "motion deblurring",
            "Removes the blur of a shaken camera, circular. Options: kernel, or a seeded random one by seed, "
            "size (default 61) and intensity (default 0.5).",
            "leader restore shaken.png steady.png --task deblur-motion --kernel motion:3",
            ("seed", "size", "intensity", "kernel"),
            _motion_blur,
        ),
        Task(
            "deblur",
            "deblurring with a known kernel",
            "Removes the blur of a kernel that you provide, circular. Option: kernel, a table of numbers.",
            "leader restore blurred.png sharp.png --task deblur --kernel kernel.npy",
            ("kernel",),
            _user_blur,
        ),
        Task(
            "inpaint",
            "inpainting",
            "Fills in missing pixels. Option: mask, 1 (white) where the picture is known.",
            "leader restore torn.png whole.png --task inpaint --mask mask.png",
            ("mask",),
            _inpainting,
        ),
        Task(
            "cs",
            "compressed sensing",
            "Recovers a picture from a part of its Walsh-Hadamard coefficients; sides must be powers of two. "
            "Options: ratio (default 0.25), seed, order = random, sequency or published, keep_constant, "
            "indices.",
            "leader restore measurement.npz picture.png --task cs",
            ("ratio", "seed", "order", "keep_constant", "indices"),
            WalshHadamard,
        ),
        Task(
            "colourise",
            "colourisation",
            "Gives colours to a grey picture: the mean of the three channels is what was measured.",
            "leader restore grey.png colour.png --task colourise",
            (),
            Colourisation,
        ),
        Task(
            "denoise",
            "denoising",
            "Removes noise and nothing else.",
            "leader restore noisy.png clean.png --task denoise",
            (),
            Denoising,
        ),
    )
}
