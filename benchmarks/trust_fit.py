"""Fits the referee of the embedded prior to kept runs, shows it on others, and measures its factors.

    python benchmarks/trust_fit.py --store DIR fit FILE [--seconds S] [--steps N]  on the runs of train, scored on val
    python benchmarks/trust_fit.py --store DIR score FILE                           scored on val again
    python benchmarks/trust_fit.py --store DIR calibrate FILE                       factors from calib, calib-cs, beside FILE;
                                                                                    families without runs keep theirs
                                                                                    (--new: also levels that have some;
                                                                                    --family: all but those)
    python benchmarks/trust_fit.py --store DIR time PICTURE                         the map's share of a run's time, one thread

DIR holds the runs of benchmarks/trust_runs.py. On val, half of the photographs give the factors by family of tasks and the
other half is judged, then the other way round: what is chosen there never meets calib or test.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from leader.metrics.uncertainty import sparsification_error
from leader.priors.loading import load_prior
from leader.priors.tensor_files import read_safetensors
from leader.problem import Problem
from leader.result import Step
from leader.train.trust_fit import FitSettings, fit_calibration, fit_referee, ratios, read_lessons
from leader.train.trust_runs import KeptRun, RunCase, crop_of, read_run
from leader.trust.calibration import LEVELS, SHOWN, Calibration, Node, beside, calibration_of, quantiles
from leader.trust.error_map import error_map
from leader.trust.evidence import Watch, gather
from leader.trust.referee import Referee

REPEATS = 5
"""Of runs whose time is taken; the median counts."""


def read(store: Path, part: str) -> list[KeptRun]:
    """The kept runs of a part whose errors are a question."""
    runs = [read_run(file) for file in sorted((store / part).glob("*.npz"))]
    return [run for run in runs if bool(run.open.any())]


def read_start(file: Path) -> Referee:
    """A referee that is fitted further; maps that came after its time have no weight yet."""
    referee = Referee()
    weights = {name: torch.zeros_like(value) for name, value in referee.state_dict().items()}
    for name, value in read_safetensors(file)[0].items():
        weights[name][tuple(slice(size) for size in value.shape)] = value.float()
    referee.load_state_dict(weights)
    return referee


def score(referee: Referee, runs: list[KeptRun]) -> str:
    """Coverage over all and of single pictures with factors of the other half of the photographs, and AUSE."""
    found = list(zip(runs, ratios(referee, runs)))
    covered = []
    for half in (0, 1):
        for family in sorted({name for _, (name, _, _) in found}):
            own = [(run.case["picture"] % 2 == half, values) for run, (name, _, values) in found if name == family]
            others = [values for mine, values in own if not mine]
            if others:
                factors = quantiles(others)
                covered += [[float((values <= f).double().mean()) for f in factors] for mine, values in own if mine]
    shares = np.array(covered)
    nine = shares[:, LEVELS.index(SHOWN)]
    ause = []
    for run in runs:
        error = run.error[:, run.open][None, :, None]
        ause.append(float(sparsification_error(error, referee.std(run.evidence)[run.open].expand_as(error))))
    means = ", ".join(f"{100 * level:.0f} %: {100 * mean:.1f}" for level, mean in zip(LEVELS, shares.mean(0)))
    inside = 100 * float(((nine >= 0.75) & (nine <= 0.98)).mean())
    singles = f"{inside:.0f} % of single pictures in 75 to 98, least {100 * nine.min():.0f}, deviation {100 * nine.std():.1f}"
    return f"{len(runs)} runs: {means}; {singles}; AUSE {np.mean(ause):.4f}"


def join_nodes(kept: Sequence[Node], fitted: Sequence[Node]) -> tuple[Node, ...]:
    """The factors of a family, with those that were fitted at levels at which it had none."""
    had = {node.noise for node in kept}
    return tuple(sorted((*kept, *(node for node in fitted if node.noise not in had)), key=lambda node: node.noise))


def timing(picture: Path) -> str:
    """Processor time of the map, of watching the run too, over that of the run: DDNM, quality standard, Gaussian deblurring."""
    prior = load_prior("embedded")
    lines = []
    for side in (64, 128):
        case = RunCase("deblur-gaussian", 0.05, 0, 0, method="ddnm", side=side)
        problem = Problem.simulate(crop_of([picture], case)[None], case.operator(), case.noise)
        sampler = case.sampler(prior, problem)
        found = []
        for _ in range(REPEATS + 1):
            watch, watched = Watch(prior.schedule), 0.0

            def see(step: Step, watch: Watch = watch) -> None:
                nonlocal watched
                start = time.process_time()
                watch(step)
                watched += time.process_time() - start

            begin = time.process_time()
            result = sampler.run(problem, on_step=see)
            between = time.process_time()
            evidence = gather(prior, problem, result.images, watch)
            assert evidence is not None
            error_map(prior, problem, evidence)
            spent = time.process_time() - between + watched
            found.append((spent, between - begin - watched))
        spent, run = np.median(found[1:], axis=0)  # the first is for the caches
        lines.append(f"{side} px: {1000 * spent:.0f} ms, {100 * spent / run:.1f} % of the run")
    return "; ".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("what", choices=["fit", "score", "calibrate", "time"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=FitSettings.seconds, help="for the fit")
    parser.add_argument("--steps", type=int, default=FitSettings.steps, help="of the fit, at most")
    parser.add_argument("--start", type=Path, help="a referee that is fitted further, also one of fewer maps")
    parser.add_argument("--rate", type=float, default=FitSettings.rate, help="of learning, of the fit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--new", action="store_true", help="calibrate only where a family has no factors at a noise level")
    parser.add_argument("--family", nargs="+", help="calibrate only these; they lean on the runs of all")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if chosen.what == "fit":
        lessons = read_lessons(sorted((chosen.store / "train").glob("*.npz")))
        settings = FitSettings(chosen.steps, rate=chosen.rate, seconds=chosen.seconds, seed=chosen.seed)
        start = None if chosen.start is None else read_start(chosen.start)
        fit_referee([one for one in lessons if bool(one.open.any())], settings, print, start).save(chosen.file)
        print(f"fitted to {len(lessons)} runs")
    if chosen.what == "time":
        print(timing(chosen.file))
    elif chosen.what == "calibrate":
        runs = read(chosen.store, "calib") + read(chosen.store, "calib-cs")
        fitted, table = fit_calibration(Referee.load(chosen.file), runs), calibration_of(chosen.file)
        kept = {} if table is None else table.families
        made = {
            name: join_nodes(kept.get(name, ()), nodes) if chosen.new else nodes
            for name, nodes in fitted.families.items()
            if not chosen.family or name in chosen.family
        }
        Calibration({**kept, **made}).save(beside(chosen.file))
    else:
        print(score(Referee.load(chosen.file), read(chosen.store, "val")))


if __name__ == "__main__":
    main()
