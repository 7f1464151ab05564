"""The runs on which the referee of the embedded prior was fitted, chosen, calibrated and reported.

    python benchmarks/trust_runs.py --photographs DIR --store DIR --part train|val|calib|paths|... --seconds S

DIR holds train/, val/, calib/ and test/. Each part is made from its own photographs, those that are named otherwise from
test/; a stopped command goes on. `paths` runs what quality standard stands for, `val-paths` the same on val/, `test` DDNM and
DiffPIR by name; `many` makes eight runs of each of some problems of `paths`, with other seeds, for the spread of eight;
`between` has noise levels and kernels between those of `calib`; `files` are picture files as `leader.restore` treats them;
`calib-cs` has sixteen crops of each photograph with compressed sensing, whose factor differs most between pictures.
`--task` leaves out all others.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from leader.pictures import list_pictures
from leader.priors.loading import load_prior
from leader.train import trust_runs as runs

PARTS = {"train": 3000, "val": 240, "val-paths": 300, "calib": 928, "paths": 192}
PARTS |= {"calib-cs": 256, "test": 384, "between": 96, "many": 96, "files": 192}
VAL_SIDE = 96
"""Of the crops of val, in pixels: larger than those of the fit, so that what is chosen does not hang on their size."""
REPETITIONS = 8
BETWEEN = {
    "deblur-gaussian": {"std": 1.75},
    "deblur-motion": {"seed": 1005, "intensity": 0.3},
    "cs": {"ratio": 0.35, "seed": 5},
}
"""Operators that no factor was fitted on; a kept share of 40 % for masks of dots."""


def cases(part: str, pictures: int) -> list[runs.RunCase]:
    if part == "train":
        return runs.training_cases(pictures, PARTS[part])
    if part == "val":
        return runs.training_cases(pictures, PARTS[part], seed=1, side=VAL_SIDE)
    if part == "calib":
        return runs.every_family(pictures)
    if part == "calib-cs":
        return runs.calibration_cases(pictures, crops=16, families=("cs",))
    if part == "files":
        return runs.file_cases(pictures)
    if part == "between":
        found = runs.calibration_cases(pictures, crops=1, nodes=(0.01, 0.035, 0.07), methods=runs.NAMED)
        return [replace(case, options=_between(case)) for case in found]
    if part in ("paths", "val-paths"):
        return runs.calibration_cases(pictures, crops=2, nodes=(0.0, 0.05))
    if part == "many":
        return runs.calibration_cases(pictures, crops=1, nodes=(0.0, 0.05))
    return runs.calibration_cases(pictures, nodes=(0.0, 0.05), methods=runs.NAMED)


def _between(case: runs.RunCase) -> dict[str, Any]:
    if "keep" in case.options:
        return {"keep": 0.4}
    return BETWEEN.get(case.task, case.options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photographs", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--part", choices=list(PARTS), required=True)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so many")
    parser.add_argument(
        "--turn", type=int, nargs=2, default=(0, 1), metavar=("K", "N"), help="only every Nth run, from the Kth"
    )
    parser.add_argument("--task", nargs="+", help="only these tasks")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    begin = time.monotonic()
    prior = load_prior("embedded")
    owner = chosen.part.removesuffix("-paths").removesuffix("-cs")
    folder = chosen.photographs / (owner if owner in ("train", "val", "calib") else "test")
    files = list_pictures(folder)
    made = 0
    for number, case in enumerate(cases(chosen.part, len(files))):
        if number % chosen.turn[1] != chosen.turn[0] or (chosen.task and case.task not in chosen.task):
            continue
        for name in range(REPETITIONS if chosen.part == "many" else 1):
            path = chosen.store / chosen.part / (f"{number:05d}.npz" if chosen.part != "many" else f"{number:05d}-{name}.npz")
            if path.exists():
                continue
            if time.monotonic() - begin > chosen.seconds:
                print(f"{chosen.part}: {made} made, more to do")
                return
            runs.write_run(path, runs.run_case(prior, case, runs.crop_of(files, case), name))
            made += 1
    print(f"{chosen.part}: {made} made, complete")


if __name__ == "__main__":
    main()
