"""Draws figure 2: one step of the loop, and which kind of part does what in it.

python experiments/figure2.py docs/results/figure2.png
"""

import sys
from itertools import pairwise
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from leader.bench.figures import COLOURS, save_figure

KINDS = {"method": COLOURS[0], "plug-in": COLOURS[1], "estimator": COLOURS[2]}
BOXES = (
    ("times", "plug-in", "the times a run visits", "start, cells, direct, pace, equs+"),
    ("origin", "plug-in", "where a late start begins", "start, cells, direct"),
    ("network", "plug-in", r"$\epsilon_\theta(x_t, t)$, as plug-ins show it", "equs, equs+"),
    ("estimate", "method", r"$x_{0|t}$ from $x_t$", "DDNM, DDRM, DPS, ..."),
    ("uncertainty", "estimator", r"$\Sigma_t = \mathrm{diag}\,\mathrm{Cov}(x_0\,|\,x_t)$", "head, learned, hutchinson, ..."),
    ("pace", "plug-in", r"$t_{next}$ from $U_t = \mathrm{mean}\,\Sigma_t$", "satp"),
    ("modulate", "plug-in", r"$\bar x_{0|t} = x_{0|t} - \Lambda_t \nabla\Phi(x_{0|t})$", "ucpm"),
    ("correct", "method", r"$\hat x_{0|t}$: consistent with $y$", "DDNM, DDRM, DPS, ..."),
    ("settle", "plug-in", r"$\hat x_{0|t}$, after the data", "wiener, cells"),
    ("advance", "method", r"$x_{t_{next}}$", "DDNM, DDRM, DPS, ..."),
)
"""Title, kind, what is computed, by whom, in the order of one step; the first two are asked once, before the loop."""
BEFORE = 2
HIGH, PITCH = 1.0, 1.45


def draw() -> Figure:
    """The boxes from top to bottom, arrows between them, and one back from the last to the first of a step."""
    figure = Figure(figsize=(7.2, 0.62 * len(BOXES) + 0.9))
    axis = figure.add_axes((0.02, 0.02, 0.96, 0.92))
    axis.set_axis_off()
    tops = [-i * PITCH for i in range(len(BOXES))]
    for (title, kind, what, who), top in zip(BOXES, tops, strict=True):
        edge, corner = KINDS[kind], (0, top - HIGH)
        axis.add_patch(FancyBboxPatch(corner, 10, HIGH, boxstyle="round,pad=0.05", facecolor=f"{edge}22", edgecolor=edge))
        axis.text(0.15, top - 0.28, title, weight="bold", va="center")
        axis.text(2.0, top - 0.28, what, va="center")
        axis.text(0.15, top - 0.75, f"{kind}: {who}", va="center", fontsize=6)
    for above, below in pairwise(tops):
        ends = (5, above - HIGH - 0.06), (5, below + 0.06)
        axis.add_patch(FancyArrowPatch(*ends, arrowstyle="-|>", mutation_scale=8, color="#555"))
    first, last = tops[BEFORE] - HIGH / 2, tops[-1] - HIGH / 2
    axis.plot([10.1, 10.9, 10.9], [last, last, first], color="#555", linewidth=1)
    axis.annotate("", (10.15, first), (10.9, first), arrowprops={"arrowstyle": "-|>", "color": "#555"})
    axis.text(11.05, (first + last) / 2, r"until $t = 0$", rotation=90, va="center")
    axis.set_xlim(-0.2, 11.6)
    axis.set_ylim(tops[-1] - HIGH - 0.2, 0.3)
    figure.suptitle("One step of the loop: hosts, uncertainty and plug-ins", fontsize=9, y=0.985)
    return figure


if __name__ == "__main__":
    save_figure(draw, Path(sys.argv[1]))
