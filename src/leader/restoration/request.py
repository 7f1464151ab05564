"""A restoration request as text: the same choices for the command line, the page, folders and repeated runs.

A new choice is one field of `RestoreRequest`: its `Word` describes the option, `arguments` passes it to `prepare`. Light to
import, since the command line derives its options from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leader import defaults
from leader.by_name import REFERENCE
from leader.errors import UsageError

if TYPE_CHECKING:
    from leader.restoration.arguments import ImageLike
    from leader.restoration.restore import Preparation

NONE = "none"
"""No plug-ins, or no estimator; not the same as leaving the choice open."""
AUTO = "auto"
"""A kernel or mask that is found in each picture."""
MOST_WHOLE = 2**31 - 1
_DRAWN = {"kernel": ("gaussian:", "disk:", "line:", "motion:"), "mask": ("random:",)}


@dataclass(frozen=True)
class Word:
    """How a user gives a choice.

    help         one sentence
    kind         type of the value
    options      its long name on the command line if that differs from that of the field; short: its letter there
    metavar      placeholder of the value there
    names        lists the known values, for completion and menus
    least, most  bounds of a number
    repeated     whether it may be given several times
    """

    help: str
    kind: type = str
    options: tuple[str, ...] = ()
    short: str | None = None
    metavar: str | None = None
    names: Callable[[], list[str]] | None = None
    least: float | None = None
    most: float | None = None
    repeated: bool = False


def word(default: Any, help: str, kind: type = str, *options: str, **about: Any) -> Any:
    """A field of a dataclass that is a choice; see `Word`."""
    return field(default=default, metadata={"word": Word(help, kind, options, **about)})


def _names_in(module: str, *tables: str, before: tuple[str, ...] = ()) -> Callable[[], list[str]]:
    """Lists the names of tables of a module, which is imported then and no earlier."""
    return lambda: [*before, *(name for table in tables for name in getattr(import_module(module), table))]


@dataclass(frozen=True)
class RestoreRequest:
    """Every choice of a restoration except the picture; None if it is left open.

    settings  of method and plug-ins, as in `prepare`; budget and estimator take precedence
    ids       of a run to repeat
    options   of tasks that have no field of their own
    """

    task: str | None = word(
        None,
        "What happened to the picture: see leader tasks.",
        short="-t",
        names=_names_in("leader.restoration.tasks", "TASKS"),
    )
    sigma: Any = word(None, "Noise level, 0.05 = 5 % of the range; estimated if left out.", float)
    kernel: Any = word(None, "The blur: auto, a file, gaussian:2.5, ...: see leader tasks deblur.", metavar="KERNEL")
    kernel_doubt: float | None = word(None, "How wrong the kernel's width may be (0.1 = 10 %); 0: it is exact.", float)
    mask: Any = word(
        None, "A file, white where the picture is known; auto (finds specks and scratches); or random:0.5.", metavar="MASK"
    )
    factor: float | None = word(None, "By how much to enlarge, such as 4 (the default) or 1.5.", float, least=1, most=16)
    size: Any = word(None, "Size of the enlarged picture; one side may be left out.", metavar="WIDTHxHEIGHT")
    down: str | None = word(None, "How the picture was made small: auto (default), lanczos, box, ...: see leader tasks sr.")
    quality: str | None = word(
        None, "How much work to spend: draft, standard (the default) or best; all the same for denoising.", short="-q"
    )
    look: str | None = word(None, "natural (believable texture, the default) or faithful (closer to the truth on average).")
    grain: Any = word(None, "Noise in sr and deblurring: remove (the default), keep, or a level to add.", metavar="GRAIN")
    method: str | None = word(
        defaults.METHOD,
        "The restoration method; by default that of the quality. See leader methods.",
        short="-m",
        names=_names_in("leader.methods", "METHODS"),
    )
    plugins: tuple[str, ...] | None = word(
        defaults.PLUGINS,
        "A plug-in; may be repeated. none switches all off; a method that you choose has leader by default.",
        str,
        "--plugin",
        short="-p",
        names=_names_in("leader.plugins", "BUNDLES", "PLUGINS", before=(NONE,)),
        repeated=True,
    )
    steps: int | None = word(
        defaults.STEPS, "Network steps; fewer are faster. By default those of the quality.", int, short="-n"
    )
    budget: float | None = word(None, "Information loss SATP allows per step: 0 slow, 0.1 fast.", float)
    estimator: str | None = word(
        None,
        "How uncertainty is estimated: see leader estimators.",
        names=_names_in("leader.uncertainty", "ESTIMATORS", before=(defaults.ESTIMATOR, NONE)),
    )
    prior: Any = word(
        defaults.PRIOR,
        "The network: a name (see leader priors) or a checkpoint's path.",
        names=_names_in("leader.priors.catalogue", "ENTRIES", before=(defaults.PRIOR,)),
    )
    device: str | None = word(None, "Where to compute: cpu, cuda or mps; the prior's by default.")
    dtype: str | None = word(
        None, "Numbers to compute with: auto (half precision where it is fast and safe), mixed, float32, ..."
    )
    threads: int | None = word(None, "CPU threads; the exact bits depend on their number.", int, least=1, most=1024)
    seed: int = word(defaults.SEED, "Seed of the noise: another seed gives another result.", int, least=0)
    average: int | None = word(None, "Average N runs: closer to the truth, N times the work.", int, least=1)
    jpeg: bool = word(True, "Use traces of JPEG compression in the file or its pixels.", bool, "--jpeg/--no-jpeg")
    clipped: bool = word(
        True, "Assume that noise was clipped where the picture is black or white.", bool, "--clipped/--no-clipped"
    )
    settings: Mapping[str, Any] = field(default_factory=dict)
    ids: tuple[int, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.plugins is None:
            return
        names = (self.plugins,) if isinstance(self.plugins, str) else tuple(self.plugins)
        if NONE in names and len(names) > 1:
            raise UsageError("The plug-in 'none' stands alone; leave it out or leave out the others.")
        object.__setattr__(self, "plugins", () if names == (NONE,) else names)

    @classmethod
    def from_run(cls, run: Mapping[str, Any]) -> RestoreRequest:
        """The request that repeats a run, from its `Restoration.summary()`."""
        from leader.restoration.repeat import arguments_of

        return cls().with_options(arguments_of(run))

    def with_options(self, options: Mapping[str, Any]) -> RestoreRequest:
        """The same with other choices, by the names of `prepare`."""
        own = {item.name for item in fields(self)}
        others = {name: value for name, value in options.items() if name not in own}
        return replace(
            self,
            **{name: value for name, value in options.items() if name in own},
            options={**self.options, **others},
        )

    def arguments(self) -> dict[str, Any]:
        """The arguments of `prepare` except the image; choices left open are omitted."""
        if self.budget is not None and self.plugins is None:
            return replace(self, plugins=("leader",)).arguments()  # whose budget it is
        given = {item.name: getattr(self, item.name) for item in fields(self)}
        for name in ("budget", "estimator"):
            del given[name]
        given["options"] = dict(self.options) or None
        given["settings"] = self._merged_settings()
        for name in ("jpeg", "clipped"):
            if given[name]:
                del given[name]
        return {name: value for name, value in given.items() if value is not None}

    def prepare(self, image: ImageLike, **changes: Any) -> Preparation:
        """The restoration of an image with every choice made; `changes` override arguments of `prepare`."""
        from leader.restoration.restore import prepare

        return prepare(image, **{**self.arguments(), **changes})

    def find_size(self, given: tuple[int, int]) -> tuple[int, int]:
        """(width, height) of the result for a picture of size `given`."""
        from leader.restoration.tasks.super_resolution import read_size

        if self.size is not None:
            return read_size(self.size, given)
        return round(given[0] * (self.factor or 1)), round(given[1] * (self.factor or 1))

    def read_files(self) -> RestoreRequest:
        """The same with the files of kernel and mask read: other machines may not have them, and they may change."""
        from leader.pictures import MOST_PIXELS
        from leader.pictures.container import WIDEST_KERNEL
        from leader.restoration.arguments import read_table

        most = {"kernel": WIDEST_KERNEL**2, "mask": MOST_PIXELS}
        changed: dict[str, Any] = {}
        for name, drawn in _DRAWN.items():
            value = getattr(self, name)
            if isinstance(value, (str, Path)) and str(value) != AUTO and not str(value).startswith(drawn):
                changed[name] = read_table(Path(value), name, most[name])
        if isinstance(self.prior, (str, Path)) and Path(self.prior).expanduser().exists():
            changed["prior"] = str(Path(self.prior).expanduser().resolve())
        return replace(self, **changed)

    def _merged_settings(self) -> dict[str, Any]:
        """The settings with SATP's budget and the estimator."""
        merged = dict(self.settings)
        if self.estimator is not None:
            merged["estimator"] = None if self.estimator == NONE else self.estimator
        if self.budget is None:
            return merged
        if not (math.isfinite(self.budget) and self.budget >= 0):
            raise UsageError(f"The budget must be finite and >= 0; found {self.budget}.")
        from leader.plugins import expand

        pacers = [str(name) for name in expand(self.plugins or ()) if name in ("satp", "satp-paper")]
        if not pacers:
            raise UsageError(
                "A budget belongs to the plug-in 'satp'; choose the plug-in leader or satp, or leave the budget out."
            )
        return {**merged, **{name: {**merged.get(name, {}), "budget": self.budget} for name in pacers}}


def word_of(kind: type, name: str) -> Word:
    """The `Word` of a field of a dataclass of choices."""
    found: Word = next(item.metadata["word"] for item in fields(kind) if item.name == name)
    return found


def parse_word(name: str, value: Any) -> Any:
    """The value that a form's field gives for a choice of `RestoreRequest`; None if it is empty."""
    about, label = word_of(RestoreRequest, name), name.replace("_", " ")
    text = "" if value is None else str(value).strip()
    if not text:
        return None
    if about.kind not in (int, float):
        if about.names is not None and REFERENCE.fullmatch(text):  # a visitor may not have files of this machine imported
            raise UsageError(
                f"The {label} is chosen from a list here; your own classes work in Python and on the command line."
            )
        return text
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"The {label} must be a number; found '{text[:40]}'.")
    if about.kind is float:
        return number
    least, most = about.least or 0, about.most or MOST_WHOLE
    if number != int(number) or not least <= number <= most:
        raise UsageError(f"The {label} must be a whole number from {least} to {most}; found {number:.12g}.")
    return int(number)
