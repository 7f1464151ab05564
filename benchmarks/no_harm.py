"""Does `leader.restore` without a task do harm? Undamaged and mildly damaged photographs, and what becomes of them.

    python benchmarks/no_harm.py PHOTOGRAPHS [--count 25] [--side 192] [--out rows.jsonl]

Central crops of halved photographs (which hides what their own compression did) as they are, behind JPEG 92 and 75, soft
(Gaussian, 0.6 pixels), enlarged twice, the same behind JPEG 85.
Prints, for each kind, how many are advised which task, the mean gain in dB where something was done, and the largest
loss; a picture that is left as it is gains and loses nothing. Rows that --out holds already are not made again.
"""

from __future__ import annotations

import argparse
import io
import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageFilter

import leader
from leader.pictures import from_pil
from leader.restoration.diagnose import NothingToRepairError


def compress(image: Image.Image, quality: int) -> Image.Image:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return Image.open(buffer)


def enlarge(image: Image.Image) -> Image.Image:
    half = image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)
    return half.resize(image.size, Image.Resampling.BICUBIC)


KINDS: dict[str, Callable[[Image.Image], Image.Image]] = {
    "as it is": lambda image: image,
    "JPEG 92": lambda image: compress(image, 92),
    "JPEG 75": lambda image: compress(image, 75),
    "soft": lambda image: image.filter(ImageFilter.GaussianBlur(0.6)),
    "enlarged": enlarge,
    "enlarged, JPEG 85": lambda image: compress(enlarge(image), 85),
}


def measure_psnr(image: Any, truth: Any) -> float:
    return -10 * math.log10(float(((np.clip(image, 0, 1) - truth) ** 2).mean()) + 1e-9)


def measure_picture(path: Path, kind: str, side: int) -> dict[str, Any]:
    with Image.open(path) as opened:
        whole = opened.convert("RGB")
    image = whole.resize((whole.width // 2, whole.height // 2), Image.Resampling.LANCZOS)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    truth = image.crop((left, top, left + side, top + side))
    given = KINDS[kind](truth)
    row: dict[str, Any] = {"photograph": path.name, "kind": kind, "task": None, "gain": 0.0}
    try:
        done = leader.restore(from_pil(given))
    except NothingToRepairError:
        return row
    reference = np.asarray(truth, np.float64) / 255
    before = measure_psnr(np.asarray(given.convert("RGB"), np.float64) / 255, reference)
    return {**row, "task": done.task, "gain": round(measure_psnr(done.picture.pixels, reference) - min(before, 60.0), 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("photographs", type=Path)
    parser.add_argument("--count", type=int, default=25)
    parser.add_argument("--side", type=int, default=192)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if args.out is not None and args.out.exists():
        rows = [json.loads(line) for line in args.out.read_text(encoding="utf-8").splitlines()]
    made = {(row["photograph"], row["kind"]) for row in rows}
    for path in sorted(args.photographs.iterdir())[: args.count]:
        for kind in KINDS:
            if (path.name, kind) in made:
                continue
            rows.append(measure_picture(path, kind, args.side))
            if args.out is not None:
                with args.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    for kind in KINDS:
        chosen = [row for row in rows if row["kind"] == kind]
        tasks = Counter(row["task"] or "left" for row in chosen)
        gains = [row["gain"] for row in chosen if row["task"] is not None] or [0.0]
        said = ", ".join(f"{name} {count}" for name, count in tasks.most_common())
        print(f"{kind}: {said}; mean gain {np.mean(gains):.2f} dB, worst {min(gains):.2f}")


if __name__ == "__main__":
    main()
