"""Makes the gallery of the documentation: eight photographs, six kinds of damage, and what `leader.restore` makes of them.

    python -m tools.gallery             restores what has no record yet (about ten minutes on one core), then writes the page
    python -m tools.gallery --force     all of them anew
    python -m tools.gallery --page      the page alone, from the records

The photographs are every second one of those that come with the package: none was chosen for how it came out. Each is
damaged, saved as an ordinary file of 8 bits, and restored with nothing said but the task (and the mask of what is missing).
A strip shows the damaged picture, the restored one and the trust map. Strips and records lie in docs/gallery/.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

ROOT = Path(__file__).resolve().parent.parent
PHOTOGRAPHS = sorted((ROOT / "src/leader/samples/test").glob("*.png"))[::2]
NAMES = ("spices", "otter", "hills", "osprey", "circuit", "grapes", "skyline", "wave")
SIDE = 256
"""Pixels of a photograph, and of every picture of a strip."""
Record = dict[str, Any]


@dataclass(frozen=True)
class Damage:
    """One kind of damage: its heading, what was done in words, how it is done, and what `restore` is told.

    `make(photograph, folder, number)` writes the damaged file and returns its path; `mask` is written beside it as mask.png.
    """

    title: str
    words: str
    make: Callable[[Image.Image, Path, int], Path]
    task: str
    options: dict[str, Any]


def _save(image: Image.Image, folder: Path, name: str = "damaged.png", **options: Any) -> Path:
    image.save(folder / name, **options)
    return folder / name


def _shrink(image: Image.Image, folder: Path, number: int) -> Path:
    return _save(image.resize((SIDE // 4, SIDE // 4), Image.Resampling.BICUBIC), folder)


def _blur(image: Image.Image, folder: Path, number: int) -> Path:
    from leader import degrade

    out = folder / "damaged.png"
    degrade(image, "deblur", kernel="gaussian:1.8", sigma=0.005, seed=number).save(out)
    return out


def _add_noise(image: Image.Image, folder: Path, number: int) -> Path:
    noise = np.random.default_rng(number).normal(0, 25, (SIDE, SIDE, 3))
    return _save(Image.fromarray((np.asarray(image) + noise).round().clip(0, 255).astype(np.uint8)), folder)


def _tear(image: Image.Image, folder: Path, number: int) -> Path:
    """Strokes of ten pixels across the picture, and the mask that says where they are (black: missing)."""
    mask = Image.new("L", image.size, 255)
    pen = ImageDraw.Draw(mask)
    for a, b, c, d in np.random.default_rng(number).integers(0, SIDE, (5, 4)).tolist():
        pen.line((a, b, c, d), fill=0, width=10)
    _save(mask, folder, "mask.png")
    torn = image.copy()
    torn.paste((255, 255, 255), mask=Image.fromarray(255 - np.asarray(mask)))
    return _save(torn, folder)


def _compress(image: Image.Image, folder: Path, number: int) -> Path:
    return _save(image, folder, "damaged.jpg", quality=20)


def _drain_colour(image: Image.Image, folder: Path, number: int) -> Path:
    return _save(image.convert("L"), folder)


DAMAGES = {
    "small": Damage("Too small", "reduced to a quarter of its width and height", _shrink, "sr", {"factor": 4}),
    "blurred": Damage("Blurred", "Gaussian blur of 1.8 pixels; the kernel is looked for", _blur, "deblur", {"kernel": "auto"}),
    "noisy": Damage("Noisy", "noise of 25 grey levels; the level is estimated", _add_noise, "denoise", {}),
    "torn": Damage("Torn", "five white tears, with a mask of where they are", _tear, "inpaint", {"mask": "mask.png"}),
    "compressed": Damage("Compressed", "saved as JPEG at quality 20", _compress, "jpeg", {}),
    "grey": Damage("Without colour", "turned to grey; the colours are invented", _drain_colour, "colourise", {}),
}


def make_record(damage: str, number: int, out: Path) -> Record:
    """Damages and restores one photograph, writes its strip, and returns its record.

    PSNR in dB before and after, None where a comparison says nothing, as for invented colours; verdict; share within 10 levels.
    """
    import leader
    from leader.trust.maps import colours

    kind = DAMAGES[damage]
    photograph = Image.open(PHOTOGRAPHS[number]).convert("RGB")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = kind.make(photograph, folder, number)
        options = {**kind.options, **({"mask": folder / "mask.png"} if "mask" in kind.options else {})}
        restored = leader.restore(path, kind.task, **options)
        given = Image.open(path).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    spread, verdict = restored.uncertainty, restored.verdict
    if spread is None or verdict is None:
        raise RuntimeError("The default of a restoration has a map and a verdict; this one has not.")
    strip = Image.new("RGB", (3 * SIDE + 8, SIDE), "white")
    for place, picture in enumerate((given, restored.image.convert("RGB"), Image.fromarray(colours(spread)))):
        strip.paste(picture, (place * (SIDE + 4), 0))
    strip.save(out / f"{damage}-{NAMES[number]}.webp", quality=60, method=6)
    compared = kind.task != "colourise"
    return {
        "damage": damage,
        "photograph": NAMES[number],
        "before": measure_psnr(given, photograph) if compared else None,
        "after": measure_psnr(restored.image, photograph) if compared else None,
        "verdict": verdict.level,
        "reasons": [str(reason) for reason in verdict.reasons],
        "within": round(float(restored.summary()["known_to_within"]["10"]), 3),
        "seconds": round(restored.seconds, 1),
    }


def measure_psnr(image: Image.Image, truth: Image.Image) -> float:
    """PSNR in dB of two pictures of 8 bits."""
    a, b = (np.asarray(item.convert("RGB"), dtype=np.float64) for item in (image, truth))
    return round(float(20 * np.log10(255) - 10 * np.log10(np.square(a - b).mean())), 2)


def read_records(path: Path) -> dict[tuple[str, str], Record]:
    """The kept records by damage and photograph."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {(record["damage"], record["photograph"]): record for record in map(json.loads, lines)}


def write_page(records: dict[tuple[str, str], Record]) -> str:
    lines = [HEAD]
    for damage, kind in DAMAGES.items():
        lines.append(f"\n## {kind.title}\n\nDamage: {kind.words}. `leader` is given the task `{kind.task}`.\n")
        for name in NAMES:
            one = records[damage, name]
            gain = "" if one["after"] is None else f"{one['before']:.1f} to **{one['after']:.1f} dB**, "
            lines.append(f"![{kind.title}: {name}](gallery/{damage}-{name}.webp){{loading=lazy}}")
            lines.append(f"*{name.capitalize()}: {gain}{one['verdict']}, {100 * one['within']:.0f}% within 10 levels*\n")
    return "\n".join(lines)


HEAD = """# Gallery

<!-- made by `python -m tools.gallery`; change that file, not this page -->

Eight photographs, six kinds of damage. Each strip shows the damaged picture, what `leader restore` made of it at the
default quality, and the trust map: [dark blue is known to within one grey level of 255, red to no better than
40](reading.md). The photographs are every second one of the sixteen that come with the package (CC0); none was chosen
for its result. One command makes this page: `python -m tools.gallery`.

Below each strip: PSNR against the undamaged photograph before and after (not for colours, which are invented), the
verdict, and the share of pixels that the map says are within 10 grey levels of the truth."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--force", action="store_true", help="restore again what has a record")
    parser.add_argument("--page", action="store_true", help="write the page from the records and restore nothing")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    given = parser.parse_args(arguments)
    out = given.docs / "gallery"
    out.mkdir(parents=True, exist_ok=True)
    kept = out / "records.jsonl"
    if given.force:
        kept.unlink(missing_ok=True)
    for number, name in enumerate(NAMES if not given.page else ()):
        for damage in DAMAGES:
            if (damage, name) in read_records(kept):
                continue
            record = make_record(damage, number, out)
            with kept.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(record) + "\n")
            print(record)
    (given.docs / "gallery.md").write_text(write_page(read_records(kept)) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
