"""Fits everything that belongs to your own checkpoint: the steps of `leader adapt`, which continues where it was stopped.

head      the variance of the network's errors, if it predicts none itself
tables    the spectrum of its errors, and its rounding in half precision
eta       how far SATP may jump
referee   how large the errors of its restorations are, from runs whose truth is known
factors   scale the referee's intervals to their nominal coverage, on pictures not used before

The fitted files are beside the checkpoint, where `load_prior` finds them. Finished steps and runs are kept in a folder beside
it until everything is done.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from PIL import Image

from leader.engines.base import Engine
from leader.errors import LeaderError
from leader.files import replacing
from leader.pictures import list_pictures
from leader.presets.stored import add_stored, stored_file
from leader.priors import mixed, spectrum, variance_head
from leader.priors.base import Prior
from leader.priors.loading import load_prior
from leader.progress import format_duration
from leader.train import pruning, tables, trust_fit, trust_runs, variance
from leader.train.data import central_crops
from leader.train.defaults import FEWEST_RUNS, SEED, TRUST_RUNS
from leader.trust import calibration, referee

SHARES = {"head": 0.25, "tables": 0.1, "eta": 0.15, "referee": 0.3, "factors": 0.2}
"""Steps in order, and the share of the time for each."""
FEWEST_PICTURES = 4
HELD_OUT = 4
"""One picture in this many is kept for the factors only."""
FEWEST_CROPS, CALLS_A_CROP = 3, 30
"""Crops for the tables, and the approximate network calls per crop."""
CALLS_A_RUN = 40
"""Approximate network calls of a run whose truth is known."""
CROPS = 4
"""Crops per held-out picture."""
MOST_CURVES = 4
"""Pictures for calibrating SATP's eta."""
FIT_SHARE = 0.25
"""Share of the referee's time for its fit; the rest is for runs."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Adaptation:
    """The settings of an adaptation.

    source   name or path of the prior, or `module:Class`
    home     its file or folder; everything is written beside it
    network  the bare prior, without a fitted head
    fitting  pictures for the fits; held_out: others, for the factors
    seconds  in total
    """

    source: str
    home: Path
    network: Prior
    fitting: Sequence[Path]
    held_out: Sequence[Path]
    seconds: float
    seed: int = SEED

    @property
    def side(self) -> int:
        """Of the crops, in pixels."""
        return trust_runs.SIDE if self.network.size is None else min(self.network.size)

    @property
    def store(self) -> Path:
        """The folder for unfinished work."""
        return self.home.with_name(f"{self.home.stem}.adapting")

    def predict_seconds(self) -> dict[str, float]:
        """The expected time of each step, from one call of the network: its share of the time, or its minimum."""
        x, t = torch.zeros(1, self.network.channels or 3, self.side, self.side), torch.tensor([len(self.network.schedule) // 2])
        times = []
        for _ in range(2):  # the first call allocates
            begin = time.monotonic()
            with torch.no_grad():
                self.network.predict(x, t)
            times.append(time.monotonic() - begin)
        call = min(times)
        runs = FEWEST_RUNS * CALLS_A_RUN * call
        crops = FEWEST_CROPS * CALLS_A_CROP * call
        least = {"tables": crops, "eta": pruning.TASKS * pruning.STEPS * call, "referee": runs, "factors": runs}
        return {step: max(share * self.seconds, least.get(step, 0.0)) for step, share in SHARES.items()}


def plan_adaptation(source: str, data: Path, seconds: float, seed: int = SEED, say: Say | None = None) -> Adaptation:
    """Plans the adaptation of a checkpoint to a folder of pictures; rejects unsuitable ones."""
    network = load_prior(source, whole=True, head=False)
    if network.home is None:
        raise LeaderError(f"'{source}' is not a file, folder or class: there is no place for the fitted files.")
    if network.channels not in (3, None):
        raise LeaderError(f"'{source}' is for pictures with {network.channels} channels; a colour prior is needed.")
    plan = Adaptation(source, network.home, network, (), (), seconds, seed)
    files = list_pictures(data)
    large = [file for file in files if _shortest_side(file) >= plan.side]
    if len(large) < FEWEST_PICTURES:
        raise LeaderError(
            f"{len(large)} of {len(files)} pictures in {data} have {plan.side} pixels on both sides: give at least "
            f"{FEWEST_PICTURES}."
        )
    if say is not None and len(large) < len(files):
        say(f"{len(files) - len(large)} of {len(files)} pictures are smaller than {plan.side} pixels and are left out.")
    held_out = large[HELD_OUT - 1 :: HELD_OUT]
    return replace(plan, fitting=[file for file in large if file not in held_out], held_out=held_out)


def list_companions(prior: Prior) -> dict[str, bool]:
    """The parts fitted to a prior, by name, and whether each exists."""
    home = prior.home
    if home is None:
        return {"variance": prior.source is not None, "spectrum": prior.spectrum is not None}
    judge = referee.beside(home)
    files = {"spectrum": spectrum.spectrum_file(home), "precision": mixed.rounding_file(home), "SATP's eta": stored_file(home)}
    files |= {"referee": judge, "factors": calibration.beside(judge)}
    return {"variance": prior.source is not None, **{name: file.is_file() for name, file in files.items()}}


def _shortest_side(file: Path) -> int:
    with suppress(OSError, ValueError, Image.DecompressionBombError), Image.open(file) as picture:
        return min(picture.size)
    return 0


def adapt(plan: Adaptation, workers: Callable[[], Engine | None], say: Say, again: bool) -> dict[str, float]:
    """Fits the missing parts; returns the seconds of each step. `again` discards earlier work."""
    state = _State.open(plan, again, say)
    parts = {step: seconds for step, seconds in plan.predict_seconds().items() if step not in state.done}
    listed = ", ".join(f"{step} {format_duration(seconds)}" for step, seconds in parts.items())
    say(f"This will take about {format_duration(sum(parts.values()))}: {listed}. If stopped, the same command continues.")
    steps: dict[str, Callable[[float], str]] = {
        "head": lambda seconds: _fit_head(plan, seconds, say),
        "tables": lambda seconds: _fit_tables(plan, seconds),
        "eta": lambda seconds: _fit_eta(plan, seconds, say),
        "referee": lambda seconds: _fit_referee(plan, seconds, workers(), say),
        "factors": lambda seconds: _fit_factors(plan, seconds, workers(), say),
    }
    for number, (name, step) in enumerate(steps.items(), 1):
        if name in state.done:
            say(f"{number} of {len(steps)}, {name}: done before.")
            continue
        begin = time.monotonic()
        told = step(SHARES[name] * plan.seconds)
        state.finish(name, time.monotonic() - begin)
        say(f"{number} of {len(steps)}, {name}: {told} ({format_duration(state.done[name])}).")
    shutil.rmtree(plan.store)
    return state.done


@dataclass
class _State:
    """The finished steps, kept in a file that is valid only for the same pictures and seed."""

    file: Path
    belongs: list[str]
    done: dict[str, float]

    @classmethod
    def open(cls, plan: Adaptation, again: bool, say: Say) -> _State:
        files = [*plan.fitting, *plan.held_out]
        belongs = [f"seed {plan.seed}", *(f"{file.name}:{file.stat().st_size}:{file.stat().st_mtime_ns}" for file in files)]
        file, done = plan.store / "steps.json", {}
        try:
            content = {} if again else json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # none yet, or damaged: start over
            content = {}
        if isinstance(content, dict) and content.get("belongs") == belongs:
            done = dict(content["done"])
        elif plan.store.exists():
            say("Earlier work with other pictures or another seed is discarded." if content else "Everything is fitted again.")
            shutil.rmtree(plan.store)
        plan.store.mkdir(parents=True, exist_ok=True)
        return cls(file, belongs, done)

    def finish(self, step: str, seconds: float) -> None:
        self.done[step] = seconds
        with replacing(self.file) as temporary:
            temporary.write_text(json.dumps({"belongs": self.belongs, "done": self.done}), encoding="utf-8")


def _fit_head(plan: Adaptation, seconds: float, say: Say) -> str:
    if plan.network.source is not None:
        return f"the network has a variance of its own ({plan.network.source})"
    settings = variance.FitSettings(seconds=seconds, steps=10**9, seed=plan.seed)
    _, report = variance.fit_variance(plan.network, plan.fitting, variance_head.head_file(plan.home), settings, say)
    return f"squared error over predicted variance on pictures not fitted to: {report.ratio:.2f}"


def _fit_tables(plan: Adaptation, seconds: float) -> str:
    file = variance_head.head_file(plan.home)
    head = variance_head.VarianceHead.load(file) if plan.network.source is None else None
    count = tables.fit_tables(plan.network, head, plan.fitting, plan.home, seconds, FEWEST_CROPS)
    return f"spectrum and rounding of {count} crops"


def _fit_eta(plan: Adaptation, seconds: float, say: Say) -> str:
    prior = load_prior(plan.source)
    crops = central_crops(plan.fitting, plan.side)
    each = pruning.predict_seconds(prior, crops[:1])
    count = max(1, min(len(crops), MOST_CURVES, int(seconds / each)))
    found = pruning.calibrate_eta(pruning.curves(prior, crops[:count], say=say))
    add_stored(plan.home, [pruning.eta_entry(found)])
    missed = f", though the budgets {', '.join(f'{budget:g}' for budget in found.missed)} are missed" if found.missed else ""
    return f"{found.eta:g} from {count} pictures{missed}"


def _fit_referee(plan: Adaptation, seconds: float, workers: Engine | None, say: Say) -> str:
    prior = load_prior(plan.source)
    cases = trust_runs.training_cases(len(plan.fitting), TRUST_RUNS, plan.seed, plan.side)
    runs = trust_runs.make_runs(prior, plan.fitting, cases, plan.store / "fitting", say, workers, plan.source)
    files = trust_runs.make_timed_runs(runs, workers, (1 - FIT_SHARE) * seconds)
    settings = trust_fit.FitSettings(seconds=FIT_SHARE * seconds, seed=plan.seed)
    trust_fit.fit_referee(trust_fit.read_lessons(files), settings, say).save(referee.beside(plan.home))
    return f"from {len(files)} runs"


def _fit_factors(plan: Adaptation, seconds: float, workers: Engine | None, say: Say) -> str:
    prior, judge = load_prior(plan.source), referee.Referee.load(referee.beside(plan.home))
    cases = trust_runs.every_family(len(plan.held_out), CROPS, plan.side)
    runs = trust_runs.make_runs(prior, plan.held_out, cases, plan.store / "held-out", say, workers, plan.source)
    files = trust_runs.make_timed_runs(runs, workers, seconds)
    table = trust_fit.fit_calibration(judge, (trust_runs.read_run(file) for file in files))
    table.save(calibration.beside(referee.beside(plan.home)))
    return f"of {len(table.families)} families of tasks from {len(files)} runs"
