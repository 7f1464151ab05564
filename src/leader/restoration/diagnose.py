"""diagnose: what is wrong with a picture, in words and as data, and the command that would repair it.

One repair is advised, the most urgent of those that are certain: defects, noise, blur, compression. Transparent parts stay so.
What was filled in or sharpened without being asked for is kept only if nothing is wrong with the result.
Noise comes before blur because it hides the fine detail in which a blur shows; noise that hardly exceeds a JPEG's own error
cannot be distinguished from it, and is left to the repair of the JPEG. Scratches and single pixels are reported but not filled
in if they may be content: in a JPEG, where a wire looks like a scratch and the dot of an i like a dead pixel, and in drawings.
Nothing is enlarged or coloured unless the user asks for it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leader.errors import LeaderError, UsageError
from leader.files import printable
from leader.forensics import Examination, examine
from leader.forensics.blur.search import is_upright
from leader.forensics.defects.defects import TORN
from leader.forensics.findings import LEAST_TORN, VISIBLE_NOISE, Findings, collect_findings
from leader.forensics.noise.estimate import NoiseEstimate
from leader.forensics.noise.light import LightNoise
from leader.messages import Note, Reader, Remedy, render
from leader.restoration.arguments import ImageLike, as_picture
from leader.restoration.tasks import TASKS

if TYPE_CHECKING:
    from leader.restoration.restored import Restoration

FORMAT = "diagnosis 1"
SMALL = 256
"""Longest side in pixels of a picture that is called small."""
SAMPLING = {(1, 1): "4:4:4", (1, 2): "4:2:2", (2, 2): "4:2:0", (2, 1): "4:4:0", (1, 4): "4:1:1"}
OUT = "restored.png"
CONTENT = {
    "torn areas": "areas of one colour that may be torn out",
    "scratches": "lines that may be scratches",
    "dead pixels": "dots that may be dead pixels",
    "salt and pepper": "dots that may be salt and pepper",
}
"""Names of defects that may belong to the scene."""
NOISES = {
    "white": "white noise",
    "coloured": "noise that is not white but blotchy or coloured,",
    "shot": "noise that grows with the light,",
    "light": "noise that is strongest in the shadows,",
    "grey": "noise that is the same in all colours,",
}


class NothingToRepairError(LeaderError):
    """No task was given, and nothing was found to repair: good news rather than a failure.

    found  what the picture shows, one sentence each
    """

    def __init__(self, message: str, found: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.found = tuple(found)


@dataclass(frozen=True)
class Advice:
    """A repair: the task and its options, as `leader.restore` takes them."""

    task: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def words(self) -> list[str]:
        """The options of the command line."""
        given = [word for name, value in self.options.items() for word in (f"--{name.replace('_', '-')}", f"{value}")]
        return ["--task", self.task, *given]

    def command(self, picture: str, out: str = OUT) -> str:
        """The command line that does it, quoted for a shell."""
        names = [f"./{name}" if name.startswith("-") else name for name in (picture, out)]
        return shlex.join(["leader", "restore", *names, *self.words()])

    def note(self) -> Note:
        """The note for a restoration without a task."""
        fact = "No task was given, so the repair that the diagnosis advises is made."
        return Note("advice", fact, Remedy("ask for the same", {"task": self.task, **self.options}))


@dataclass(frozen=True)
class Diagnosis:
    """What was found in a picture, and the repair that is advised, or None.

    file  the name that was given, or None if the picture was not a file

    >>> leader.diagnose(torch.rand(3, 64, 64)).size
    (64, 64)
    """

    findings: Findings
    advice: Advice | None
    file: str | None = None
    examination: Examination | None = field(default=None, repr=False, compare=False)

    @property
    def task(self) -> str | None:
        """The task of the repair that is advised, as `leader.restore` takes it; None: nothing to repair."""
        return None if self.advice is None else self.advice.task

    @property
    def options(self) -> dict[str, Any]:
        """The options of that task."""
        return {} if self.advice is None else dict(self.advice.options)

    @property
    def repairs(self) -> tuple[Advice, ...]:
        """The advised repair and those that follow it, in order."""
        return tuple(_list_repairs(self.findings, self.advice))

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.findings.size

    @property
    def noise_level(self) -> float | None:
        """Standard deviation of the noise, for [0, 1] pixels; None if it cannot be measured."""
        return None if self.findings.noise is None else self.findings.noise_level

    @property
    def kernel(self) -> str | None:
        """The blur that was found, as the option `kernel` takes it."""
        return None if self.findings.blur.blur is None else self.findings.blur.blur.kernel

    @property
    def jpeg_quality(self) -> int | None:
        """The quality with which it was saved as a JPEG; None if it was not."""
        return None if self.findings.history is None else self.findings.history.quality

    @property
    def defects(self) -> tuple[str, ...]:
        """Kinds of defects, as in ("scratches",)."""
        return self.findings.defects

    @property
    def missing(self) -> float:
        """Share of transparent pixels."""
        return self.findings.missing

    @property
    def command(self) -> str | None:
        """The command that would repair the picture, quoted for a shell."""
        return None if self.advice is None else self.advice.command(self.file or "photo.png")

    def sentences(self) -> list[str]:
        """What was found, one sentence each."""
        return _sentences(self.findings)

    def in_words(self, reader: Reader = "python") -> str:
        """What was found and what to do, a line each."""
        return "\n".join(render(sentence, reader) for sentence in (*self.sentences(), self.conclusion()))

    def conclusion(self) -> str:
        """What to do."""
        if self.advice is None:
            fact = "Nothing was found that clearly needs a repair."
            return Note("nothing", fact, Remedy("say what to do", {"task": None}))
        return f"To repair it: {self.command}"

    def advised(self) -> Advice:
        """The repair; raises NothingToRepairError if there is none."""
        if self.advice is None:
            name = "this picture" if self.file is None else printable(self.file)
            fact = f"Nothing was found to repair in {name}; choose a task, one of {', '.join(TASKS)}."
            raise NothingToRepairError(fact, self.sentences())
        return self.advice

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON values; docs/diagnose.md names the fields."""
        found = self.findings
        noise, history, blur = found.noise, found.history, found.blur.blur
        content = {
            "leader": FORMAT,
            "file": None if self.file is None else printable(self.file),
            "size": found.size,
            "bits": found.bits,
            "grey": found.grey,
            "jpeg": None
            if history is None or noise is None
            else {
                "quality": history.quality,
                "sampling": None if history.chroma is None else SAMPLING.get(history.sampling, "other"),
                "resaved": history.found,
                "error": noise.compression,
                "visible": found.blocky,
            },
            "noise": None
            if noise is None
            else {
                "level": found.noise_level,
                "white": noise.spectrum is None and noise.shot is None,
                "kind": _kind(noise),
                "visible": found.noisy,
            },
            "blur": None
            if blur is None
            else {
                "family": blur.shape.family,
                "width": blur.shape.width,
                "angle": blur.shape.angle if blur.shape.family == "line" else None,
                "width_error": blur.error * blur.shape.width,
                "confidence": blur.confidence,
                "kernel": blur.kernel,
            },
            "blur_seen": found.blur.seen,
            "enlarged": found.enlarged,
            "defects": {"kinds": found.defects, "share": found.defect_share},
            "missing": found.missing,
            "advice": None
            if self.advice is None
            else {"task": self.advice.task, "options": dict(self.advice.options), "command": self.command},
            "words": [*self.sentences(), self.conclusion()],
            "drawing": found.drawing,
            "dithered": found.dithered,
        }
        plain: dict[str, Any] = json.loads(json.dumps(content, default=lambda value: value.item()))  # NumPy's numbers
        return plain

    def __repr__(self) -> str:
        task = "nothing to repair" if self.advice is None else f"{self.advice.task} advised"
        return f"<Diagnosis {self.findings.size[0]} x {self.findings.size[1]} pixels: {task}>"


def diagnose(image: ImageLike | Examination) -> Diagnosis:
    """What is wrong with a picture: a path, Pillow image, array or tensor in [0, 1], or an examination.

    Only the middle of a large picture is examined.

    >>> leader.diagnose(torch.full((3, 64, 64), 0.5)).task is None
    True
    """
    examination = image if isinstance(image, Examination) else examine(as_picture(image))
    findings = collect_findings(examination)
    return Diagnosis(findings, advise(findings), str(image) if isinstance(image, (str, Path)) else None, examination)


UNASKED = {
    "deblur": ("There seemed to be a blur, but the result of removing it", "undo the blur"),
    "inpaint": ("There seemed to be defects, but the result of filling them in", "fill them in"),
}
"""Repairs that replace what the picture shows: what is told if the result is not kept, and what to ask for."""


def check_advised(restored: Restoration) -> None:
    """Raises NothingToRepairError if a blur was undone or defects were filled in without being asked for, and the result is not
    judged fine. That what fills a torn area is invented speaks against trusting it, not against showing it.
    """
    advice = None if restored.posed.diagnosis is None else restored.posed.diagnosis.advised()
    verdict = restored.verdict
    if advice is None or advice.task not in UNASKED or verdict is None:
        return
    if verdict.level == "failed" or any(reason.code != "invented" for reason in verdict.reasons):
        seemed, wish = UNASKED[advice.task]
        fact = f"{seemed} was judged {verdict.level}, so the picture is left as it is."
        raise NothingToRepairError(Note("left", fact, Remedy(wish, {"task": advice.task, **advice.options})))


def refuse_options(options: Mapping[str, Any]) -> None:
    """Rejects options of tasks (None: not given) if no task was given."""
    known = sorted({option.name for task in TASKS.values() for option in task.options if options.get(option.name) is not None})
    if known:
        raise UsageError(f"The option {known[0]} belongs to a task; give the task, or leave the option out.")


def advise(found: Findings) -> Advice | None:
    """The most urgent repair of those that are certain; None if there is none."""
    if found.defects and not perhaps_content(found):
        return Advice("inpaint", {"mask": "auto"})
    if found.noisy:
        return Advice("denoise")
    blur = found.blur.blur
    if blur is not None and not is_upright(blur.shape):  # scenes have lines of their own along rows and columns
        return Advice("deblur", {"kernel": blur.kernel, "kernel_doubt": round(blur.error, 3)})
    if found.blocky and "jpeg" in TASKS:
        return Advice("jpeg")
    return None


def _list_repairs(found: Findings, advice: Advice | None) -> Iterator[Advice]:
    """Defects are filled in first, and the rest is diagnosed without them. One more repair is the last: it removes noise, blur
    and blocks of compression together, as far as they are certain.
    """
    if advice is None:
        return
    yield advice
    if advice.task == "inpaint":
        filled = replace(found, defects=(), defect_share=0.0)
        yield from _list_repairs(filled, advise(filled))


def perhaps_content(found: Findings) -> bool:
    """Whether apparent defects may belong to the scene: single dots, which may be lamps, lines in a JPEG, small areas of one
    colour, anything in a drawing or a thumbnail.
    """
    dots = found.defects == ("dead pixels",)
    lone = "salt and pepper" not in found.defects
    small = found.defects[:1] == (TORN,) and found.defect_share < LEAST_TORN
    return bool(found.defects) and (found.drawing or found.tiny or dots or small or (lone and found.history is not None))


def _sentences(found: Findings) -> list[str]:
    width, height = found.size
    colour = "without colour" if found.grey else "in colour"
    said = [f"The picture has {width} x {height} pixels of {found.bits} bits, {colour}."]
    if found.missing:
        fact = f"{100 * found.missing:.3g} % of it is transparent and stays so."
        said.append(Note("transparent", fact, Remedy("fill that in", {"task": "inpaint"})))
    if found.drawing:
        said.append("It looks like a drawing, not a photograph; the networks here were trained on photographs.")
    if perhaps_content(found):
        words = " and ".join(CONTENT[kind] for kind in found.defects)
        said.append(Note("content", f"It has {words}.", Remedy("fill them in", {"task": "inpaint", "mask": "auto"})))
    elif found.defects:
        said.append(f"It shows {' and '.join(found.defects)}, {100 * found.defect_share:.2g} % of its pixels.")
    said += [*_compression(found), *_noise(found)]
    said.append(found.blur.seen)
    if found.enlarged is not None:
        size = f"{round(width / found.enlarged)} x {round(height / found.enlarged)}"
        fact = f"It can be reduced to {size} pixels without loss, and then be enlarged."
        said.append(Note("enlarged", fact, Remedy("do that", {"task": "sr"})))
    elif max(width, height) <= SMALL:
        said.append(Note("small", "It is small.", Remedy("enlarge it", {"task": "sr"})))
    if found.grey:
        said.append(Note("grey", "It has no colour.", Remedy("give it colours", {"task": "colourise"})))
    return said


def _compression(found: Findings) -> list[str]:
    history, noise = found.history, found.noise
    if history is None or noise is None:
        return []
    was = "It was a JPEG before it was saved in its present form" if history.found else "It is a JPEG"
    sampling = SAMPLING.get(history.sampling)
    chroma = "" if history.chroma is None or sampling is None else f", {sampling}"
    shows = "which shows" if found.blocky else "which hardly shows"
    return [
        f"{was}, of about quality {history.quality}{chroma}, {shows} (an error of {255 * noise.compression:.1f} grey levels)."
    ]


def _noise(found: Findings) -> list[str]:
    noise = found.noise
    if found.dithered:
        return []
    if noise is None:
        return ["Its noise cannot be measured: the picture is too small or too empty."]
    if found.seems_noisy and not found.noisy:
        fact = f"It is too small to tell whether its detail is noise of up to {found.noise_level:.2g}."
        return [Note("tiny", fact, Remedy("remove that", {"task": "denoise"}))]
    if not found.noisy and found.noise_level >= VISIBLE_NOISE:
        return ["Its noise is weak beside the error of its compression."]
    if not found.noisy:
        return [f"Its noise is weak (at most {found.noise_level:.3f} of the range)."]
    level = f"{found.noise_level:.3f} of the range, {255 * found.noise_level:.0f} grey levels"
    kind = "grey" if noise.spectrum is not None and noise.spectrum.without_colour else _kind(noise)
    return [f"It is noisy: {NOISES[kind]} of {level}."]


def _kind(noise: NoiseEstimate) -> str:
    if noise.spectrum is not None:
        return "coloured"
    if noise.shot is None:
        return "white"
    return "light" if isinstance(noise.shot, LightNoise) else "shot"
