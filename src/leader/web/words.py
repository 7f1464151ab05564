"""What the page says about a finished restoration, in plain words."""

from collections.abc import Sequence
from typing import Any

from leader.messages import Note, render
from leader.progress import format_duration
from leader.restoration.restored import Restoration
from leader.trust import maps
from leader.web.choices import TASK_WORDS

VERDICTS = {
    "fine": ("Looks right", "The result explains the picture that was given, and looks like a photograph."),
    "doubtful": ("Look at it before using it", "Something about the result is not as it should be:"),
    "failed": ("This did not work", "The result is unusable:"),
}
"""Level of a verdict -> its title, and what it means."""
REASONS = {
    "inverted": "{percent:.0f} % of the picture lies far from anything known. Was the right part painted over?",
    "invented": "{percent:.2g} % of the picture is made up: nothing nearby is known.",
    "invented colours": "The colours are made up: the picture that was given has none.",
    "unsure": "For {percent:.0f} % of the picture the program cannot say what the truth is.",
    "sharp": "The picture that was given already looks sharp, so there was no such blur to undo.",
    "growth": "There is more fine detail than the picture can hold: part of it is made up.",
    "waves": "There are ripples that photographs do not have.",
    "excess": "Parts came out darker than black or brighter than white, as if too much had been undone.",
    "kept noise": "Some noise was left in the picture.",
    "too wide": "The picture that was given is sharper than the blur that was assumed: choose a narrower one.",
    "lost": "More was removed than noise: fine detail may be gone.",
    "misfit": "The result does not agree with the picture that was given as well as it should.",
    "too close": "The result follows the picture that was given too closely: noise may have been kept.",
    "colour": "The result differs from the picture that was given in a pattern, and not by chance alone.",
    "misread": "How the picture was made small is a guess, so fine detail may be wrong.",
    "blocks": "The picture that was given has blocks of JPEG compression, which were not removed.",
}
"""Code of a reason for doubt -> plain words, with its value in per cent; one without an entry is shown unchanged."""
WARNINGS = {
    "invented": "Faces, letters and other small details are made up here: do not rely on them.",
    "trust map: other tasks": "The trust map was not checked for this kind of repair; it is drawn with caution.",
    "trust map: other paths": "The trust map may promise too much here: errors can be several times as large as it shows.",
    "trust map: uncalibrated": "The trust map was not checked for this model: take it as a rough hint.",
}
"""Code of a note that a visitor must see -> plain words."""
RUN, DRAFT = "Restoring", "Making a draft"
AGAIN = "Restoring again: the first result did not work, so more noise is assumed"
"""What is under way."""
TOLD = {
    "missing": (
        "Filled in",
        "parts of it are missing or damaged",
        "these parts were filled in from what surrounds them",
    ),
    "noisy": ("Noise removed", "it is noisy", "its noise was measured and removed"),
    "jpeg": (
        "JPEG blocks removed",
        "compression left blocks in it",
        "detail lost to compression was restored as far as possible",
    ),
    "blurred": ("Sharpened", "it is blurred", "the blur was undone"),
    "grey": ("Coloured", "it has no colour", "typical colours of such photographs were added; they are made up"),
    "small": ("Enlarged", "it is small", "it was enlarged, with detail that agrees with every pixel given"),
}
"""Kind of damage -> a title for the result, what was found, and what was done."""


def tell_verdict(restored: Restoration) -> dict[str, Any]:
    """Level, title and sentences of the verdict, the most serious first."""
    judged = restored.verdict
    level = "fine" if judged is None else judged.level
    reasons = () if judged is None else judged.reasons
    title, meaning = VERDICTS[level]
    return {"level": level, "title": title, "meaning": meaning, "reasons": [_put_plainly(reason) for reason in reasons]}


def _put_plainly(reason: Note) -> str:
    plain = REASONS.get(reason.code)
    text = render(reason, "page", TASK_WORDS) if plain is None else plain.format(percent=100 * reason.values.get("value", 0))
    ended = text if text.endswith((".", "?")) else f"{text}."
    return ended[:1].upper() + ended[1:]


def tell_warnings(notes: Sequence[str]) -> list[str]:
    """Notes that a visitor must see besides the verdict."""
    codes = [note.code for note in notes if isinstance(note, Note)]
    return [words for code, words in WARNINGS.items() if code in codes]


def tell_notes(notes: Sequence[str]) -> list[str]:
    """All other choices made during the run."""
    return [render(note, "page", TASK_WORDS) for note in notes if getattr(note, "code", None) not in WARNINGS]


def tell_story(restored: Restoration, kind: str, found: bool) -> list[str]:
    """Three sentences: why it was done, what was done, and how certain it is.

    kind   of damage that was repaired
    found  whether the program saw the damage itself
    """
    _, seen, done = TOLD[kind]
    why = f"{'The program looked at the picture and found' if found else 'You said'} that {seen}."
    width, height = restored.picture.size
    deed = f"{done}, in {format_duration(restored.seconds)}"
    what = f"So {deed}: {width} x {height} pixels, computed from the picture and from what the program knows about photographs."
    spread = restored.uncertainty
    sure = "How certain each pixel is was not estimated." if spread is None else maps.in_words(spread)
    return [why, what, sure]


def list_numbers(restored: Restoration) -> dict[str, str]:
    """The run in numbers, for experts."""
    settings = restored.result.settings
    found = {
        "task": restored.task,
        "noise level sigma": f"{restored.sigma:.4f} ({restored.sigma_from})",
        "method": str(settings["method"]["name"]),
        "plug-ins": ", ".join(item["name"] for item in settings["plugins"]) or "none",
        "steps of the grid": str(settings["steps"]),
        "network calls": str(restored.result.ledger.total.calls),
        "seed": str(restored.result.seed),
        "threads": str(settings["threads"]),
        "seconds": f"{restored.seconds:.1f}",
    }
    reasons = () if restored.verdict is None else restored.verdict.reasons
    return {**found, **{f"verdict: {reason.code}": str(reason) for reason in reasons}}
