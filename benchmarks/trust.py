"""How far the trust map can be trusted: coverage, calibration error, AUSE and rank of it and of what else could be shown.

    python benchmarks/trust.py --store DIR [--referee FILE] --part val|paths|files|many|... [--write]  judges kept runs
    python benchmarks/trust.py                                                                   prints the kept records

DIR holds the runs of benchmarks/trust_runs.py. Known pixels are left out. Intervals are of a bootstrap over photographs. The
records (benchmarks/records/trust.jsonl) hold one line a run, with the numbers of its maps, so that tables need no run.
"""

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import locate_records, read_records
from torch import Tensor
from torch.nn import functional as F

from leader.metrics.uncertainty import block_rank_correlation, calibration_error, interval_coverage, sparsification_curve
from leader.train.trust_runs import KeptRun, read_run
from leader.trust.calibration import GAUSSIAN, LEVELS, SHOWN, Calibration, beside, find_family
from leader.trust.error_map import keep_known_pixels
from leader.trust.evidence import CLOCKS, local_contrast
from leader.trust.referee import Referee

RECORDS = locate_records("trust")
WEIGHTS = Path(__file__).parents[1] / "src" / "leader" / "priors" / "weights" / "pyramid.referee"
STEPS = 20
"""Points of a sparsification curve."""
PARTS = ["val", "val-paths", "calib", "paths", "test", "between", "files", "many"]
DRAWS = 2000
Map = tuple[Tensor, dict[float, float]]


def maps_of(run: KeptRun, referee: Referee, table: Calibration | None) -> dict[str, Map]:
    """Every map that is compared: standard deviation [H, W] and the multiples of it that should cover the levels."""
    sigma = run.evidence.sigma.sqrt()
    std, level = referee.std(run.evidence), dict(GAUSSIAN)
    if table is not None:
        factors, _ = table.find_factors(find_family(str(run.case["task"]), run.evidence.known, run.metric), run.level)
        level = dict(zip(LEVELS, factors))
    return {
        "referee": (keep_known_pixels(std, run.evidence), level),
        "Sigma at t = 20": (sigma[0], dict(GAUSSIAN)),
        "Sigma at t = 120": (sigma[2], dict(GAUSSIAN)),
        **{f"left by y at t = {time}": (left.sqrt(), dict(GAUSSIAN)) for time, left in zip(CLOCKS, run.evidence.left)},
        "local contrast": (local_contrast(run.evidence.restored), dict(GAUSSIAN)),
    }


def scores(run: KeptRun, std: Tensor, level: dict[float, float]) -> dict[str, Any]:
    is_open = run.open
    error = run.error[:, is_open][None, :, None]
    spread = std[is_open].expand_as(error)
    curve = sparsification_curve(error, spread, STEPS)[0]
    best = sparsification_curve(error, error.abs(), STEPS)[0]
    hidden = torch.where(is_open, run.error, 0.0)[None], torch.where(is_open, std.expand_as(run.error), 0.0)[None]
    return {
        "coverage": {
            str(name): round(float(interval_coverage(error, spread, multiple)), 4) for name, multiple in level.items()
        },
        "calibration_error": float(calibration_error(error, spread, level)),
        "ause": float(((curve - best) / best[0]).mean()),
        "rank": float(block_rank_correlation(*hidden, block=8)),
    }


def judged(run: KeptRun, part: str, maps: dict[str, Map]) -> dict[str, Any]:
    family = find_family(str(run.case["task"]), run.evidence.known)
    about = {"part": part, "family": family, "noise": run.case["noise"], "method": run.case["method"] or "path"}
    numbers: dict[str, Any] = {}
    for name, (std, level) in maps.items():
        found = scores(run, std, level)
        if name != "referee":  # the others claim no intervals: only their order is compared
            del found["coverage"], found["calibration_error"]
        numbers[name] = {key: value if isinstance(value, dict) else round(value, 4) for key, value in found.items()}
    return {**about, "photograph": run.case["picture"], "crop": run.case["crop"], "maps": numbers}


def list_maps(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for every map of every run."""
    return [{**record, "map": name, **numbers} for record in records for name, numbers in record["maps"].items()]


def spread_of_many(files: Sequence[Path]) -> tuple[KeptRun, dict[str, Map]]:
    """The first of several runs of one problem, and the spread of all, raw and smoothed over 5 x 5 pixels."""
    runs = [read_run(file) for file in files]
    variance = torch.stack([run.evidence.restored for run in runs]).var(0).mean(0)
    smooth = F.avg_pool2d(variance[None, None], 5, 1, 2, count_include_pad=False)[0, 0]
    count = len(files)
    return runs[0], {
        f"spread of {count}": (variance.sqrt(), dict(GAUSSIAN)),
        f"spread of {count}, smoothed": (smooth.sqrt(), dict(GAUSSIAN)),
    }


def measure(store: Path, part: str, weights: Path) -> list[dict[str, Any]]:
    """The records of all kept runs of a part."""
    referee = Referee.load(weights)
    table = Calibration.load(beside(weights)) if beside(weights).is_file() else None
    found: list[dict[str, Any]] = []
    for file in sorted((store / part).glob("*.npz")) if part != "many" else ():
        run = read_run(file)
        if bool(run.open.any()):
            found.append(judged(run, part, maps_of(run, referee, table)))
    groups: dict[str, list[Path]] = {}
    for file in sorted((store / "many").glob("*.npz")) if part == "many" else ():
        groups.setdefault(file.stem.split("-")[0], []).append(file)
    for files in groups.values():
        if len(files) == max(map(len, groups.values())):
            run, spreads = spread_of_many(files)
            found.append(judged(run, part, {**maps_of(run, referee, table), **spreads}))
    return found


def bootstrap(rows: Sequence[dict[str, Any]], values: Sequence[float], seed: int = 0) -> tuple[float, float, float]:
    """Mean and its 95 % interval, photographs drawn with replacement."""
    rng = np.random.default_rng(seed)
    numbers = np.array(values, dtype=np.float64)
    owner = np.array([row["photograph"] for row in rows])
    names = np.unique(owner)
    sums = np.array([[numbers[owner == name].sum(), (owner == name).sum()] for name in names])
    drawn = sums[rng.integers(0, len(names), (DRAWS, len(names)))].sum(1)
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [0.025, 0.975])
    return float(numbers.mean()), float(low), float(high)


def _cell(rows: Sequence[dict[str, Any]], values: Sequence[float], digits: int = 3) -> str:
    mean, low, high = bootstrap(rows, values)
    return f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def tables(rows: Sequence[dict[str, Any]], part: str) -> str:
    """Coverage of the calibrated map, then AUSE and rank of every map, as Markdown."""
    own = [row for row in rows if row["part"] == part]
    if not own:
        return f"{part}: no records"
    families = sorted({row["family"] for row in own})
    lines = [f"### {part}: {len({(r['family'], r['photograph'], r['crop'], r['noise']) for r in own})} runs", ""]
    lines += ["| task | runs | 50 % | 80 % | 90 % | 95 % | single pictures, 90 % | calibration error |", "|---" * 8 + "|"]
    for family in (*families, "all"):
        chosen = [row for row in own if row["map"] == "referee" and family in (row["family"], "all")]
        covers = [[row["coverage"][str(level)] for row in chosen] for level in LEVELS]
        nine = covers[LEVELS.index(SHOWN)]
        inside = np.mean([0.75 <= value <= 0.98 for value in nine])
        cells = [f"{100 * np.mean(values):.1f}" for values in covers]
        cells[2] = "{:.1f} [{:.1f}, {:.1f}]".format(*(100 * v for v in bootstrap(chosen, nine)))
        below = sum(value < 0.6 for value in nine)
        picture = f"{100 * min(nine):.0f} to {100 * max(nine):.0f}; {100 * inside:.0f} % in 75 to 98; {below} below 60"
        off = _cell(chosen, [row["calibration_error"] for row in chosen])
        lines.append(f"| {family} | {len(chosen)} | {' | '.join(cells)} | {picture} | {off} |")
    names = list(dict.fromkeys(row["map"] for row in own))
    for key, title in (("ause", "AUSE, lower is better"), ("rank", "rank correlation of 8 x 8 blocks, higher is better")):
        lines += ["", f"| {title} | {' | '.join((*families, 'all'))} |", "|---" * (len(families) + 2) + "|"]
        for name in names:
            cells = []
            for family in (*families, "all"):
                chosen = [r for r in own if r["map"] == name and family in (r["family"], "all") and np.isfinite(r[key])]
                cells.append(_cell(chosen, [row[key] for row in chosen]))
            lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", *_paired(own, names)]
    return "\n".join(lines)


def _problem(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["family"], row["photograph"], row["crop"], row["noise"], row["method"]


def _paired(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> list[str]:
    """AUSE of the referee minus that of every other map, run by run."""
    own = {_problem(row): row["ause"] for row in rows if row["map"] == "referee"}
    lines = []
    for name in names[1:]:
        other = [row for row in rows if row["map"] == name and _problem(row) in own]
        lines.append(f"referee minus {name}: AUSE {_cell(other, [own[_problem(row)] - row['ause'] for row in other], 4)}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--referee", type=Path, default=WEIGHTS)
    parser.add_argument("--part", choices=PARTS, default="paths")
    parser.add_argument("--write", action="store_true", help="replace the kept records of these problems")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    before = read_records(RECORDS)
    rows = before if chosen.store is None else measure(chosen.store, chosen.part, chosen.referee)
    if chosen.write and chosen.store is not None:
        made = {_problem(row) for row in rows}
        rows = [row for row in before if row["part"] != chosen.part or _problem(row) not in made] + rows
        RECORDS.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    print(tables(list_maps(rows), chosen.part))


if __name__ == "__main__":
    main()
