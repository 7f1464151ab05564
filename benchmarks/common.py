"""What several benchmarks share: crops of photographs, pictures as files give them back, and records as JSON lines."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Record = dict[str, Any]


def locate_records(name: str) -> Path:
    """The committed records of a benchmark."""
    return Path(__file__).parent / "records" / f"{name}.jsonl"


def read_records(file: Path) -> list[Record]:
    """The records of a file in order, none if there is no file; a last line that was cut short is left out."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n")[:-1]] if file.exists() else []


def append_records(file: Path, *records: Record) -> None:
    """Adds records as soon as they exist, so that an interrupted benchmark continues."""
    with file.open("a", encoding="utf-8") as opened:
        opened.writelines(json.dumps(record, default=float) + "\n" for record in records)


def read_crop(path: Path, side: int, halved: bool = True) -> Image.Image:
    """The middle of a photograph, RGB; at half its size, which hides what its own compression did."""
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    if halved:
        image = image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return image.crop((left, top, left + side, top + side))


def to_image(values: NDArray[Any]) -> Image.Image:
    """Values [H, W, 3] of 0..255, rounded to 8 bits."""
    return Image.fromarray(values.round().clip(0, 255).astype(np.uint8))


def compress(image: Image.Image, quality: int, subsampling: int = -1) -> Image.Image:
    """The picture as Pillow's JPEG of a quality, with its tables; subsampling 0 is 4:4:4, Pillow's own choice 4:2:0."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality, subsampling=subsampling)
    return Image.open(buffer)
