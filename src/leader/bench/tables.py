"""Tables from records, in Markdown, CSV, LaTeX and HTML.

A table has three parts: the means with standard deviations per row and task, with the average change against the host in % (the
last columns of the paper's Table 1); the paired differences against the host with 95 % intervals, if there are enough images;
the conventions behind the numbers. The CSV is tidy instead: one line per row, task and number. [table] in an experiment may set
the `metrics`; `std` = false; a `baseline`: a row with which the hosts are compared in an additional part; and the `published`
average changes of a row, in %, with the `data` they are for, to show beside our changes of the numbers in `beside`.
"""

import csv
import html
import io
from collections.abc import Callable
from dataclasses import dataclass, field

from leader.bench.cell import BASELINES
from leader.bench.columns import COLUMNS
from leader.bench.experiment import Row
from leader.bench.statistics import FEWEST_IMAGES, Difference, Numbers, tell_interval
from leader.errors import unknown_name


@dataclass(frozen=True)
class Sheet:
    """A block of text cells with a two-level head: groups of (title, width), then columns; **...** marks what is clear."""

    caption: str
    groups: list[tuple[str, int]]
    columns: list[str]
    lines: list[list[str]]


@dataclass(frozen=True)
class Document:
    """The content of a table: sheets and notes."""

    title: str
    sheets: list[Sheet]
    notes: list[str] = field(default_factory=list)


def render_table(numbers: Numbers, form: str = "md") -> str:
    """The table of an experiment as text. form: md, csv, latex or html."""
    if form not in FORMATS:
        raise unknown_name("table format", form, FORMATS)
    return FORMATS[form](numbers)


def metrics_of(numbers: Numbers) -> list[str]:
    """The numbers that the experiment's table shows, without those that no record has."""
    asked = numbers.experiment.table.metrics
    rows, tasks = numbers.experiment.rows, numbers.experiment.tasks
    return [name for name in asked if any(numbers.per_image(row.label, task.label, name) for row in rows for task in tasks)]


def document(numbers: Numbers) -> Document:
    """The parts of a table: means, average changes, paired differences, and differences of the hosts from a baseline."""
    experiment, metrics = numbers.experiment, metrics_of(numbers)
    form = experiment.form
    seeds = "1 seed" if len(form.seeds) == 1 else f"{len(form.seeds)} seeds"
    setting = f"Prior {form.prior}, {form.count} images of {form.size} px, T = {form.steps}, {seeds}."
    notes = [setting, *([experiment.note] if experiment.note else [])]
    shown = [COLUMNS[name] for name in metrics]
    notes += [f"{column.title}: {column.convention}." for column in shown if column.convention]
    notes += [f"Failed: {line}" for line in numbers.failures()]
    for count in sorted({row.count for row in experiment.rows if row.count is not None and row.count < form.count}):
        few = ", ".join(row.label for row in experiment.rows if row.count == count)
        notes.append(f"On the first {count} images alone, and compared on these: {few}.")
    sheets = [_means(numbers, metrics)]
    if numbers.compared():
        pairs = [(row.label, str(row.against)) for row in numbers.compared()]
        sheets += [_changes(numbers, metrics), _differences(numbers, metrics, "Difference from the host", pairs)]
        if experiment.table.published:
            sheets.insert(1, beside_published(numbers, metrics))
        if any(found.interval is None for found in _pairs(numbers, metrics, pairs)):
            notes.append(f"95 % intervals, and bold, are given from {FEWEST_IMAGES} images on, not where there are fewer.")
    baseline = experiment.table.baseline
    hosts = [row.label for row in experiment.rows if row.against is None and row.method not in BASELINES]
    if baseline in [row.label for row in experiment.rows] and hosts:
        shared = [name for name in metrics if numbers.per_image(baseline, experiment.tasks[0].label, name)]
        pairs = [(host, baseline) for host in hosts]
        sheets.append(_differences(numbers, shared, f"Difference of the hosts from {baseline}", pairs))
    return Document(experiment.title, sheets, notes)


def _means(numbers: Numbers, metrics: list[str]) -> Sheet:
    spread = numbers.experiment.table.std

    def cell(row: Row, task: str, name: str) -> str:
        found = numbers.summary(row.label, task, name)
        if found is None:
            return "–"
        digits = COLUMNS[name].digits
        return f"{found.mean:.{digits}f}" + (f" ± {found.std:.{digits}f}" if spread and found.count > 1 else "")

    tasks = numbers.experiment.tasks
    return Sheet(
        "Mean ± standard deviation over images" if spread else "Mean over images",
        [(task.label, len(metrics)) for task in tasks],
        [_arrow(name) for _ in tasks for name in metrics],
        [[row.label, *(cell(row, task.label, name) for task in tasks for name in metrics)] for row in numbers.experiment.rows],
    )


def _changes(numbers: Numbers, metrics: list[str]) -> Sheet:
    lines = []
    for row in numbers.compared():
        changes = [numbers.average_change(row, name) for name in metrics]
        lines.append([row.label, str(row.against), *map(_percent, changes)])
    columns = ["against", *(_arrow(name) for name in metrics)]
    return Sheet("Average change over the tasks", [("", len(columns))], columns, lines)


def beside_published(numbers: Numbers, metrics: list[str]) -> Sheet:
    """The average change by plug-ins over the tasks, with intervals, beside the published ones: [table.published]."""
    published = numbers.experiment.table.published
    compared = numbers.compared()
    hosts = list(dict.fromkeys(row.against for row in compared if row.label in published))
    shown = [name for name in numbers.experiment.table.beside or metrics if name in metrics]
    told = [name for name in COLUMNS if any(name in entry for entry in published.values())]
    lines = []
    for row in (row for host in hosts for row in compared if row.against == host):
        own = published.get(row.label, {})
        images = len(numbers.per_image(row.label, numbers.experiment.tasks[0].label, "psnr"))
        ours = [_change_text(numbers, row, name) for name in shown]
        lines.append([row.label, str(images), *ours, own.get("data", "–"), *(_percent(own.get(name)) for name in told)])
    heads = ["images", *map(_arrow, shown), "published for", *(f"{COLUMNS[name].title} there" for name in told)]
    return Sheet(
        "Average change over the tasks with 95 % bootstrap intervals, beside what is published for other pictures and networks",
        [("", len(heads))],
        heads,
        lines,
    )


def _change_text(numbers: Numbers, row: Row, name: str) -> str:
    change = numbers.average_change(row, name)
    return "–" if change is None else tell_interval(change, numbers.average_interval(row, name), 2, " %")


def _percent(change: float | None) -> str:
    return "–" if change is None else f"{change:+.2f} %"


def _differences(numbers: Numbers, metrics: list[str], caption: str, pairs: list[tuple[str, str]]) -> Sheet:
    """Each pair is a row and the row it is compared with."""
    tasks = numbers.experiment.tasks

    def cell(row: str, host: str, task: str, name: str) -> str:
        found = numbers.difference(row, host, task, name)
        return "–" if found is None else tell_interval(found.mean, found.interval, COLUMNS[name].digits + 1)

    intervals = any(found.interval is not None for found in _pairs(numbers, metrics, pairs))
    return Sheet(
        f"{caption} over the same images" + (", 95 % bootstrap intervals; bold: zero is outside" if intervals else ""),
        [(task.label, len(metrics)) for task in tasks],
        [_arrow(name) for _ in tasks for name in metrics],
        [[row, *(cell(row, host, task.label, name) for task in tasks for name in metrics)] for row, host in pairs],
    )


def _pairs(numbers: Numbers, metrics: list[str], pairs: list[tuple[str, str]]) -> list[Difference]:
    """All available differences of a sheet."""
    tasks = numbers.experiment.tasks
    found = [numbers.difference(*pair, task.label, name) for pair in pairs for task in tasks for name in metrics]
    return [item for item in found if item is not None]


def _arrow(name: str) -> str:
    column = COLUMNS[name]
    return column.title + {1: " ↑", -1: " ↓", 0: ""}[column.better]


def _markdown(numbers: Numbers) -> str:
    """One sheet per task if there are several groups: Markdown has no two-level head."""
    text = document(numbers)
    parts = [f"## {text.title}", ""]
    for sheet in text.sheets:
        parts += [f"### {sheet.caption}", ""]
        start = 0
        for title, width in sheet.groups:
            if title:
                parts += [f"**{title}**", ""]
            columns = sheet.columns[start : start + width]
            parts.append("| " + " | ".join(["method", *columns]) + " |")
            parts.append("| --- |" + " ---: |" * len(columns))
            for line in sheet.lines:
                values = line[1 + start : 1 + start + width]
                if any(value != "–" for value in values):
                    parts.append("| " + " | ".join([line[0], *values]) + " |")
            parts.append("")
            start += width
    parts += [*(f"- {note}" for note in text.notes), ""]
    return "\n".join(parts)


def _latex(numbers: Numbers) -> str:
    text = document(numbers)
    parts: list[str] = []
    for sheet in text.sheets:
        width = sum(size for _, size in sheet.groups)
        heads, rules, start = [], [], 2
        for title, size in sheet.groups:
            heads.append(rf"\multicolumn{{{size}}}{{c}}{{{_tex(title)}}}")
            rules.append(rf"\cmidrule(lr){{{start}-{start + size - 1}}}")
            start += size
        parts += [
            r"\begin{table*}",
            r"\centering",
            rf"\caption{{{_tex(text.title)}. {_tex(sheet.caption)}.}}",
            r"\resizebox{\textwidth}{!}{",
            rf"\begin{{tabular}}{{l{'r' * width}}}",
            r"\toprule",
            " & ".join(["", *heads]) + r" \\",
            " ".join(rules),
            " & ".join(["Method", *map(_tex, sheet.columns)]) + r" \\",
            r"\midrule",
            *(" & ".join(map(_tex, line)) + r" \\" for line in sheet.lines),
            r"\bottomrule",
            r"\end{tabular}",
            "}",
            r"\end{table*}",
            "",
        ]
    return "\n".join(["% needs booktabs and graphicx", *parts])


def _tex(text: str) -> str:
    if text.startswith("**"):
        return rf"\textbf{{{_tex(text[2:-2])}}}"
    signs = {"%": r"\%", "_": r"\_", "&": r"\&", "#": r"\#", "σ": r"$\sigma$", "±": r"$\pm$", "–": "--"}
    signs |= {"↑": r"$\uparrow$", "↓": r"$\downarrow$", "ü": r"\"u"}
    return "".join(signs.get(sign, sign) for sign in text)


def _html(numbers: Numbers) -> str:
    text = document(numbers)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f"<title>{html.escape(text.title)}</title>",
        "<style>body{font:15px/1.4 sans-serif;margin:2em}table{border-collapse:collapse;margin:1em 0}"
        "th,td{padding:.2em .7em;border-bottom:1px solid #ccc;text-align:right;white-space:nowrap}"
        "th:first-child,td:first-child{text-align:left}div{overflow-x:auto}</style></head><body>",
        f"<h1>{html.escape(text.title)}</h1>",
    ]
    for sheet in text.sheets:
        groups = "".join(f'<th colspan="{size}">{html.escape(title)}</th>' for title, size in sheet.groups)
        columns = "".join(f"<th>{html.escape(column)}</th>" for column in sheet.columns)
        parts += [f"<h2>{html.escape(sheet.caption)}</h2>", "<div><table>"]
        parts += [f"<tr><th></th>{groups}</tr>", f"<tr><th>method</th>{columns}</tr>"]
        parts += ["<tr>" + "".join(f"<td>{_mark_clear(value)}</td>" for value in line) + "</tr>" for line in sheet.lines]
        parts.append("</table></div>")
    parts += ["<ul>", *(f"<li>{html.escape(note)}</li>" for note in text.notes), "</ul>", "</body></html>", ""]
    return "\n".join(parts)


def _mark_clear(value: str) -> str:
    bold = value.startswith("**")
    safe = html.escape(value[2:-2] if bold else value)
    return f"<b>{safe}</b>" if bold else safe


def _csv(numbers: Numbers) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["row", "against", "task", "number", "mean", "std", "images", "difference", "low", "high", "percent"])
    compared, metrics = {row.label for row in numbers.compared()}, metrics_of(numbers)
    for row in numbers.experiment.rows:
        for task in numbers.experiment.tasks:
            for name in metrics:
                found = numbers.summary(row.label, task.label, name)
                if found is None:
                    continue
                line = [row.label, row.against or "", task.label, name, _number(found.mean), _number(found.std)]
                against = row.against if row.label in compared else None
                paired = None if against is None else numbers.difference(row.label, against, task.label, name)
                values = ["", "", "", ""]
                if paired is not None:
                    values = [_number(v) for v in (paired.mean, *(paired.interval or (None, None)), paired.percent)]
                writer.writerow([*line, found.count, *values])
    return buffer.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def render_comparison(numbers: Numbers, row: str, host: str) -> str:
    """Two rows, image by image, as Markdown: means, difference with interval, change in %, images on which `row` is better."""
    lines = [
        f"## {row} against {host}",
        "",
        f"| task | number | {host} | {row} | difference | change | better on |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for task in numbers.experiment.tasks:
        for name in metrics_of(numbers):
            found = numbers.difference(row, host, task.label, name)
            if found is None:
                continue
            column = COLUMNS[name]
            mine, theirs = (numbers.per_image(label, task.label, name) for label in (row, host))
            shared = mine.keys() & theirs.keys()
            means = [sum(side[i] for i in shared) / len(shared) for side in (theirs, mine)]
            won = sum(column.better * (mine[i] - theirs[i]) > 0 for i in shared)
            wins = f"{won} of {len(shared)}" if column.better else ""
            shown = " | ".join(f"{mean:.{column.digits}f}" for mean in means)
            interval = tell_interval(found.mean, found.interval, column.digits + 1)
            lines.append(f"| {task.label} | {column.title} | {shown} | {interval} | {_percent(found.percent)} | {wins} |")
    return "\n".join([*lines, ""])


FORMATS: dict[str, Callable[[Numbers], str]] = {
    "md": _markdown,
    "csv": _csv,
    "latex": _latex,
    "html": _html,
}
