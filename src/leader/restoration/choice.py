"""What to run: a given method, or the path that quality and look stand for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from leader import defaults
from leader.errors import UsageError
from leader.messages import Note
from leader.methods import Method
from leader.operators import Inpainting
from leader.plugins import Plugin, expand
from leader.presets.paths import RunPath, check_words, find_path, list_same
from leader.priors.base import Prior
from leader.problem import Problem
from leader.restoration.worth import leaves_nothing_open
from leader.sampler import Sampler

RESERVED = ("self", "prior", "method", "plugins", "steps", "quality", "look")
"""Names that are separate arguments and cannot be settings."""


@dataclass(frozen=True, eq=False)
class Choice:
    """What a caller chose: quality and look, or a method; plug-ins, steps and settings of the Sampler override theirs.

    Wrong names are rejected at once, before a picture is read.
    """

    prior: Prior
    quality: str | None = None
    look: str | None = None
    method: str | Method | None = None
    plugins: Sequence[str | Plugin] | str | Plugin | None = None
    steps: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.method is not None and (self.quality is not None or self.look is not None):
            raise UsageError("Quality and look choose the method; give either them or a method, not both.")
        check_words(*self._words)
        if self.method is not None:
            self._build(self._own_path(self.method), ())
        elif self.plugins is not None or self.steps is not None:
            Sampler(self.prior, plugins=self.plugins or (), steps=self.steps or 1)

    @property
    def _words(self) -> tuple[str, str]:
        return self.quality or defaults.QUALITY, self.look or defaults.LOOK

    @staticmethod
    def _own_path(method: str | Method) -> RunPath:
        return RunPath(method, defaults.METHOD_STEPS, "asked for", plugins=defaults.METHOD_PLUGINS)

    def path(self, problem: Problem) -> RunPath:
        """The path for a problem.

        One step if the problem leaves nothing open, unless a method was given: some need more steps to get there.
        """
        if self.method is not None:
            return self._own_path(self.method)
        path = find_path(self.prior.name, problem.operator.task, problem.noise_level, *self._words, _share_known(problem))
        if leaves_nothing_open(problem):
            return replace(path.with_steps(1), average=1)
        return path.with_steps(min(path.steps, len(self.prior.schedule)))

    def tell_same(self, problem: Problem, title: str) -> tuple[Note, ...]:
        """A note for each given word that makes no difference to the default; `title` is that of the task."""
        if self.steps is not None or leaves_nothing_open(problem):
            return ()
        notes = []
        asked = (("qualities", self.quality, defaults.QUALITY), ("looks", self.look, defaults.LOOK))
        for (name, word, usual), same in zip(asked, self.list_same(problem)):
            if word not in (None, usual) and usual in same:
                told = f"{', '.join(same[:-1])} and {same[-1]}"
                notes.append(Note(f"same {name}", f"The {name} {told} are the same for {title} here."))
        return tuple(notes)

    def list_same(self, problem: Problem) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The qualities, then the looks, that give the same run as the chosen ones, themselves included; none for a method."""
        if self.method is not None:
            return (), ()
        return list_same(self.prior.name, problem.operator.task, problem.noise_level, *self._words, _share_known(problem))

    def sampler(self, problem: Problem, added: Sequence[str] = (), path: RunPath | None = None) -> Sampler:
        """The sampler for a problem, on its `path` if that is known already; the plug-ins `added` belong to its task and are
        used in any case.
        """
        return self._build(path or self.path(problem), added)

    def _build(self, chosen: RunPath, added: Sequence[str]) -> Sampler:
        path = chosen if self.steps is None else chosen.with_steps(self.steps)
        replaced = () if self.plugins is None else set(expand(path.plugins)) - set(added)  # whose settings go with them
        own = {name: value for name, value in path.settings.items() if name not in replaced}
        given = path.plugins if self.plugins is None else self.plugins
        plugins = (given,) if isinstance(given, (str, Plugin)) else tuple(given)
        names = [item if isinstance(item, str) else item.name for item in expand(plugins)]
        grid = {} if path.route() is None else {"grid": path.route()}
        return Sampler(
            self.prior,
            path.method,
            (*plugins, *(name for name in added if name not in names)),
            path.steps,
            **_join({**grid, **own}, self.settings),
        )


def _join(usual: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with those that were given in their place; of a plug-in, those that were not given stay."""
    parts = {name: {**usual[name], **value} for name, value in given.items() if isinstance(value, Mapping) and name in usual}
    return {**usual, **given, **parts}


def _share_known(problem: Problem) -> float:
    """The share of the pixels that a mask leaves, the largest of a batch; 1 for all other operators."""
    operator = problem.operator
    return float(operator.mask.mean((-2, -1)).max()) if isinstance(operator, Inpainting) else 1.0


def read_settings(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Settings by name, none of them an argument of its own."""
    if settings is None:
        return {}
    if not isinstance(settings, Mapping) or not all(isinstance(name, str) for name in settings):
        raise UsageError("The settings must be names and values, as in {'eta': 0.5, 'satp': {'budget': 0.05}}.")
    for name in RESERVED:
        if name in settings:
            raise UsageError(f"The settings hold '{name}', which is not one of them; give it as an argument of its own.")
    return dict(settings)
