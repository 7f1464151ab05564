"""What a task is: its words for people, its options, how a picture becomes a measurement, how a good one is degraded."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from numpy import bool_
from numpy.typing import NDArray
from torch import Tensor

from leader.errors import UsageError
from leader.forensics import Examination
from leader.forensics.blur.width import Width
from leader.operators import LinearOperator, build_task
from leader.pictures.picture import Floats, Picture
from leader.restoration.borders import Window

Shape = tuple[int, int, int]
Values = Mapping[str, Any]
"""Options as they were read, by name."""


@dataclass(frozen=True)
class Request:
    """What is known when the options of a task are read.

    examination  that of the picture in question: degraded already, or good where `seed` is set
    seed     of `degrade`, for what it draws where nothing is given; None when restoring
    notes    choices made for the user, one sentence each; readers add to it
    doubts   standard deviations, for [0, 1] images, of what is uncertain of those choices; readers add to it
    misread  probabilities that such a choice is wrong and no noise level makes up for it; readers add to it
    """

    examination: Examination
    seed: int | None = None
    notes: list[str] = field(default_factory=list)
    doubts: list[float] = field(default_factory=list)
    misread: list[float] = field(default_factory=list)

    @property
    def picture(self) -> Picture:
        return self.examination.picture

    @property
    def degrading(self) -> bool:
        return self.seed is not None


@dataclass(frozen=True)
class Option:
    """An option of a task.

    read     converts what the user gives to the value that the operator takes, or raises
    missing  the value if nothing is given, or raises
    """

    name: str
    read: Callable[[Any, Request], Any]
    missing: Callable[[Request], Any]


@dataclass(frozen=True)
class Measured:
    """A picture read as a measurement.

    operator  what the camera did
    pixels    [H, W, C] in [0, 1], the part of the picture that was measured
    picture   what the result inherits its alpha, bits and profile from
    known     [H, W], where pixels are valid, or None for everywhere
    window    where the picture lies in a larger frame that the operator works on, or None
    y         [1, ...] for [0, 1] images, where the measurement is not the pixels themselves
    sigma     the noise level for [0, 1] images, where the task knows it itself and nobody gives another
    doubt     standard deviation, for [0, 1] images, that the uncertainty of the operator adds to white noise
    doubt_power  the same by frequency, where the operator is a blur or denoises: [1 or 3, H, W] >= 0, noise power of [0, 1]
              images at every frequency of the FFT of the operator's frame (white noise of sigma: sigma^2), the same at f and
              -f; 3 along the rows of `leader.operators.OPPONENT`. It counts also where the noise level is given
    notes     findings about the picture, one sentence each
    width     the picture's evidence on the width of a blur's kernel; None: not examined, or too little to see
    """

    operator: LinearOperator
    pixels: Floats
    picture: Picture
    known: NDArray[bool_] | None = None
    window: Window | None = None
    y: Tensor | None = None
    sigma: float | None = None
    doubt: float = 0.0
    doubt_power: Tensor | None = None
    notes: tuple[str, ...] = ()
    width: Width | None = None


class Task:
    """A degradation that can be undone. Subclasses say what differs from denoising, and are listed in `TASKS`.

    title          a few words
    description    one or two sentences, with the options
    example        a command line
    is_picture     whether its measurement is a picture; otherwise it lives in containers only
    in_containers  whether a container can hold its measurement; otherwise it lives in pictures only
    amplifies      whether undoing it amplifies errors in the detail of the picture
    plugins        plug-ins that belong to its measurement and are used with every method
    operators      names of its operators, besides its own, that presets and paths know and that share its trust family
    trust_family   whose calibration of the trust map it shares; empty: it has its own. hole_family: where much is far from
                   anything known
    page           (kind, words) of its entry on the page, as in ("small", "It is too small"); None: it has none
    keeps_grain    whether noise may be put back onto its result (`leader.restoration.grain`)
    coarse_colour  whether noise that JPEG left coarse in colour has to count for more: as noise to be removed it looks weaker
    fine_detail    whether detail of its pictures looks like noise that is the same in all colours: that has to be given then
    weak_noise     white noise found in 8 bits, for [0, 1] images, below which the picture is taken to have none
    """

    name: ClassVar[str]
    title: ClassVar[str]
    description: ClassVar[str]
    example: ClassVar[str]
    options: ClassVar[tuple[Option, ...]] = ()
    is_picture: ClassVar[bool] = True
    in_containers: ClassVar[bool] = True
    plugins: ClassVar[tuple[str, ...]] = ()
    amplifies: ClassVar[bool] = False
    keeps_grain: ClassVar[bool] = False
    coarse_colour: ClassVar[bool] = False
    fine_detail: ClassVar[bool] = False
    weak_noise: ClassVar[float] = 0.0
    operators: ClassVar[tuple[str, ...]] = ()
    trust_family: ClassVar[str] = ""
    hole_family: ClassVar[str] = ""
    page: ClassVar[tuple[str, str] | None] = None

    def read(self, given: Values, request: Request) -> dict[str, Any]:
        """The task's options from what the user gave (None counts as not given); others are rejected."""
        own = {option.name: option for option in self.options}
        for name, value in given.items():
            if value is not None and name not in own:
                raise UsageError(f"The task '{self.name}' has no use for a {name}; leave it out.")
        self.check(request)
        return {
            name: option.missing(request) if given.get(name) is None else option.read(given[name], request)
            for name, option in own.items()
        }

    def check(self, request: Request) -> None:
        """Rejects pictures that the task does not support."""

    def shape(self, picture: Picture, values: Values) -> Shape:
        """(C, H, W) of the image that is sought behind a degraded picture."""
        return picture.pixels.shape[2], picture.pixels.shape[0], picture.pixels.shape[1]

    def measured(self, examination: Examination, values: Values) -> Measured:
        """A degraded picture as a measurement."""
        picture = examination.picture
        return Measured(build_task(self.name, self.shape(picture, values), **values), picture.pixels, picture)

    def invents(self, picture: Picture, values: Values) -> bool:
        """Whether so much is missing that faces and writing in the result are likely to be invented."""
        return False

    def exact(self, given: Values, values: Values, seed: int) -> dict[str, Any]:
        """The options of the exact operator that a container names: by default what was given, as it was read.

        seed  that of `degrade`
        """
        return {name: values[name] for name in values if given.get(name) is not None}

    def photographed(self, x: Tensor, values: Values) -> Tensor:
        """A good image [1, C, H, W] as a camera would see it, before noise."""
        return build_task(self.name, (int(x.shape[1]), int(x.shape[2]), int(x.shape[3])), **values).A(x)

    def developed(self, picture: Picture, values: Values) -> Picture:
        """A degraded picture as its file gives it back."""
        return picture

    def hidden(self, y: Tensor, values: Values) -> Tensor:
        """y with what cannot be seen, not even its noise, set to 0."""
        return y


class OperatorTask(Task):
    """Undoes an operator whose measurement is a picture of the size of the image, or a container's.

    defaults  of its options, by name
    """

    def __init__(self, operator: type[LinearOperator]) -> None:
        text = inspect.getdoc(operator) or operator.__name__
        parameters = list(inspect.signature(operator).parameters.values())[1:]
        self.title, self.description = text.splitlines()[0], text  # type: ignore[misc]
        self.options = tuple(map(_make_option, parameters))  # type: ignore[misc]
        self.defaults = {parameter.name: parameter.default for parameter in parameters}

    @property
    def example(self) -> str:  # type: ignore[override]
        return f"leader restore measured.png restored.png --task {self.name}"


def _make_option(parameter: inspect.Parameter) -> Option:
    def miss(_: Request) -> Any:
        if parameter.default is inspect.Parameter.empty:
            raise UsageError(f"The operator needs the option '{parameter.name}'; give it.")
        return parameter.default

    return Option(parameter.name, lambda value, _: value, miss)
