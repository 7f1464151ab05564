"""The records as Markdown: the screen, and per task what is best for the work, beside what people get so far."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from lengths import lanes
from points import GRIDS, HOSTS, TASKS
from scores import Mean, Record, front, means, pareto

HEAD = "| host and settings | grid | start | calls | work | PSNR | LPIPS | score |\n|" + " --- |" * 8


def unique(rows: Iterable[Record]) -> list[Record]:
    return list({row["key"]: row for row in rows}.values())


def line(mean: Mean, note: str = "") -> str:
    row = mean.first
    cells = [
        f"{mean.name}{note}",
        row["grid"],
        row["start"],
        f"{mean.calls:.0f}",
        f"{mean.cost:.1f}",
        f"{mean.psnr:.2f}",
        f"{mean.lpips:.3f}",
        f"{mean.score:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def screen_table(rows: Sequence[Record], indices: Sequence[int]) -> str:
    """Per task: every host with the presets on the three grids, its best trial, and the non-dominated set."""
    parts = []
    for task, label in ((name, TASKS[name].label) for name in TASKS):
        found = means((row for row in rows if row["task"] == task), indices)
        if not found:
            continue
        head = f"| host | {' | '.join(GRIDS)} | best trial | grid | PSNR | LPIPS | score | work | trials |"
        lines = [f"### {label}", "", head, "| --- |" + " --- |" * (len(GRIDS) + 7)]
        for host in HOSTS:
            mine = [mean for mean in found if mean.first["method"] == host]
            if not mine:
                continue
            top = max(mine, key=lambda mean: mean.score)
            cells = [host, *(_first(mine, grid) for grid in GRIDS), top.name, top.first["grid"]]
            cells += [
                f"{top.psnr:.2f}",
                f"{top.lpips:.3f}",
                f"{top.score:.2f}",
                f"{top.cost:.1f}",
                str(len(mine) - len(GRIDS) + 1),
            ]
            lines.append(f"| {' | '.join(cells)} |")
        lines += ["", "Not dominated in PSNR and LPIPS:", "", HEAD, *(line(mean) for mean in pareto(found))]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _first(mine: Sequence[Mean], grid: str) -> str:
    """PSNR and LPIPS of the presets on a grid: the first group recorded there."""
    for mean in mine:
        if mean.first["grid"] == grid:
            return f"{mean.psnr:.2f} {mean.lpips:.3f}" if math.isfinite(mean.score) else "failed"
    return "-"


def lengths_table(rows: Sequence[Record], now: Sequence[Record], indices: Sequence[int]) -> str:
    """Per task: the best of every length for PSNR, LPIPS and the score, then the front in (PSNR, LPIPS, work)."""
    parts = []
    for task in TASKS:
        found = means((row for row in rows if row["task"] == task), indices)
        if not found:
            continue
        default = means((row for row in now if row["task"] == task), indices)
        lines = [f"### {TASKS[task].label}", "", f"Means over {len(indices)} photographs.", "", HEAD]
        lines += [line(mean, " (today's default)" if mean.first["plugins"] else " (its host)") for mean in default]
        for lane, members in lanes(found).items():
            if members:
                lines.append(line(max(members, key=lambda mean: mean.score), f" ({lane}, score)"))
                lines.append(line(max(members, key=lambda mean: mean.psnr), f" ({lane}, PSNR)"))
                lines.append(line(min(members, key=lambda mean: mean.lpips), f" ({lane}, LPIPS)"))
        lines += ["", "Front (no other has a higher PSNR and a lower LPIPS for no more work):", "", HEAD]
        lines += [line(mean) for mean in front([*found, *default])]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def paired(one: Sequence[Record], other: Sequence[Record], key: str) -> tuple[float, float]:
    """Mean and standard error of one - other over the photographs that both have."""
    theirs = {row["index"]: row[key] for row in other}
    gains = [row[key] - theirs[row["index"]] for row in one if row["index"] in theirs]
    mean = sum(gains) / len(gains)
    spread = math.sqrt(sum((gain - mean) ** 2 for gain in gains) / max(1, len(gains) - 1))
    return mean, spread / math.sqrt(len(gains))
