"""What runs: a method that was asked for, or what quality and look mean for the problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leader import defaults
from leader.errors import UsageError
from leader.methods import Method
from leader.plugins import Plugin, expand
from leader.presets.paths import check_words, find_path
from leader.priors.base import Prior
from leader.problem import Problem
from leader.restoration.worth import leaves_nothing_open
from leader.sampler import Sampler
from leader.schedule import Grid

RESERVED = ("self", "prior", "method", "plugins", "steps", "quality", "look")
"""Arguments of their own, which settings cannot hold."""


class Choice:
    """What runs: a method that was asked for, or what quality and look mean for the problem."""

    def __init__(
        self,
        prior: Prior,
        quality: str | None,
        look: str | None,
        method: str | Method | None,
        plugins: Sequence[str | Plugin] | str | Plugin | None,
        steps: int | None,
        settings: dict[str, Any],
    ) -> None:
        if method is not None and (quality is not None or look is not None):
            raise UsageError("Quality and look choose the method; give either them or a method, not both.")
        self.quality, self.look = quality or defaults.QUALITY, look or defaults.LOOK
        check_words(self.quality, self.look)
        self.prior, self.method, self.plugins, self.steps, self.settings = prior, method, plugins, steps, settings
        if method is not None:
            self._by_method(method, ())  # wrong names are told before the picture is read
        elif plugins is not None or steps is not None:
            Sampler(prior, plugins=plugins or (), steps=steps or 1)

    def of(self, problem: Problem, added: Sequence[str] = ()) -> tuple[Sampler, int]:
        """The sampler for a problem, and how many runs the picture is the mean of where nobody says.

        A problem that leaves nothing open is solved by one step, unless a method was asked for: some need more to arrive.

        added  plug-ins that belong to the problem's task and join whatever else takes part
        """
        if self.method is not None:
            return self._by_method(self.method, added), 1
        known = leaves_nothing_open(problem)
        sigma = float(problem.sigma.max()) / 2
        path = find_path(self.prior.name, problem.operator.task, sigma, self.quality, self.look)
        steps = 1 if known else min(path.steps, len(self.prior.schedule))
        route = path.route(self.steps or steps)
        average = 1 if known else path.average
        return self._made(path.method, path.plugins, steps, route, path.settings, added), average

    def _by_method(self, method: str | Method, added: Sequence[str]) -> Sampler:
        return self._made(method, defaults.METHOD_PLUGINS, defaults.METHOD_STEPS, None, {}, added)

    def _made(
        self,
        method: str | Method,
        plugins: Sequence[str],
        steps: int,
        grid: str | Grid | None,
        settings: Mapping[str, Any],
        added: Sequence[str],
    ) -> Sampler:
        replaced = () if self.plugins is None else set(expand(plugins)) - set(added)  # whose settings go with them
        own = {**{name: value for name, value in settings.items() if name not in replaced}, **self.settings}
        chosen = expand(plugins if self.plugins is None else self.plugins)
        names = [item if isinstance(item, str) else item.name for item in chosen]
        return Sampler(
            self.prior,
            method,
            (*chosen, *(name for name in added if name not in names)),
            steps if self.steps is None else self.steps,
            **({"grid": grid, **own} if grid is not None else own),
        )


def checked_settings(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Settings by name, none of them an argument of its own."""
    if settings is None:
        return {}
    if not isinstance(settings, Mapping) or not all(isinstance(name, str) for name in settings):
        raise UsageError("The settings must be names and values, as in {'eta': 0.5, 'satp': {'budget': 0.05}}.")
    for name in RESERVED:
        if name in settings:
            raise UsageError(f"The settings hold '{name}', which is not one of them; give it as an argument of its own.")
    return dict(settings)
