"""Plan: a run with every choice made. The caller's settings come first, then the presets, then the defaults."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import torch

from leader import presets
from leader.by_name import Registry, check_count
from leader.errors import LeaderError, UsageError
from leader.methods import METHODS, Method, make_method
from leader.plugins import BUNDLES, PLUGINS, Plugin, expand, list_bundles, make_plugin
from leader.plugins.image_priors import ImagePrior
from leader.priors.base import Prior
from leader.problem import Problem
from leader.schedule import Grid, Schedule, make_grid
from leader.uncertainty.estimators import Estimator, check_cost, check_estimator, describe, present_name, read_estimator


@dataclass(frozen=True)
class Plan:
    """A run with every choice made, for one prior and one problem; `settings` holds all choices as plain values.

    grids  the times each image of the problem visits
    """

    method: Method
    plugins: tuple[Plugin, ...]
    grids: tuple[Grid, ...]
    estimator: str | Estimator | None
    settings: dict[str, Any]

    @property
    def grid(self) -> Grid:
        """The times of the first image."""
        return self.grids[0]


class Choices:
    """The caller's choices for a Sampler, checked as far as possible without a problem. Same arguments as Sampler."""

    def __init__(
        self,
        schedule: Schedule,
        method: str | Method,
        plugins: Sequence[str | Plugin] | str | Plugin,
        steps: int,
        grid: str | Grid | None,
        estimator: str | Estimator | Mapping[str, Any] | None,
        probes: int,
        trust_time: int,
        use_presets: bool,
        settings: Mapping[str, Any],
    ) -> None:
        self.method, self.grid, self.use_presets = method, grid, bool(use_presets)
        self.plugins, self.bundles = expand(plugins), list_bundles(plugins)
        self.own = {key: value for key, value in settings.items() if key not in PLUGINS}
        self.of_plugins = {key: value for key, value in settings.items() if key in PLUGINS}
        chosen = read_estimator(estimator)
        check_estimator(chosen, probes)
        self.estimator = present_name(chosen)
        self.probes, self.trust_time = int(probes), check_count("The trust time", trust_time, 0, 2**31 - 1)
        self.steps = steps if isinstance(grid, Grid) else check_count("The number of steps", steps, 1, len(schedule))
        self._check_method()
        self._add_metric()
        self._check_plugins()
        self._check_grid(schedule)

    def _check_method(self) -> None:
        if isinstance(self.method, str):
            make_method(self.method, self.own)
        elif not isinstance(self.method, Method):
            raise UsageError(f"A method must be a name or an object such as DDNM(); found {self.method!r}.")
        elif self.own:
            raise UsageError(
                f"The method '{self.method.name}' was given as an object, which holds its settings; found "
                f"{', '.join(self.own)} besides."
            )

    def _add_metric(self) -> None:
        """Adds `ucdc` for a method that needs a metric if no plug-in provides one."""
        method = METHODS[self.method] if isinstance(self.method, str) else self.method
        kinds = (PLUGINS[item] if isinstance(item, str) else item for item in self.plugins)
        if method.needs_metric and not any(item.gives_metric for item in kinds):
            self.plugins = (*self.plugins, "ucdc")

    def _check_plugins(self) -> None:
        named = [item for item in self.plugins if isinstance(item, str)]
        for name, given in self.of_plugins.items():
            if name in named:
                make_plugin(name, given)
            elif any(item.name == name for item in self.plugins if isinstance(item, Plugin)):
                raise UsageError(f"The plug-in '{name}' was given as an object, which holds its settings; give none beside it.")
            else:
                raise UsageError(f"There are settings for the plug-in '{name}', which is not used; add it to plugins.")

    def _check_grid(self, schedule: Schedule) -> None:
        if isinstance(self.grid, Grid):
            if max(self.grid.times) >= len(schedule):
                raise LeaderError(
                    f"The grid visits time {max(self.grid.times)}; the prior's schedule ends at {len(schedule) - 1}."
                )
        elif self.grid is not None:
            make_grid(self.grid, self.steps, schedule)

    def plan(self, prior: Prior, problem: Problem) -> Plan:
        """Makes every choice for this problem. Rejects problems that the method or a plug-in does not support."""
        name = self.method if isinstance(self.method, str) else self.method.name
        where = (prior.name, name, problem.operator.task, problem.noise_level)
        found = presets.find(*where, prior.home) if self.use_presets else {}
        preset = {key: value for key, value in found.items() if key not in PLUGINS and key not in BUNDLES}
        method = make_method(name, {**preset, **self.own}) if isinstance(self.method, str) else self.method
        together = {item: settings for bundle in self.bundles for item, settings in found.get(bundle, {}).items()}

        def settings_of(item: str) -> dict[str, Any]:
            return {**found.get(item, {}), **together.get(item, {}), **self.of_plugins.get(item, {})}

        plugins = tuple(item if isinstance(item, Plugin) else make_plugin(item, settings_of(item)) for item in self.plugins)
        plugins = tuple(item.for_host(method) for item in plugins)
        if method.term is not None and any(item.takes_over == method.term for item in plugins):
            method = method.without_term()
        method.check(problem)
        grids = self._grids(method, plugins, prior, problem)
        estimator = self._estimator(prior, any(item.needs_sigma for item in plugins))
        check_cost(estimator, math.prod(problem.image_shape))
        settings = {
            "prior": prior.name,
            "method": _describe(method, METHODS),
            "plugins": [_describe(item, PLUGINS) for item in plugins],
            "steps": self.steps,
            "grid": list(grids[0].times) if len(set(grids)) == 1 else [list(grid.times) for grid in grids],
            "estimator": describe(estimator),
            "probes": self.probes,
            "trust_time": self.trust_time,
            **_describe_addresses(grids),
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
        }
        return Plan(method, plugins, grids, estimator, settings)

    def _estimator(self, prior: Prior, read: bool) -> str | Estimator | None:
        """Always provides an estimator to plug-ins that read Sigma; without them, never differentiates a network for a map
        alone."""
        estimator = "auto" if self.estimator is None and read else self.estimator
        return "noise-energy" if estimator == "auto" and prior.source is None and not read else estimator

    def _grids(self, method: Method, plugins: Sequence[Plugin], prior: Prior, problem: Problem) -> tuple[Grid, ...]:
        """The times of each image: plug-ins see one image at a time."""
        first = self._grid(method, prior.schedule)
        grids = []
        for row in range(problem.batch):
            grid, one = first, problem if problem.batch == 1 else problem.select(torch.tensor([row]))
            for item in plugins:
                if method.takes_origin or not item.begins:
                    grid = item.grid(grid, prior, one)
            grids.append(grid)
        return tuple(grids)

    def _grid(self, method: Method, schedule: Schedule) -> Grid:
        if isinstance(self.grid, Grid):
            return self.grid
        if self.grid is not None:
            return make_grid(self.grid, self.steps, schedule)
        return method.default_grid(schedule, self.steps)


def _describe_addresses(grids: Sequence[Grid]) -> dict[str, Any]:
    """The clock and the labels of the grids, if they differ from times and positions."""
    found: dict[str, Any] = {}
    if any(grid.clock != grid.times for grid in grids):
        found["grid_clock"] = [list(grid.clock) for grid in grids]
    if any(grid.labels != tuple(range(len(grid.times))) for grid in grids):
        found["grid_labels"] = [list(grid.labels) for grid in grids]
    return found


def _describe(item: Method | Plugin, registry: Registry[Any]) -> dict[str, Any]:
    """The name from which the object can be rebuilt, and its settings as plain values.

    A field marked `later` appears only where it differs from its default, so that records from before it stay valid.
    """
    said: dict[Any, Any] = {field: getattr(item, field.name) for field in fields(item)} if is_dataclass(item) else {}
    values = {field.name: value for field, value in said.items() if "later" not in field.metadata or value != field.default}
    return {"name": registry.name_of(type(item), item.name), **{key: _make_plain(value) for key, value in values.items()}}


def _make_plain(value: Any) -> Any:
    """A setting ready for JSON: an image prior as its name, NumPy numbers as Python numbers."""
    if isinstance(value, ImagePrior):
        return value.name
    return value.item() if isinstance(value, np.generic) else value
