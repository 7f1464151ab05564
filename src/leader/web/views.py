"""The page's own pieces of HTML: the drop zone, the canvas to paint on, progress, sliders, verdict, downloads.

Everything that comes from a picture or a visitor is escaped. `static/page.js` gives them life.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape

from leader.messages import render
from leader.pictures.formats import SERVED
from leader.progress import format_clock
from leader.web.choices import TASK_WORDS
from leader.web.jobs import Job
from leader.web.samples import SAMPLES
from leader.web.work import COVER, GIVEN, MAP, PATH, RESTORED, RUN, Outcome

FILES = "leader/files"
VERDICTS = {
    "fine": ("Looks right", "The result explains the picture that was given, and looks like a photograph."),
    "doubtful": ("Look at it before using it", ""),
    "failed": ("This did not work", "The result is no answer; do not use it."),
}
DOWNLOADS = {
    RESTORED: "Restored picture",
    MAP: "Trust map",
    RUN: "The run, to repeat it (JSON)",
}


def address(outcome: Outcome, name: str) -> str:
    return f"{FILES}/{outcome.entry.token}/{name}"


def drop_zone(megabytes: float) -> str:
    """Where a picture is dropped, pasted or chosen; what went wrong with it is told below."""
    samples = "".join(
        f'<button type="button" class="sample" data-sample="{name}">'
        f'<img src="leader/samples/{name}.png" alt="" loading="lazy"><span>{escape(sample.title)}</span></button>'
        for name, sample in SAMPLES.items()
    )
    return (
        f'<div class="drop" id="drop" data-most="{megabytes * 2**20:.0f}">'
        '<label for="file"><strong>Drop a picture here</strong>, paste it, or choose a file'
        f'<span class="small">{SERVED}, up to {megabytes:.0f} MB. It stays on this machine.</span></label>'
        '<input type="file" id="file" accept="image/*,.tif,.tiff,.webp,.bmp,.jp2,.heic,.heif,.avif"></div>'
        '<p id="told" class="told" role="alert"></p>'
        f'<p class="small" id="or">Or try a sample:</p><div class="samples" role="group" aria-labelledby="or">{samples}</div>'
    )


def given_picture(token: str, size: tuple[int, int]) -> str:
    return (
        f'<figure class="given"><img src="{FILES}/{token}/view.png" alt="The picture you gave, {size[0]} x {size[1]} pixels">'
        "</figure>"
    )


def canvas(token: str, size: tuple[int, int], known: str = "") -> str:
    """The picture with a brush over it; with the arrow keys and Space it can be painted without a mouse.

    known  what is filled in where nothing is painted
    """
    what = f"{known} Paint over parts to fill in those instead." if known else "Paint over what is missing."
    return (
        f'<div class="paint" data-token="{token}"><p class="small" id="how">{escape(what)} Keyboard: move with '
        "the arrow keys, paint with Space.</p>"
        f'<div class="sheet"><img src="{FILES}/{token}/view.png" alt="The picture you gave">'
        f'<canvas tabindex="0" role="application" aria-label="Brush for missing parts" aria-describedby="how" '
        f'data-width="{size[0]}" data-height="{size[1]}"></canvas></div>'
        '<div class="tools"><label>Brush <input type="range" class="brush" min="2" max="60" value="16" '
        'aria-label="Width of the brush"></label><button type="button" class="plain" data-clear>Clear</button></div></div>'
    )


def findings(words: Sequence[str], size: tuple[int, int]) -> str:
    """What the page sees in the picture."""
    if not words:
        return f"<p>The picture has {size[0]} x {size[1]} pixels. Say below what is wrong with it.</p>"
    items = "".join(f"<li>{escape(text)}</li>" for text in words)
    return f"<h2>What we see</h2><ul>{items}</ul>"


def waiting_line(ahead: int) -> str:
    text = "You are next." if ahead == 0 else f"{ahead} picture{'s' if ahead > 1 else ''} before yours."
    return f'<div class="status" role="status"><p>{text}</p><progress aria-label="Waiting"></progress></div>'


def progress_bar(job: Job) -> str:
    """How far a job is, with the estimate so far."""
    left = "" if job.seconds_left is None else f", at most {format_clock(job.seconds_left)} left"
    share = round(100 * job.share)
    shown = ""
    if job.preview is not None:
        data = base64.b64encode(job.preview).decode("ascii")
        shown = (
            f'<img class="preview" data-preview="{job.previews}" src="data:image/jpeg;base64,{data}" '
            'alt="The estimate so far, growing clear">'
        )
    return (
        f'<div class="status"><p><span role="status">{escape(job.words)}</span>: {share} %{left}</p>'
        f'<progress max="100" value="{share}" aria-label="Progress">{share} %</progress>{shown}</div>'
    )


def sentence(text: str, kind: str = "error") -> str:
    return f'<p class="told {kind}" role="alert">{escape(text)}</p>'


def slider(before: str, after: str, size: tuple[int, int]) -> str:
    """Two pictures on each other and a handle between them, a range that keys move too."""
    return (
        f'<div class="slider" style="--share: 50%; --width: {size[0]}; --height: {size[1]}">'
        f'<img src="{after}" alt="The restored picture"><img class="over" src="{before}" alt="The picture you gave">'
        '<span class="handle" aria-hidden="true"></span>'
        '<input type="range" min="0" max="100" value="50" aria-label="Before and after: how much of the picture you gave '
        'is shown"></div><p class="small ends"><span>before</span><span>after</span></p>'
    )


def trust(outcome: Outcome) -> str:
    """The map over the picture, with a slider for how much of it is seen, and its legend in words."""
    if COVER not in outcome.files:
        return "<p>This run estimated no uncertainty, so there is no trust map.</p>"
    entries = "".join(
        f'<li><span class="swatch" style="background: {colour}"></span>{escape(words)}</li>' for colour, words in outcome.legend
    )
    return (
        f'<div class="trust" style="--share: 0.6"><div class="stack"><img src="{address(outcome, RESTORED)}" '
        f'alt="The restored picture"><img class="over" src="{address(outcome, COVER)}" '
        f'alt="Trust map: {escape(outcome.trust)}">'
        '</div><label>How much of the map is shown <input type="range" min="0" max="100" value="60" '
        'aria-label="How much of the trust map is shown"></label>'
        f'<p>{escape(outcome.trust)}</p><p class="small">Colours: how far the truth may be from the answer, nine times of ten, '
        f'in grey levels of 255.</p><ul class="legend">{entries}</ul></div>'
    )


def verdict(outcome: Outcome) -> str:
    title, text = VERDICTS[outcome.level]
    told = [render(reason, "page", TASK_WORDS) for reason in outcome.reasons]
    reasons = "".join(f"<li>{escape(reason[:1].upper() + reason[1:])}</li>" for reason in told)
    body = f"<p>{text}</p>" if text else ""
    return f'<section class="verdict {outcome.level}" aria-label="Verdict"><h2>{title}</h2>{body}<ul>{reasons}</ul></section>'


def downloads(outcome: Outcome) -> str:
    links = "".join(
        f'<a class="download" href="{address(outcome, name)}?save=1" download="{name}">{text}</a>'
        for name, text in DOWNLOADS.items()
        if name in outcome.files
    )
    return f'<div class="downloads" role="group" aria-label="Downloads">{links}</div>'


def numbers(values: Mapping[str, object], notes: Sequence[str]) -> str:
    rows = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in values.items()
    )
    told = "".join(f"<li>{escape(render(note, 'page', TASK_WORDS))}</li>" for note in notes)
    return f"<ul>{told}</ul><table class='numbers'><caption>The run in numbers</caption><tbody>{rows}</tbody></table>"


def result_text(outcome: Outcome) -> str:
    """Everything about a finished restoration."""
    return (
        f'<div class="done" data-token="{outcome.entry.token}"><p class="small" role="status">Done: {outcome.size[0]} x '
        f"{outcome.size[1]} pixels in {outcome.seconds:.1f} s.</p>"
        f"{slider(address(outcome, GIVEN), address(outcome, RESTORED), outcome.size)}{verdict(outcome)}{downloads(outcome)}"
        f"<h2>How far to trust it</h2>{trust(outcome)}"
        f'<details><summary>The way it took</summary><img class="path" src="{address(outcome, PATH)}" '
        'alt="Plot of the mean uncertainty and of the jumps over the times of the run"></details>'
        f"<details><summary>Numbers</summary>{numbers(outcome.numbers, outcome.notes)}</details></div>"
    )


def comparison(left: tuple[str, Outcome], right: tuple[str, Outcome]) -> str:
    """Two results beside each other; zoom and place are the same for both."""
    panes = "".join(
        f'<figure><div class="pane" tabindex="0" role="group" aria-label="{escape(title)}; zoom with plus and minus, move with '
        f'the arrow keys"><img src="{address(outcome, RESTORED)}" alt="Restored: {escape(title)}" draggable="false"></div>'
        f"<figcaption>{escape(title)}: {outcome.seconds:.1f} s, {VERDICTS[outcome.level][0].lower()}.</figcaption>"
        f"{downloads(outcome)}</figure>"
        for title, outcome in (left, right)
    )
    return (
        f'<div class="compare"><div class="panes">{panes}</div><label>Zoom <input type="range" class="zoom" '
        'min="100" max="1600" value="100" aria-label="Zoom of both pictures"></label><p class="small">Drag to move, wheel '
        "or slider to zoom: both pictures follow.</p></div>"
    )
