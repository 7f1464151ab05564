"""Starts and settings for the short paths: what `standard` could be at no more than 14 passes (35 % of the papers' 40).

    python benchmarks/tuning.py run starts --images photos/val          # every start for the hosts that the screening left
    python benchmarks/tuning.py run settings --images photos/val        # trials of settings for the best of them
    python benchmarks/tuning.py run lengths --images photos/val --photographs 8     # what those two left open
    python benchmarks/tuning.py run relaxed --images photos/val --photographs 8     # over-relaxed ProjDiff, late ends, averages
    python benchmarks/tuning.py run noisy --images photos/val --photographs 8       # noisy super-resolution: eta, late ends
    python benchmarks/tuning.py run early --images photos/val --photographs 8       # over-relaxed ProjDiff with noise
    python benchmarks/tuning.py run others --images photos/val --photographs 8      # what that chose, elsewhere
    python benchmarks/tuning.py run metric --images photos/val --photographs 8      # the data step in the metric of Sigma
    python benchmarks/tuning.py run hosts --images photos/val --photographs 2       # the same on the papers' own paths
    python benchmarks/tuning.py run beyond --images photos/val --photographs 8      # over-relaxed ProjDiff with the metric
    python benchmarks/tuning.py run further --images photos/val         # the metric's open ends; then `settled`
    python benchmarks/tuning.py run rows --images photos/val            # the papers' own paths again
    python benchmarks/tuning.py compare settled cs                      # a round's trials beside its first
    python benchmarks/tuning.py table                                   # best first, by task; resumes from its records

Crops, noise and scores are those of benchmarks/paths.py; records in benchmarks/records/tuning.jsonl.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import torch
import typer
from paths import OTHERS, PAPER, TASKS, measure

from leader.bench.images import list_images

RECORDS = Path(__file__).parent / "records" / "tuning.jsonl"
WEIGHT = 20
"""Decibels that an LPIPS of 1 is worth, where candidates are put in one order: the papers' tables trade at about that."""

HOSTS = {
    "sr-clean": ("ddnm", "projdiff", "ddpg", "diffpir"),
    "sr": ("projdiff", "ddrm", "ddnm"),
    "gauss": ("projdiff", "ddnm", "ddrm"),
    "motion": ("ddnm", "ddrm"),
    "cs": ("idpg", "ddnm"),
    "inpaint": ("idpg", "projdiff", "ddnm"),
}


@dataclass(frozen=True)
class Trial:
    """A run that could be `standard`."""

    task: str
    method: str
    plugins: tuple[str, ...]
    steps: int
    grid: str | None
    settings: dict[str, Any] = field(default_factory=dict)
    times: tuple[int, ...] = ()
    """The very times, where no named grid has them."""
    runs: int = 1
    """How many runs are averaged."""

    @property
    def said(self) -> dict[str, Any]:
        """Its fields, without what is as usual."""
        return {name: value for name, value in asdict(self).items() if (name, value) not in (("times", ()), ("runs", 1))}

    @property
    def key(self) -> str:
        return json.dumps(self.said, sort_keys=True)


PATHS: tuple[tuple[tuple[str, ...], int, dict[str, Any]], ...] = (
    ((), 21, {}),
    (("start",), 44, {"start": {"time": 100}}),
    (("start",), 31, {"start": {"time": 200}}),
    (("start",), 26, {"start": {"time": 300}}),
    (("start",), 21, {"start": {"time": 500}}),
    (("start",), 14, {"start": {"spread": True}}),
    (("start",), 14, {"start": {"spread": True, "share": 0.02}}),
)
"""(plug-ins, steps of a quadratic grid, settings): from the top, constant starts, informed starts; 14 passes or less."""


def starts() -> Iterator[Trial]:
    """Every start with the presets of every host that is left."""
    for task, hosts in HOSTS.items():
        yield Trial(task, PAPER[0], PAPER[1], PAPER[2], PAPER[3])
        for host in hosts:
            for plugins, steps, settings in PATHS:
                yield Trial(task, host, plugins, steps, "quadratic", settings)


def settings() -> Iterator[Trial]:
    """Settings, other grids and informed pacing for the hosts that lead after `starts`, held to 14 passes."""
    for task, steps, time in (("gauss", 22, 300), ("motion", 22, 300), ("cs", 26, 200), ("inpaint", 26, 200)):
        for host in HOSTS[task]:
            yield Trial(task, host, ("start",), steps, "quadratic", {"start": {"time": time}})
    for task, hosts in HOSTS.items():
        yield Trial(task, hosts[0], (), 32, "uniform")  # steps at high noise are cheap: 32 uniform ones cost 14 passes
        yield Trial(task, hosts[0], ("pace",), 20, "quadratic")
    for eta in (0.9, 0.95, 1.0):
        yield Trial("sr-clean", "ddnm", (), 21, "quadratic", {"eta": eta})
    for eta in (0.95, 1.0):
        yield Trial("sr-clean", "ddnm", (), 32, "uniform", {"eta": eta})
    for step in (0.9, 1.0):
        yield Trial("sr-clean", "projdiff", (), 21, "quadratic", {"step": step})
    for eta in (0.6, 0.9):
        yield Trial("motion", "ddnm", ("start",), 22, "quadratic", {"eta": eta, "start": {"time": 300}})
        yield Trial("cs", "ddnm", ("start",), 26, "quadratic", {"eta": eta, "start": {"time": 200}})
    for task in ("gauss", "motion"):
        for trust in (2.0, 16.0):
            yield Trial(task, "ddnm", ("wiener",), 21, "quadratic", {"wiener": {"trust": trust}})


def lengths() -> Iterator[Trial]:
    """What the first two rounds left open, for the tasks whose choice was not settled; eight photographs."""
    for task in ("sr-clean", "motion", "cs"):
        yield Trial(task, PAPER[0], PAPER[1], PAPER[2], PAPER[3])
    for eta in (0.985, 1.0):
        yield Trial("sr-clean", "ddnm", (), 22, "quadratic", {"eta": eta})
    yield Trial("sr-clean", "projdiff", (), 21, "quadratic")
    yield Trial("sr-clean", "pirp", (), 22, "quadratic")
    for eta in (0.65, 0.7):
        yield Trial("motion", "ddnm", (), 22, "quadratic", {"eta": eta})
    yield Trial("motion", "ddnm", (), 22, "quadratic")
    yield Trial("motion", "ddnm", ("pace",), 24, "quadratic")
    for host, steps, time in (("idpg", 39, 100), ("ddnm", 39, 100), ("idpg", 32, 150), ("ddnm", 32, 150)):
        yield Trial("cs", host, ("start",), steps, "quadratic", {"start": {"time": time}})


HIGH = (999, 902, 809, 722, 639, 562, 490, 422, 360, 302)
"""The quadratic grid of 21 steps above time 290, where a call costs a third of a pass or less."""
FULL_END = (*HIGH, 250, 202, 160, 122, 90, 62, 40, 22, 10, 2, 0, -1)
LATE_END = (*HIGH, 250, 205, 170, 140, 113, 90, 70, 52, 36, 22, 10, -1)
"""As many calls as 21 quadratic steps, without its last two (times 2 and 0): closer together where edges form."""
FEWER_HIGH = (999, 700, 480, 340, 268, 228, 194, 165, 140, 118, 98, 82, 64, 46, 28, 11, -1)
"""Fewer cheap steps above time 290, as many as fit below."""
HALF = (999, 600, 420, 310, 240, 180, 130, 82, 45, 16, -1)
"""About seven passes: two such runs cost as much as one of the others."""


def relaxed() -> Iterator[Trial]:
    """ProjDiff that goes beyond its estimate, grids that end early, averages of two shorter runs."""
    for task in ("sr-clean", "gauss", "inpaint"):
        yield Trial(task, PAPER[0], PAPER[1], PAPER[2], PAPER[3])
    yield Trial("sr-clean", "ddnm", (), 21, None, {}, LATE_END)
    for step in (1.2, 1.4):
        yield Trial("sr-clean", "projdiff", (), 21, None, {"step": step}, FULL_END)
    for step in (1.3, 1.4, 1.6):
        yield Trial("sr-clean", "projdiff", (), 21, None, {"step": step}, LATE_END)
    yield Trial("sr-clean", "projdiff", (), 16, None, {"step": 1.3}, FEWER_HIGH)
    for runs in (1, 2):
        yield Trial("sr-clean", "projdiff", (), 10, None, {"step": 1.5}, HALF, runs)
    yield Trial("sr-clean", "ddnm", ("leader",), 10, "quadratic", {"eta": 0.985})
    yield Trial("inpaint", "projdiff", (), 21, None, {"step": 1.4}, FULL_END)
    yield Trial("gauss", "projdiff", (), 10, None, {}, HALF, 2)


NOISY_END = (*HIGH, 252, 212, 178, 149, 124, 102, 83, 66, 51, 37, 24, -1)
"""As many calls again, none below time 24: noise of 0.05 stands at time 26, and below it y says nothing new."""

DENSE_END = (*HIGH, 240, 182, 136, 100, 72, 50, 33, 20, 10, 3, 0, -1)
"""The other way: closer together at the very end."""


def noisy() -> Iterator[Trial]:
    """Noisy super-resolution: eta and where the last calls stand, for a lower LPIPS at the same work."""
    yield Trial("sr", PAPER[0], PAPER[1], PAPER[2], PAPER[3])
    yield Trial("sr", "ddnm", ("leader",), 23, "quadratic")
    for added in ((), ("ucpm",)):
        yield Trial("sr", "ddnm", added, 21, None, {}, LATE_END)
    yield Trial("sr", "ddnm", (), 21, None, {}, NOISY_END)
    for eta in (0.5, 0.58):
        yield Trial("sr", "ddnm", (), 21, None, {"eta": eta}, LATE_END)
    yield Trial("sr", "ddnm", ("ucpm",), 21, "quadratic")
    yield Trial("sr", "ddnm", (), 21, "quadratic", {"eta": 0.58})
    for eta in (0.62, 0.635):
        yield Trial("sr", "ddnm", ("ucpm",), 21, "quadratic", {"eta": eta})
    yield Trial("sr", "ddnm", ("ucpm",), 20, "quadratic", {"eta": 0.635})
    for eta in (0.62, 0.646):
        yield Trial("sr", "ddnm", ("ucpm",), 21, None, {"eta": eta}, DENSE_END)


SHARP = (990, 300, 252, 208, 169, 133, 102, 75, 52, 33, 19, 8, 2, 0, -1)
"""Gaussian deblurring's: one call at the top, the others below time 300."""


def early() -> Iterator[Trial]:
    """ProjDiff that goes beyond its estimate with noise too, where y is not noisier than the state or does not speak."""
    for task in ("sr", "gauss", "cs", "inpaint"):
        yield Trial(task, PAPER[0], PAPER[1], PAPER[2], PAPER[3])
    for step in (0.3, 0.5, 1.0):
        for beyond in (1.6, 1.7, 1.75, 1.8):
            yield Trial("sr", "projdiff", (), 21, None, {"step": step, "early_step": beyond}, NOISY_END)
    for beyond in (1.7, 1.8):
        yield Trial("sr", "projdiff", (), 21, None, {"step": 0.5, "early_step": beyond}, LATE_END)
    for beyond in (1.0, 1.3, 1.6):
        yield Trial("gauss", "projdiff", (), 14, None, {"early_step": beyond}, SHARP)
        yield Trial("motion", "projdiff", (), 21, None, {"step": 0.5, "early_step": beyond}, LATE_END)
        yield Trial("cs", "projdiff", ("start",), 32, "quadratic", {"early_step": beyond, "start": {"time": 150}})
        yield Trial("cs", "projdiff", ("start",), 26, "quadratic", {"early_step": beyond, "start": {"time": 200}})
        yield Trial("inpaint", "projdiff", (), 21, None, {"step": beyond}, LATE_END)
    yield Trial("cs", "idpg", ("start",), 32, "quadratic", {"start": {"time": 150}})
    yield Trial("inpaint", "projdiff", (), 21, "quadratic")
    yield Trial("inpaint", "idpg", (), 21, "quadratic")
    yield Trial("inpaint", "idpg", (), 21, None, {}, LATE_END)


FEW = (999, 600, 420, 310, 240, 180, 132, 90, 55, 26, -1)
"""Ten calls, none below time 24."""
MANY = (*range(990, 300, -30), *range(288, 140, -9), *range(136, 62, -7), *range(61, 22, -6), -1)
"""As many passes as the papers' hundred steps, none below time 24."""


def others() -> Iterator[Trial]:
    """What `early` chose: other noise levels, other masks, shorter and longer paths."""
    for task in OTHERS:
        yield Trial(task, PAPER[0], PAPER[1], PAPER[2], PAPER[3])
    for level in ("0.002", "0.01"):
        yield Trial(f"sr {level}", "ddnm", (), 21, None, {"eta": 0.985}, LATE_END)
        for beyond in (1.3, 1.5, 1.6, 1.7):
            yield Trial(f"sr {level}", "projdiff", (), 21, None, {"step": 0.5, "early_step": beyond}, LATE_END)
    for level in ("0.01", "0.02", "0.1"):
        yield Trial(f"sr {level}", "ddnm", ("ucpm",), 21, "quadratic", {"eta": 0.635})
        yield Trial(f"sr {level}", "projdiff", (), 21, None, {"step": 0.5, "early_step": 1.75}, NOISY_END)
    for name, plugins, steps, grid in (("ddnm", ("leader",), 10, "quadratic"), ("ddnm", (), 60, "quadratic")):
        yield Trial("sr", name, plugins, steps, grid)
    for beyond in (1.4, 1.5, 1.6, 1.75):
        yield Trial("sr", "projdiff", (), 10, None, {"step": 0.5, "early_step": beyond}, FEW)
    for beyond in (1.4, 1.6, 1.75):
        yield Trial("sr", "projdiff", (), 60, "quadratic", {"step": 0.5, "early_step": beyond})
    for beyond in (1.75, 1.85, 1.92):
        yield Trial("sr", "projdiff", (), len(MANY) - 1, None, {"step": 0.5, "early_step": beyond}, MANY)
    for level in ("0.002", "0.01"):
        yield Trial(f"sr {level}", "projdiff", (), 21, None, {"step": 0.5}, LATE_END)
        yield Trial(f"sr {level}", "projdiff", (), 10, None, {"step": 0.5, "early_step": 1.4}, FEW)
        yield Trial(f"sr {level}", "ddnm", ("leader",), 10, "quadratic", {"eta": 0.985})
    yield Trial("sr 0.002", "ddnm", ("leader",), 60, "quadratic", {"eta": 0.985})
    for mask in ("hole", "lines", "sparse", "inpaint"):
        yield Trial(mask, "idpg", (), 21, "quadratic")
        for step in (1.0, 1.3, 1.5):
            yield Trial(mask, "projdiff", (), 21, "quadratic", {"step": step})
    for mask in ("noisy hole", "noisy half"):
        yield Trial(mask, "idpg", (), 21, "quadratic")
        yield Trial(mask, "projdiff", (), 21, "quadratic", runs=2)
        for beyond in (1.0, 1.3, 1.5):
            yield Trial(mask, "projdiff", (), 21, "quadratic", {"early_step": beyond})


CHEAP_HIGH = (*range(999, 430, -15), 400, 370, 340, 310)
"""Many steps above time 300, which together cost as much as three below."""
MANY_HIGH = (*CHEAP_HIGH, 240, 195, 158, 126, 98, 74, 53, 35, 20, 8, -1)


def metric() -> Iterator[Trial]:
    """UCDC on the standard paths, with settings of its own, and the hosts' settings tuned again beside it."""

    def with_metric(
        task: str,
        method: str,
        times: tuple[int, ...] | str,
        own: dict[str, Any],
        *metrics: dict[str, Any],
        plugins: tuple[str, ...] = (),
        steps: int = 21,
    ) -> Iterator[Trial]:
        """The path without the metric, and with each of `metrics`."""
        grid, places = (times, ()) if isinstance(times, str) else (None, times)
        count = steps if grid else len(places) - 1
        yield Trial(task, method, plugins, count, grid, own, places)
        for item in metrics:
            yield Trial(task, method, (*plugins, "ucdc"), count, grid, {**own, "ucdc": item}, places)

    full: dict[str, Any] = {"iterations": 4}
    soft = {"iterations": 4, "power": 0.5}
    for step in (1.0, 1.3, 1.5):
        for mask in ("inpaint", "sparse", "hole", "lines"):
            yield from with_metric(mask, "projdiff", "quadratic", {"step": step}, full, soft)
    for mask in ("inpaint", "sparse", "hole"):
        yield from with_metric(mask, "projdiff", LATE_END, {"step": 1.5}, full, {"iterations": 8})
        yield from with_metric(mask, "projdiff", MANY_HIGH, {"step": 1.5}, full)
    for step in (1.0, 1.3, 1.5):
        diagonal = [{"covariance": "diagonal", "iterations": 4, "power": power} for power in (1.0, 1.5, 2.0)]
        yield from with_metric("sr-clean", "projdiff", LATE_END, {"step": step}, *diagonal, full)
    for beyond in (1.6, 1.8):
        own = {"step": 0.5, "early_step": beyond}
        yield from with_metric(
            "sr", "projdiff", NOISY_END, own, *_trusting(0.25, 0.5, 1.0), *_trusting(0.5, 1.0, diagonal=True)
        )
    for beyond in (1.0, 1.3):
        own = {"early_step": beyond}
        yield from with_metric("gauss", "projdiff", SHARP, own, *_trusting(0.25, 0.5), *_trusting(0.06, 0.12, diagonal=True))
    for eta in (0.5, 0.7, 0.85):
        yield from with_metric("motion", "ddnm", "quadratic", {"eta": eta}, *_trusting(0.25, 0.5, 1.0))
    for beyond in (1.3, 1.6, 1.8):
        yield from with_metric("cs", "projdiff", MANY_HIGH, {"early_step": beyond}, soft, full)
    for time, steps in ((150, 32), (200, 26)):
        late: dict[str, Any] = {"early_step": 1.6, "start": {"time": time}}
        yield from with_metric("cs", "projdiff", "quadratic", late, soft, plugins=("start",), steps=steps)
    yield from with_metric("cs", "ddnm", MANY_HIGH, {}, soft)
    for task in ("noisy hole", "noisy half"):
        for beyond in (1.0, 1.3, 1.5):
            yield from with_metric(task, "projdiff", "quadratic", {"early_step": beyond}, *_trusting(0.25, 1.0))
    for level in ("0.002", "0.01", "0.02", "0.1"):
        own = {"step": 0.5, "early_step": 1.6 if level in ("0.002", "0.01") else 1.75}
        end = LATE_END if level in ("0.002", "0.01") else NOISY_END
        yield from with_metric(f"sr {level}", "projdiff", end, own, *_trusting(0.25, 1.0), *_trusting(1.0, diagonal=True))


def sensing() -> Iterator[Trial]:
    """Compressed sensing with the metric: where its many steps at high noise may end; deblurring with softer maps."""
    late = (240, 195, 158, 126, 98, 74, 53, 35, 20, 8, -1)
    soft = {"iterations": 4, "power": 0.5}
    for high in (tuple(range(999, 290, -15)), tuple(range(999, 290, -10)), (*range(999, 430, -10), *range(420, 290, -20))):
        for beyond in (1.6, 1.8):
            yield Trial("cs", "projdiff", ("ucdc",), len(high) + 10, None, {"early_step": beyond, "ucdc": soft}, (*high, *late))
    yield Trial(
        "cs", "projdiff", ("ucdc",), 61, None, {"early_step": 1.7, "ucdc": soft}, (*range(999, 250, -15), 250, *LATE_END[11:])
    )
    for trust in (0.5, 1.0):
        for beyond in (1.0, 1.15):
            own = {"early_step": beyond, "ucdc": {"iterations": 4, "trust": trust, "power": 0.5}}
            yield Trial("gauss", "projdiff", ("ucdc",), 14, None, own, SHARP)
    for eta in (0.65, 0.75):
        yield Trial("motion", "ddnm", ("ucdc",), 21, "quadratic", {"eta": eta, "ucdc": {"iterations": 4, "trust": 1.0}})
        yield Trial("motion", "ddnm", ("ucdc",), 21, "quadratic", {"eta": eta, "ucdc": {"iterations": 4, "trust": 2.0}})
    for beyond in (1.8, 1.85):
        own = {"step": 0.5, "early_step": beyond, "ucdc": {"iterations": 4, "trust": 1.0, "power": 0.5}}
        yield Trial("sr", "projdiff", ("ucdc",), 21, None, own, NOISY_END)
        yield Trial("sr", "projdiff", ("ucdc",), len(MANY_HIGH) - 1, None, own, (*CHEAP_HIGH, *NOISY_END[10:]))


def closer() -> Iterator[Trial]:
    """Around what `metric` and `sensing` left: noisy super-resolution, the deblurrings, faithful looks."""
    for beyond in (1.82, 1.84):
        for trust, power in ((0.25, 1.0), (0.5, 1.0), (0.5, 0.5), (1.0, 1.0)):
            own = {"step": 0.5, "early_step": beyond, "ucdc": {"iterations": 4, "trust": trust, "power": power}}
            yield Trial("sr", "projdiff", ("ucdc",), 21, None, own, NOISY_END)
    for eta, trust in ((0.75, 4.0), (0.8, 2.0), (0.8, 4.0), (0.8, 8.0), (0.85, 4.0)):
        yield Trial("motion", "ddnm", ("ucdc",), 21, "quadratic", {"eta": eta, "ucdc": {"iterations": 4, "trust": trust}})
    for iterations in (4, 12):
        own = {"eta": 0.8, "ucdc": {"iterations": iterations, "trust": 4.0, "power": 0.5}}
        yield Trial("motion", "ddnm", ("ucdc",), 21, "quadratic", own)
    for beyond, trust, power in ((1.3, 1.0, 0.5), (1.3, 0.5, 0.5), (1.4, 0.5, 0.5), (1.15, 0.75, 0.5)):
        own = {"early_step": beyond, "ucdc": {"iterations": 4, "trust": trust, "power": power}}
        yield Trial("gauss", "projdiff", ("ucdc",), 14, None, own, SHARP)
    for runs in (1, 2):
        for mask in ("inpaint", "sparse", "hole", "lines"):
            own = {"step": 1.0, "ucdc": {"iterations": 4, "power": 0.5}}
            yield Trial(mask, "projdiff", ("ucdc",), 21, "quadratic", own, runs=runs)
        own = {"step": 1.3, "ucdc": {"covariance": "diagonal", "iterations": 4, "power": 1.5}}
        yield Trial("sr-clean", "projdiff", ("ucdc",), 21, None, own, LATE_END, runs)


SENSING = (*range(999, 250, -15), 250, *LATE_END[11:])
"""Compressed sensing with the metric: steps of 15 down to time 250."""
STANDARD: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "inpaint": ("projdiff", (), {"step": 1.5, "ucdc": {"iterations": 4, "power": 0.5}}),
    "sparse": ("projdiff", (), {"step": 1.5, "ucdc": {"iterations": 4, "power": 0.5}}),
    "hole": ("projdiff", (), {"step": 1.5, "ucdc": {"iterations": 4, "power": 0.5}}),
    "sr-clean": ("projdiff", LATE_END, {"step": 1.5, "ucdc": {"covariance": "diagonal", "iterations": 4, "power": 1.5}}),
    "sr": ("projdiff", NOISY_END, {"step": 0.5, "early_step": 1.84, "ucdc": {"iterations": 4, "trust": 0.5, "power": 0.5}}),
    "gauss": ("projdiff", SHARP, {"early_step": 1.3, "ucdc": {"iterations": 4, "trust": 0.5, "power": 0.5}}),
    "motion": ("ddnm", (), {"eta": 0.8, "ucdc": {"iterations": 4, "trust": 4.0, "power": 0.5}}),
    "cs": ("projdiff", SENSING, {"early_step": 1.75, "ucdc": {"iterations": 4, "power": 0.5}}),
}
"""Method, times (none: 21 quadratic ones) and settings that the rounds with the metric chose, natural look."""


def qualities() -> Iterator[Trial]:
    """The other qualities with the metric: ten steps, sixty steps, means of two runs."""
    for task, (method, times, own) in STANDARD.items():
        yield Trial(task, method, ("ucdc",), len(times) - 1 if times else 21, None if times else "quadratic", own, times)
        yield Trial(task, method, ("ucdc",), len(times) - 1 if times else 21, None if times else "quadratic", own, times, 2)
        plain = {name: value for name, value in own.items() if name != "ucdc"}
        few = FEW if task == "sr" else HALF
        for item in ((method, (), plain), (method, ("ucdc",), own)):
            yield Trial(task, item[0], item[1], len(few) - 1, None, item[2], few)
            yield Trial(task, item[0], item[1], 60, "quadratic", item[2])


def hosts() -> Iterator[Trial]:
    """UCDC on the papers' own paths, 100 uniform steps, for the rows "+ LEADer" of the tables."""
    for host in ("ddnm", "projdiff", "ddpg", "pirp", "sitcom", "diffpir", "ddrm", "idpg"):
        steps, own = (10, {"inner": 10}) if host == "sitcom" else (100, {})
        for task in ("cs", "sr-clean", "sr", "gauss", "motion"):
            yield Trial(task, host, (), steps, None, own)
            tried = _trusting(1.0) + _trusting(1.0, diagonal=True) if task == "sr-clean" else _trusting(1.0, 0.25)
            for item in [*tried, *(_trusting(0.25, diagonal=True) if task in ("sr", "gauss", "motion") else [])]:
                yield Trial(task, host, ("ucdc",), steps, None, {**own, "ucdc": item})


def softer() -> Iterator[Trial]:
    """The same with a softer map, and with more trust in the data."""
    floors = {host: {"floor": 0.3} for host in ("ddpg", "pirp", "diffpir", "idpg")}
    for host in ("ddnm", "projdiff", "ddpg", "pirp", "sitcom"):
        steps, own = (10, {"inner": 10}) if host == "sitcom" else (100, {})
        yield Trial("cs", host, (), steps, None, own)
        for power in (0.5, 0.25):
            item = {"iterations": 4, "power": power, **floors.get(host, {})}
            yield Trial("cs", host, ("ucdc",), steps, None, {**own, "ucdc": item})
    for host in ("ddnm", "projdiff"):
        for task in ("sr", "gauss", "motion"):
            yield Trial(task, host, (), 100, None)
            for trust in (1.0, 2.0, 4.0):
                yield Trial(task, host, ("ucdc",), 100, None, {"ucdc": {"iterations": 4, "trust": trust, "power": 0.5}})


def beyond() -> Iterator[Trial]:
    """How far ProjDiff may go beyond its estimate with the metric and eight iterations or more: LPIPS against PSNR."""
    masks = {"iterations": 8, "power": 0.5, "share": 0.8}
    for mask in ("sparse", "hole", "inpaint", "lines"):
        for step in (1.5, 1.7):
            yield Trial(mask, "projdiff", ("ucdc",), 21, "quadratic", {"step": step, "ucdc": masks})
    for early in (1.75, 1.85):
        own = {"early_step": early, "ucdc": {"iterations": 12, "power": 0.5, "share": 0.75}}
        yield Trial("cs", "projdiff", ("ucdc",), 61, None, own, SENSING)
    own = {"step": 1.4, "ucdc": {"covariance": "diagonal", "iterations": 4, "power": 2.0}}
    yield Trial("sr-clean", "projdiff", ("ucdc",), 21, None, own, LATE_END)


def further() -> Iterator[Trial]:
    """Where bars of the metric were missed: more iterations, more of the correlation, other powers, more trust in the data."""
    own: dict[str, Any]
    for own in (
        {"iterations": 24, "power": 0.5, "share": 0.75},
        {"iterations": 24, "power": 0.5, "share": 0.9},
        {"iterations": 24, "power": 1.0, "share": 0.75},
        {"iterations": 24, "power": 0.5, "share": 0.75, "trust": 4.0},
        {"iterations": 12, "power": 0.5, "share": 0.75, "trust": 4.0},
        {"iterations": 24, "power": 1.0, "share": 0.75, "trust": 4.0},
        {"iterations": 24, "power": 0.5, "share": 0.75, "trust": 16.0},
    ):
        yield Trial("cs", "projdiff", ("ucdc",), 61, None, {"early_step": 1.75, "ucdc": own}, SENSING)
    for own in (
        {"iterations": 16, "power": 0.5, "share": 0.8},
        {"iterations": 16, "power": 0.5, "share": 0.95},
        {"iterations": 8, "power": 0.75, "share": 0.8},
        {"iterations": 8, "power": 0.25, "share": 0.8},
    ):
        yield Trial("sparse", "projdiff", ("ucdc",), 21, "quadratic", {"step": 1.5, "ucdc": own})
    for own in (
        {"covariance": "diagonal", "iterations": 8, "power": 2.0},
        {"covariance": "diagonal", "iterations": 8, "power": 3.0},
        {"covariance": "diagonal", "iterations": 16, "power": 2.0},
        {"covariance": "diagonal", "iterations": 8, "power": 1.5},
    ):
        yield Trial("sr-clean", "projdiff", ("ucdc",), 21, None, {"step": 1.5, "ucdc": own}, LATE_END)


def settled() -> Iterator[Trial]:
    """What `further` spoke for, on eight photographs, and the same elsewhere."""
    own: dict[str, Any]
    for early, more in ((1.75, {}), (1.75, {"trust": 4.0}), (1.85, {"trust": 4.0}), (1.75, {"trust": 4.0, "iterations": 16})):
        own = {"iterations": 12, "power": 0.5, "share": 0.75, **more}
        yield Trial("cs", "projdiff", ("ucdc",), 61, None, {"early_step": early, "ucdc": own}, SENSING)
    for covariance in ("diagonal", "full"):
        own = {"covariance": covariance, "iterations": 8, "power": 2.0}
        yield Trial("sr-clean", "projdiff", ("ucdc",), 21, None, {"step": 1.5, "ucdc": own}, LATE_END)
    for mask in ("noisy half", "noisy hole"):
        for others in ({}, {"trust": 4.0}, {"only_unmeasured": True}):
            own = {"iterations": 8, "share": 0.8, "trust": 1.0, **others}
            yield Trial(mask, "projdiff", ("ucdc",), 21, "quadratic", {"early_step": 1.3, "ucdc": own})


def rows() -> Iterator[Trial]:
    """UCDC on the papers' own paths once more: what gains LPIPS for the PSNR that compressed sensing leaves to spend."""

    def tried(task: str, host: str, *metrics: dict[str, Any]) -> Iterator[Trial]:
        yield Trial(task, host, (), 100, None)
        for own in metrics:
            yield Trial(task, host, ("ucdc",), 100, None, {"ucdc": own})

    sensing: dict[str, Any] = {"iterations": 12, "share": 0.75, "power": 0.5}
    sharp = {"covariance": "diagonal", "iterations": 8, "power": 2.0}
    for host in ("ddnm", "projdiff"):
        yield from tried("cs", host, sensing, sensing | {"trust": 4.0}, sensing | {"trust": 4.0, "iterations": 24})
        yield from tried("sr-clean", host, sharp)
        yield from tried("sr", host, {"iterations": 4, "trust": 1.0})
        yield from tried("gauss", host, {"iterations": 4, "trust": 2.0, "power": 1.0}, {"iterations": 4, "trust": 1.0})
    for host in ("pirp", "idpg", "ddpg", "diffpir"):
        yield from tried("sr", host, {"covariance": "diagonal", "iterations": 4, "floor": 0.01})
        yield from tried("sr-clean", host, sharp | {"floor": 0.01})
        yield from tried("cs", host, sensing | {"power": 0.25, "floor": 0.3}, sensing | {"power": 0.25, "floor": 0.03})
    for host in ("idpg", "diffpir"):
        yield from tried("gauss", host, {"covariance": "diagonal", "iterations": 4, "power": 0.25, "floor": 0.3})
        yield from tried("motion", host, {"covariance": "diagonal", "iterations": 4, "power": 0.25, "floor": 0.3})


def _trusting(*trusts: float, diagonal: bool = False) -> list[dict[str, Any]]:
    """Settings of UCDC that trust noisy data so much."""
    return [{"iterations": 4, "trust": trust, **({"covariance": "diagonal"} if diagonal else {})} for trust in trusts]


ROUNDS = {
    "starts": starts,
    "settings": settings,
    "lengths": lengths,
    "relaxed": relaxed,
    "noisy": noisy,
    "early": early,
    "others": others,
    "metric": metric,
    "sensing": sensing,
    "closer": closer,
    "qualities": qualities,
    "hosts": hosts,
    "softer": softer,
    "beyond": beyond,
    "further": further,
    "settled": settled,
    "rows": rows,
}
app = typer.Typer(add_completion=False, help=__doc__)


def stored() -> dict[tuple[str, int], dict[str, Any]]:
    lines = RECORDS.read_text(encoding="utf-8").splitlines() if RECORDS.exists() else []
    return {(json.dumps(r["trial"], sort_keys=True), r["photograph"]): r for r in map(json.loads, lines)}


@app.command()
def run(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(ROUNDS)}.")],
    images: Annotated[str, typer.Option(help="A folder of development photographs.")],
    photographs: Annotated[int, typer.Option(help="How many of them.")] = 4,
    task: Annotated[str | None, typer.Option(help="One task only.")] = None,
) -> None:
    """Run what has no record yet."""
    torch.set_num_threads(1)
    files, done = list_images(images), stored()
    trials = [trial for trial in ROUNDS[name]() if task in (None, trial.task)]
    for number, trial in enumerate(trials):
        for index in range(photographs):
            if (trial.key, index) in done:
                continue
            point = (trial.task, trial.method, trial.plugins, trial.steps, trial.grid, index)
            scores = measure(point, files[index], settings=trial.settings, times=trial.times, runs=trial.runs)
            del scores["key"]
            with RECORDS.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"trial": trial.said, "photograph": index, **scores}) + "\n")
        typer.echo(f"{number + 1} of {len(trials)}", err=True)


@app.command()
def compare(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(ROUNDS)}.")],
    task: Annotated[str, typer.Argument(help="One task.")],
    method: Annotated[str | None, typer.Option(help="One method only.")] = None,
    against: Annotated[int, typer.Option(help="The trial that others are compared with, 0 is the first.")] = 0,
) -> None:
    """Trials of a round beside one of them, each pair on the photographs that both have."""
    trials = [trial for trial in ROUNDS[name]() if trial.task == task and method in (None, trial.method)]
    found = stored()
    kept = [{i: record for (key, i), record in found.items() if key == trial.key} for trial in trials]
    typer.echo("| method | plug-ins | settings | photographs | PSNR | LPIPS | LPIPS in % |")
    typer.echo("| --- | --- | --- | ---: | ---: | ---: | ---: |")
    for trial, mine in zip(trials, kept, strict=True):
        shared = sorted(mine.keys() & kept[against].keys())
        if not shared:
            continue
        means = [{score: mean(one[i][score] for i in shared) for score in ("psnr", "lpips")} for one in (mine, kept[against])]
        gain, price = (means[0][score] - means[1][score] for score in ("psnr", "lpips"))
        words = f"{trial.method} | {'+'.join(trial.plugins) or '-'} | {json.dumps(trial.settings)} | {len(shared)}"
        typer.echo(f"| {words} | {gain:+.2f} | {price:+.4f} | {100 * price / means[1]['lpips']:+.1f} |")


@app.command()
def table(photographs: Annotated[int, typer.Option(help="Trials with at least so many.")] = 4) -> None:
    """Means by task, best first, as differences from the papers' path on the same photographs."""
    rows: dict[str, dict[str, dict[int, dict[str, Any]]]] = {task: {} for task in TASKS | OTHERS}
    for (key, index), record in stored().items():
        rows[record["trial"]["task"]].setdefault(key, {})[index] = record
    typer.echo("| task | method | plug-ins | steps | settings | photographs | PSNR | LPIPS | work |")
    typer.echo("| --- | --- | --- | ---: | --- | ---: | ---: | ---: | ---: |")
    for task, tried in rows.items():
        paper = tried.get(Trial(task, PAPER[0], PAPER[1], PAPER[2], PAPER[3]).key, {})
        lines = []
        for found in tried.values():
            shared = sorted(found.keys() & paper.keys())
            if len(shared) < photographs:
                continue
            gain = mean(found[i]["psnr"] - paper[i]["psnr"] for i in shared)
            price = mean(found[i]["lpips"] - paper[i]["lpips"] for i in shared)
            trial, work = found[shared[0]]["trial"], mean(found[i]["work"] for i in shared)
            path = (
                f"{len(trial['times']) - 1} from {trial['times'][0]} to {trial['times'][-2]}"
                if "times" in trial
                else trial["steps"]
            )
            runs = f"mean of {trial['runs']}, " if "runs" in trial else ""
            words = f"{trial['method']} | {'+'.join(trial['plugins']) or '-'} | {runs}{path} | {json.dumps(trial['settings'])}"
            line = f"| {task} | {words} | {len(shared)} | {gain:+.2f} | {price:+.3f} | {work:.1f} |"
            lines.append((gain - WEIGHT * price, line))
        for _, line in sorted(lines, reverse=True):
            typer.echo(line)


if __name__ == "__main__":
    app()
