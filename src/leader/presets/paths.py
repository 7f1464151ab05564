"""Paths: the host, its grid and its length that a quality and a look stand for, as data (paths.toml).

quality  draft (a glance), standard (the default) or best (where more work still helps)
look     natural (lower LPIPS: textures a viewer would believe) or faithful (higher PSNR: closer to the truth on average)

An entry holds the keys of a preset (prior, task, noise; see `leader.presets`) with quality and look, and says method,
steps, grid, plugins, settings, and the source of the choice; `times`, where no named grid is as good, says every time
visited, and the grid is what other numbers of steps get; `average` runs are averaged. The most specific entry wins, whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from leader.errors import unknown_name
from leader.presets import rank, read_entries
from leader.schedule import Grid

if TYPE_CHECKING:
    from leader.methods import Method

QUALITIES = ("draft", "standard", "best")
LOOKS = ("natural", "faithful")


@dataclass(frozen=True)
class RunPath:
    """What a run does where its caller gave quality and look alone.

    method  by name; an object where a caller gave one
    grid   by name, for any number of steps; None: the method's own
    times  the very times visited, the last one -1, where they were chosen one by one
    average  number of runs whose mean the picture is
    """

    method: str | Method
    steps: int
    source: str
    grid: str | None = None
    plugins: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    times: tuple[int, ...] = ()
    average: int = 1

    def with_steps(self, steps: int) -> RunPath:
        """The path with another number of steps; the times belong to its own."""
        return self if steps == self.steps else replace(self, steps=steps, times=())

    def route(self) -> str | Grid | None:
        """The grid as a sampler takes it."""
        return Grid(self.times) if self.times else self.grid


def check_words(quality: str, look: str) -> None:
    for word, valid, kind in ((quality, QUALITIES, "quality"), (look, LOOKS, "look")):
        if word not in valid:
            raise unknown_name(kind, word, valid)


def find_path(prior: str, task: str, sigma: float, quality: str, look: str, known: float = 1.0) -> RunPath:
    """The path for this combination; sigma is quoted for [0, 1] images.

    known  the share of the pixels that a mask leaves; an entry with `known` is for masks that leave no more
    """
    check_words(quality, look)
    ranked = []
    for number, entry in enumerate(_entries()):
        fit = rank({**entry, "method": "any"}, prior, "any", task, sigma)  # the method is what is chosen here
        words = [{quality: 1.0, "any": 0.0}.get(entry["quality"]), {look: 1.0, "any": 0.0}.get(entry["look"])]
        most = entry.get("known", 1.0)
        if fit is not None and None not in words and known <= most:
            ranked.append(((*fit, *words, -most), number, entry))
    chosen = max(ranked, key=lambda item: item[:2])[2]
    told: dict[str, Any] = {}
    for key in RunPath.__dataclass_fields__.keys() & chosen.keys():
        told[key] = tuple(chosen[key]) if isinstance(chosen[key], list) else chosen[key]
    return RunPath(**told)


def list_same(
    prior: str, task: str, sigma: float, quality: str, look: str, known: float = 1.0
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The qualities, then the looks, that stand for the same path as these two words, themselves included."""

    def find(quality: str, look: str) -> RunPath:
        return replace(find_path(prior, task, sigma, quality, look, known), source="")

    own = find(quality, look)
    qualities = [word for word in QUALITIES if find(word, look) == own]
    looks = [word for word in LOOKS if find(quality, word) == own]
    return tuple(qualities), tuple(looks)


@cache
def _entries() -> tuple[dict[str, Any], ...]:
    return tuple(read_entries(resources.files("leader.presets") / "paths.toml", "path"))
