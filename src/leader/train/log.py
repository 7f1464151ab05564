"""The training log: one JSON record per line, and a plot of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from leader.errors import LeaderError

Record = dict[str, Any]


def read_log(path: Path) -> list[Record]:
    """All records of a log; steps repeated by a resumed run appear once, as they ran last."""
    if not path.exists():
        raise LeaderError(f"No training log was found at {path}: give the state folder of a run.")
    records: list[Record] = []
    for line in path.read_text().splitlines():
        record: Record = json.loads(line)
        if record["kind"] == "resume":
            records = [earlier for earlier in records if earlier["step"] <= record["step"]]
        records.append(record)
    return records


def smoothed(values: list[float], weight: float = 0.9) -> list[float]:
    """Exponential average, started at the first value."""
    out: list[float] = []
    for value in values:
        out.append(value if not out else weight * out[-1] + (1 - weight) * value)
    return out


def plot_log(state: Path, output: Path) -> None:
    """Draw a run's losses, validation PSNR against the start, and calibration to a picture file."""
    from matplotlib.figure import Figure

    records = read_log(state / "log.jsonl")
    training = [record for record in records if record["kind"] == "train"]
    checks = [record for record in records if record["kind"] == "validation"]
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    losses, psnr, ratio = figure.subplots(1, 3)
    for body in ("main", "expert"):
        points = [(r["step"], r[f"{body}_denoising"]) for r in training if f"{body}_denoising" in r]
        if points:
            losses.plot([p[0] for p in points], smoothed([p[1] for p in points]), marker=".", label=body)
    losses.set(title="denoising loss (smoothed)", xlabel="step")
    for index, sigma in enumerate(checks[0]["sigma"] if checks else []):
        steps = [check["step"] for check in checks]
        psnr.plot(steps, [c["psnr"][index] - checks[0]["psnr"][index] for c in checks], label=f"{sigma:g}")
        ratio.plot(steps, [c["ratio"][index] for c in checks], label=f"{sigma:g}")
    psnr.set(title="validation PSNR by noise (of 255), change in dB", xlabel="step")
    ratio.axhspan(0.8, 1.25, alpha=0.15)
    ratio.set(title="squared error / predicted variance", xlabel="step")
    for axis in (losses, psnr, ratio):
        if axis.lines:
            axis.legend(fontsize="x-small", ncols=2)
    figure.savefig(output, dpi=120)
