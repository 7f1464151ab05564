"""Photographs as people have them: degraded by Pillow and SciPy, kept in files, restored as the command line does it.

    python benchmarks/real.py --part val --count 2 --rows 'jpeg|noise'    runs what is not yet in the records
    python benchmarks/real.py --table                                     prints the table of the records alone

Crops of 192 x 192 pixels from the middle of photographs that were halved first, so that their own JPEG history vanishes. Noise
levels are never given. "nothing" is the degraded picture (enlarged by bicubic interpolation where it is small); "best simple"
the best, by mean PSNR in a row, of the tools of benchmarks/real_simple.py. A picture that is judged to have failed, or whose
restoration is refused, is not written: it counts as nothing. Records are JSON lines, one for a crop, row and quality, with the
version of the package that made it: `measured` is the noise that was read, `sigma` what was assumed.
"""

import hashlib
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from common import Record, append_records, locate_records, measure_psnr, read_crop, read_records, spread_out, to_image
from PIL import Image
from real_rows import FILES, MARGIN, SIDE, Pixels, Row, centre, rows, scratch_mask, write
from real_simple import Unit, nothing, simple

import leader
from leader.errors import LeaderError
from leader.forensics.examination import found_or_none
from leader.metrics.perceptual import lpips
from leader.pictures import list_pictures

RECORDS = locate_records("real")
ALONE = "compressed only"


def crop(path: Path) -> Pixels:
    """The middle of a photograph at half its size, with a margin for blurs, in 0..255."""
    return np.asarray(read_crop(path, SIDE + 2 * MARGIN), np.float64)


def perceptual(found: Unit, truth: Unit) -> float:
    pair = [torch.from_numpy(np.ascontiguousarray(x.transpose(2, 0, 1)))[None].float() for x in (found, truth)]
    return float(lpips(pair[0], pair[1])[0])


def width(kernel: Pixels) -> float:
    """Root mean square distance of a kernel's weight from its centre."""
    share = kernel / kernel.sum()
    grid = np.indices(kernel.shape).astype(float)
    middle = (grid * share).sum((1, 2))
    return float(np.sqrt((((grid - middle[:, None, None]) ** 2).sum(0) * share).sum()))


def measure(path: Path, row: Row, quality: str | None, keep: Path | None = None) -> Record:
    """One crop through one row; `keep` is a folder for the pictures."""
    seed = int.from_bytes(hashlib.sha256(f"{path.name} {row.harm}".encode()).digest()[:4], "big")
    pixels = crop(path)
    truth = np.asarray(to_image(centre(pixels))) / 255.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = write(row.spoil(pixels, np.random.default_rng(seed)), row.file, folder)
        with Image.open(file) as image:
            given = np.asarray(image.convert("RGB")) / 255.0
        idle = nothing(given, row)
        if keep is not None:
            _keep(keep, path, row, {"given": idle, "truth": truth})
        record: Record = {
            "nothing": [measure_psnr(idle, truth), perceptual(idle, truth)],
            "simple": {tool: measure_psnr(made, truth) for tool, made in simple(given, row).items()},
        }
        begin = time.perf_counter()
        try:
            restored = leader.restore(
                file, row.task, quality=quality, dtype="float32", threads=1, **_options(row, seed, folder)
            )
        except LeaderError as error:
            return {**record, "refused": str(error).replace(str(folder), ""), "seconds": time.perf_counter() - begin}
    found = restored.array.astype(np.float64).clip(0, 1)
    if found.shape[2] == 1:
        found = np.repeat(found, 3, axis=2)
    if keep is not None:
        _keep(keep, path, row, {"restored": found})
    assert restored.verdict is not None and restored.posed.examination is not None
    noise = found_or_none(restored.posed.examination.noise)
    return {
        **record,
        "restored": [measure_psnr(found, truth), perceptual(found, truth)] if found.shape == truth.shape else None,
        "verdict": restored.verdict.level,
        "sigma": restored.sigma,
        "measured": None if noise is None else noise.sigma,
        "level": None if row.level is None else row.level / 255,
        "widths": None if row.kernel is None else [width(row.kernel), width(np.asarray(restored.posed.options["kernel"]))],
        "seconds": time.perf_counter() - begin,
    }


def _keep(folder: Path, path: Path, row: Row, views: dict[str, Unit]) -> None:
    for label, view in views.items():
        to_image(255 * view).save(folder / f"{path.stem} {row.name} {label}.png")


def _options(row: Row, seed: int, folder: Path) -> dict[str, Any]:
    """Those of the row, with tables and masks in files."""
    options = dict(row.options)
    if isinstance(options.get("kernel"), np.ndarray):
        np.save(folder / "kernel.npy", options["kernel"])
        options["kernel"] = str(folder / "kernel.npy")
    if options.get("mask") == "given":
        scratch_mask(np.random.default_rng(seed)).save(folder / "mask.png")
        options["mask"] = str(folder / "mask.png")
    return options


def run(paths: Iterable[Path], chosen: list[Row], quality: str | None, records: Path, keep: Path | None, again: bool) -> None:
    """Makes the records that are not there, or all anew, and keeps each as soon as it is made."""
    done = set() if again else set(read(records))
    for path in paths:
        for row in chosen:
            key = {"crop": path.stem, "row": row.name, "quality": quality or "standard"}
            if tuple(key.values()) in done:
                continue
            record = {**key, "version": leader.__version__, **_rounded(measure(path, row, quality, keep))}
            append_records(records, record)
            typer.echo(_line(record), err=True)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def _line(record: Record) -> str:
    said = record.get("verdict") or f"refused: {record['refused']}"
    gain = (record.get("restored") or record["nothing"])[0] - record["nothing"][0]
    return f"{record['crop'][:24]:24s} {record['row']:46s} {gain:+6.2f} dB {record['seconds']:5.1f} s {said}"


def read(records: Path) -> dict[tuple[str, str, str], Record]:
    return {(item["crop"], item["row"], item["quality"]): item for item in read_records(records)}


def delivered(record: Record) -> list[float]:
    """PSNR and LPIPS of what the user has in the end: the degraded picture where nothing was written."""
    kept: list[float] = record["nothing"]
    if record.get("verdict") in ("fine", "doubtful") and record["restored"] is not None:
        kept = record["restored"]
    return kept


def unsaid(record: Record) -> bool:
    """Whether the picture is worse than nothing by more than 1 dB and the verdict calls it fine."""
    return record.get("verdict") == "fine" and (record["restored"] or [-np.inf])[0] < record["nothing"][0] - 1


def summary(found: list[Record]) -> Record:
    idle = np.array([item["nothing"] for item in found])
    ours = np.array([delivered(item) for item in found])
    tools = {name: float(np.mean([item["simple"][name] for item in found])) for name in found[0]["simple"]}
    best = max(tools, key=lambda name: tools[name])
    levels = [item["measured"] / item["level"] for item in found if item.get("level") and item.get("measured")]
    widths = [item["widths"][1] / item["widths"][0] for item in found if item.get("widths")]
    return {
        "count": len(found),
        "nothing": idle.mean(0),
        "ours": ours.mean(0),
        "gain": float((ours - idle)[:, 0].mean()),
        "least": float((ours - idle)[:, 0].min()),
        "tool": best,
        "simple": tools[best],
        "failed": sum(item.get("verdict") == "failed" for item in found),
        "doubtful": sum(item.get("verdict") == "doubtful" for item in found),
        "refused": sum("refused" in item for item in found),
        "unsaid": sum(map(unsaid, found)),
        "measured": levels,
        "width": widths,
        "seconds": float(np.mean([item["seconds"] for item in found])),
    }


def table(records: list[Record], chosen: list[Row]) -> Iterator[str]:
    """A line for every harm and a column for every file, as Markdown: gain in dB, LPIPS before and after; then the bars."""
    by_row: dict[str, list[Record]] = defaultdict(list)
    for item in records:
        by_row[item["row"]].append(item)
    found = {row.name: summary(by_row[row.name]) for row in chosen if row.name in by_row}
    lines: dict[str, dict[str, str]] = defaultdict(dict)
    for row in chosen:
        if row.name in found:
            it = found[row.name]
            harm = ", ".join(filter(None, (row.harm, row.said))) or f"{row.file} alone"
            lines[harm][row.file if row.harm else ALONE] = f"{it['gain']:+.2f}, {it['nothing'][1]:.3f} to {it['ours'][1]:.3f}"
    files = [*FILES, ALONE]
    yield f"| harm | {' | '.join(files)} |"
    yield "|---" * (1 + len(files)) + "|"
    for harm, cells in lines.items():
        yield f"| {harm} | {' | '.join(cells.get(file, '') for file in files)} |"
    yield ""
    yield from bars(found)


GAINS = {
    **{f"jpeg {quality}": 0.7 for quality in (10, 20, 40)},
    "jpeg 60": 0.4,
    **{f"{blur}, jpeg 75, kernel given": 1.5 for blur in ("gaussian 1.5", "gaussian 2.5", "motion 9", "motion 15")},
    "noise 20, jpeg 75": 3.0,
}
"""dB over doing nothing that rows must gain."""


def bars(found: dict[str, Record]) -> Iterator[str]:
    """What must hold, whether it does, and for how many rows and crops."""
    below = [name for name, it in found.items() if it["gain"] < -0.1 and it["ours"][1] > 0.85 * it["nothing"][1]]
    yield _bar(not below, f"rows below nothing by 0.1 dB without 15 % better LPIPS: {len(below)} of {len(found)} {below}")
    unsaid_ones = sum(it["unsaid"] for it in found.values())
    yield _bar(not unsaid_ones, f"pictures below nothing by more than 1 dB that the verdict calls fine: {unsaid_ones}")
    for name, goal in GAINS.items():
        if name in found:
            it = found[name]
            yield _bar(it["gain"] >= goal, f"{name}: {it['gain']:+.2f} dB (at least {goal:+.1f}), {it['count']} crops")
    better = [
        f"{name} ({it['tool']}, {it['simple'] - it['ours'][0]:+.2f} dB)"
        for name, it in found.items()
        if it["simple"] > it["ours"][0]
    ]
    words = f"rows at least as good as the best simple tool: {len(found) - len(better)} of {len(found)}"
    yield _bar(len(better) <= 0.2 * len(found), f"{words}; better are {', '.join(better) or 'none'}")
    for file, goal in (("png", 80), ("jpeg 75", 60), ("jpeg 92", 60)):
        auto = [it for name, it in found.items() if name.endswith(f"{file}, kernel auto")]
        widths = [ratio for it in auto for ratio in it["width"]]
        crops, refused = sum(it["count"] for it in auto), sum(it["refused"] for it in auto)
        if crops:
            near = sum(0.8 <= ratio <= 1.2 for ratio in widths)
            holds = near >= goal / 100 * crops and refused <= 0.2 * crops
            words = f"within 20 % of the width (at least {goal} %), {refused} refused (at most 20 %)"
            yield _bar(holds, f"kernel auto, {file}: {near} of {crops} crops {words}")
    ratios = [ratio for name, it in found.items() if re.match(r"noise \d+, jpeg (75|92)", name) for ratio in it["measured"]]
    if ratios:
        near = sum(abs(ratio - 1) <= 0.15 for ratio in ratios)
        yield _bar(near == len(ratios), f"noise behind JPEG 75 and 92 estimated within 15 %: {near} of {len(ratios)}")


def _bar(holds: bool, words: str) -> str:
    return f"- {'met' if holds else 'MISSED'}: {words}"


def main(
    part: Annotated[str, typer.Option(help="val or test.")] = "val",
    photographs: Annotated[Path, typer.Option(help="The folder that holds them.")] = Path("photos"),
    count: Annotated[int, typer.Option(help="How many crops.")] = 16,
    which: Annotated[str, typer.Option("--crops", help="Numbers of the crops that are run, first and last, as in 1-4.")] = "1-",
    pattern: Annotated[str, typer.Option("--rows", help="A regular expression for the names of rows.")] = "",
    quality: Annotated[str | None, typer.Option(help="draft, standard or best.")] = None,
    records: Annotated[Path, typer.Option(help="The file of records.")] = RECORDS,
    keep: Annotated[Path | None, typer.Option(help="A folder for the pictures.")] = None,
    only_table: Annotated[bool, typer.Option("--table", help="Run nothing: all that is recorded.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Run also what has a record, which the new one replaces.")] = False,
) -> None:
    chosen = [row for row in rows() if re.search(pattern, row.name)]
    names: set[str] | None = None
    if not only_table:
        paths = list_pictures(photographs / part)
        paths = spread_out(paths, count)
        names = {path.stem for path in paths}
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
        first, _, last = which.partition("-")
        run(paths[int(first) - 1 : int(last) if last else None], chosen, quality, records, keep, again)
    kept = {key: item for key, item in read(records).items() if key[2] == (quality or "standard")}
    wanted = [item for (crop, _, _), item in kept.items() if names is None or crop in names]
    for text in table(wanted, chosen):
        typer.echo(text)


if __name__ == "__main__":
    typer.run(main)
