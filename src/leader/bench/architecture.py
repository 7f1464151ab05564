"""Figure 2: the architecture, drawn from the code's own parts.

The order of the boxes is that of the calls in one step of the loop, read from its syntax tree; who stands in a box is
asked of the registries: the methods, the estimators, and the plug-ins that have the hook. A hook that is added to
the loop appears in the figure, and one that the figure has no words for is refused.
"""

from __future__ import annotations

import ast
import inspect
import io
import textwrap
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from leader import sampler
from leader.bench.figures import COLOURS, drawing
from leader.bench.records import write_atomically
from leader.errors import LeaderError
from leader.methods import METHODS, Method
from leader.plugins import PLUGINS, Plugin
from leader.uncertainty.estimators import ESTIMATORS

WORDS = {
    "grid": ("times", "the times a run visits"),
    "origin": ("origin", "where a late start begins"),
    "wrap": ("network", r"$\epsilon_\theta(x_t, t)$, as plug-ins show it"),
    "estimate": ("estimate", r"$x_{0|t}$ from $x_t$"),
    "estimator": ("uncertainty", r"$\Sigma_t = \mathrm{diag}\,\mathrm{Cov}(x_0\,|\,x_t)$"),
    "pace": ("pace", r"$t_{next}$ from $U_t = \mathrm{mean}\,\Sigma_t$"),
    "modulate": ("modulate", r"$\bar x_{0|t} = x_{0|t} - \Lambda_t \nabla\Phi(x_{0|t})$"),
    "correct": ("correct", r"$\hat x_{0|t}$: consistent with $y$"),
    "settle": ("settle", r"$\hat x_{0|t}$, after the data"),
    "advance": ("advance", r"$x_{t_{next}}$"),
}
"""A title and what is computed, by hook."""
HOST, PLUGIN, SIGMA = COLOURS[0], COLOURS[1], COLOURS[2]


@dataclass(frozen=True)
class Box:
    """One part of the figure. owner: "method", "plug-in" or "estimator"; members: who fills it, by name."""

    hook: str
    owner: str
    members: tuple[str, ...]
    inside: bool


def boxes() -> list[Box]:
    """The parts in the order in which they act: those asked before the loop, then those of one step."""
    found = [Box(name, "plug-in", _plugins_with(name), False) for name in ("grid", "origin")]
    for name in ("wrap", *_calls_of_a_step()):
        if name == "estimator":
            found.append(Box(name, "estimator", tuple(ESTIMATORS), True))
        elif hasattr(Plugin, name):
            found.append(Box(name, "plug-in", _plugins_with(name), True))
        else:
            found.append(Box(name, "method", tuple(sorted(METHODS)), True))
    for box in found:
        if box.hook not in WORDS:
            raise LeaderError(f"The loop has a part '{box.hook}' that Figure 2 has no words for; add them.")
    return found


def draw_architecture(out: Path) -> None:
    """Writes the figure to `out` (.png or .svg)."""
    if out.suffix not in (".png", ".svg"):
        raise LeaderError(f"A figure is written as .png or .svg; found '{out.name}'.")
    blank = {"Date": None, "Creator": None} if out.suffix == ".svg" else {"Software": None}
    buffer = io.BytesIO()
    with drawing():
        _figure(boxes()).savefig(buffer, format=out.suffix[1:], metadata=blank)
    write_atomically(out, buffer.getvalue())


def _plugins_with(hook: str) -> tuple[str, ...]:
    """The plug-ins that have a hook of their own."""
    return tuple(name for name, cls in PLUGINS.items() if getattr(cls, hook) is not getattr(Plugin, hook))


def _calls_of_a_step() -> list[str]:
    """The hooks that one step of the loop calls, in order: of the method, of plug-ins, and the estimator."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(sampler._Run._step)))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    names: list[str] = []
    for node in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        assert isinstance(node.func, ast.Attribute)
        name, owner = node.func.attr.lstrip("_"), ast.unparse(node.func.value)
        mine = owner == "plan.method" and hasattr(Method, name)
        theirs = owner in ("item", "self") and name in vars(Plugin)
        if (mine or theirs or (owner == "self" and name == "estimator")) and name not in ("grid", *names):
            names.append(name)
    return names


def _figure(parts: list[Box]) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

    high, gap = 1.0, 0.45
    figure = Figure(figsize=(7.2, 0.62 * len(parts) + 0.9))
    axis = figure.add_axes((0.02, 0.02, 0.96, 0.92))
    axis.set_axis_off()
    places = [-i * (high + gap) for i in range(len(parts))]
    colours = {"method": HOST, "plug-in": PLUGIN, "estimator": SIGMA}
    for box, top in zip(parts, places):
        title, what = WORDS[box.hook]
        edge = colours[box.owner]
        axis.add_patch(
            FancyBboxPatch((0, top - high), 10, high, boxstyle="round,pad=0.05", facecolor=f"{edge}22", edgecolor=edge)
        )
        axis.text(0.15, top - 0.28, title, weight="bold", va="center")
        axis.text(2.0, top - 0.28, what, va="center")
        axis.text(0.15, top - 0.75, f"{box.owner}: {', '.join(box.members) or 'none'}", va="center", fontsize=6)
    for above, below in pairwise(places):
        axis.add_patch(
            FancyArrowPatch((5, above - high - 0.06), (5, below + 0.06), arrowstyle="-|>", mutation_scale=8, color="#555")
        )
    first = next(top for box, top in zip(parts, places) if box.inside)
    back = [(10.1, places[-1] - high / 2), (10.9, places[-1] - high / 2), (10.9, first - high / 2), (10.15, first - high / 2)]
    axis.plot(*zip(*back), color="#555", linewidth=1)
    axis.annotate("", back[3], back[2], arrowprops={"arrowstyle": "-|>", "color": "#555"})
    axis.text(11.05, (places[-1] + first) / 2 - high / 2, r"until $t = 0$", rotation=90, va="center")
    axis.set_xlim(-0.2, 11.6)
    axis.set_ylim(places[-1] - high - 0.2, 0.3)
    figure.suptitle("One step of the loop: hosts, uncertainty and plug-ins", fontsize=9, y=0.985)
    return figure
