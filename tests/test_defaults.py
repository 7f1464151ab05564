"""What a method or a plug-in does where nobody says otherwise: the numbers of the papers, and ours."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import asdict, fields
from typing import Any

import pytest
import torch

from leader import Sampler, defaults
from leader.cli import errors
from leader.methods import METHODS
from leader.methods.base import Cost
from leader.operators import Blur, Denoising, FromFunctions, WalshHadamard
from leader.operators import tasks as operator_tasks
from leader.plugins import BUNDLES, PLUGINS, image_priors, informed, satp, ucpm
from leader.priors.base import Prior
from leader.restoration.restore import prepare
from leader.schedule import Schedule
from leader.uncertainty import covariance
from leader.uncertainty.estimators import Difference, Hutchinson, local_mean
from leader.web.limits import Limits, fitted
from tests.chosen_numbers import CHOSEN

DDPG: dict[str, Any] = {"gamma": 8.0, "zeta": 0.5, "eta_tilde": 0.7, "eta_floor": 1e-4, "ls_scale": 1.0}
EXPECTED: dict[str, dict[str, Any]] = {
    "ddim": {"eta": 0.0},
    "ddnm": {"eta": 0.85, "travel_length": 1, "travel_repeats": 1, "form": "auto", "noise": "rotated"},
    "ddrm": {"eta": 0.85, "eta_b": 1.0},
    "dps": {"scale": None, "clamp": True, "variance": "auto"},
    "diffpir": {"lam": 7.0, "zeta": 0.3, "eta": 0.0, "clamp": True, "published_units": True, "return_noisy": False},
    "ddpg": {**DDPG, "mode": None, "inject": True},
    "idpg": {**DDPG, "mode": 0, "inject": False},
    "pirp": {**DDPG, "mode": None, "inject": True, "lam": 0.2, "width": 0.01, "variant": "lb", "argument": "curvature"},
    "projdiff": {"step": 1.0, "early_step": 1.0, "form": "spectral"},
    "sitcom": {"inner": 30, "rate": 0.02, "lam": 0.0, "margin": 0.002, "clamp": True, "overwrite": False},
    "pigdm": {"eta": 1.0, "variance": 1.0, "weights": "adaptive"},
    "daps": {"flow": 5, "inner": 100, "rate": 1e-4, "fall": 0.01, "tau": 0.01, "end": 2.0},
    "red-diff": {"lam": 0.25, "power": 1.0, "rate": 0.1},
    "repaint": {"travel_length": 10, "travel_repeats": 10, "clamp": True, "damping": 4.0},
    "mcg": {"scale": 1.0, "clamp": True, "variance": "auto", "damping": 4.0},
    "dcdp": {"flow": 20, "inner": 10, "rate": 1.0, "lam": 4.0, "first": 400},
    "posterior": {"eta": 1.0},
    "ucpm": {
        "phi": "tv",
        "lam": 0.2,
        "solve": "diagonal",
        "map": "local",
        "sharpen": 0.0,
        "width": 0.01,
        "argument": "curvature",
        "project": "clean",
    },
    "satp": {"budget": 0.01, "eta": 2.0, "rho": 1.0, "rule": "scaled"},
    "satp-paper": {"budget": 0.01, "eta": 2.0, "rho": 1.0, "rule": "written"},
    "equs": {"transform": "flip", "mode": "aligned"},
    "equs+": {"transform": "flip", "mode": "aligned", "times": "decreasing"},
    "start": {"share": 0.05, "time": None, "draw": False, "spread": False},
    "pace": {"power": 1.0},
    "wiener": {"trust": 8.0},
}
EXPECTED["ucpm-paper"] = {**EXPECTED["ucpm"], "phi": "host", "solve": "hessian", "project": "always"}


def signature_of(function: Any) -> dict[str, Any]:
    """The defaults of a function's arguments."""
    return {
        name: item.default for name, item in inspect.signature(function).parameters.items() if item.default is not item.empty
    }


@pytest.mark.parametrize("name", EXPECTED)
def test_the_settings_of_methods_and_plug_ins(name: str) -> None:
    made = (METHODS.get(name) or PLUGINS[name])()
    assert {item.name: getattr(made, item.name) for item in fields(made)} == EXPECTED[name]  # type: ignore[arg-type]


def test_what_methods_and_plug_ins_say_of_themselves() -> None:
    costs = {name: cls().cost for name, cls in METHODS.items()}
    plain = {name: Cost(1, 0, 0) for name in METHODS}
    guided = dict.fromkeys(("dps", "mcg", "pigdm"), Cost(1, 1, 0))
    inner = {"sitcom": Cost(30, 29, 0), "projdiff": Cost(1, 0, 1), "daps": Cost(5, 0, 0), "dcdp": Cost(20, 0, 0)}
    assert costs == {**plain, **guided, **inner}
    assert set(METHODS) <= set(EXPECTED)
    assert [name for name, cls in METHODS.items() if not cls.takes_origin] == ["dps", "mcg"]
    held = {name: cls for name, cls in PLUGINS.items() if name in EXPECTED}
    assert {name for name, cls in held.items() if cls.needs_sigma} == {"ucpm", "satp", "ucpm-paper", "satp-paper"}
    assert [name for name, cls in held.items() if cls.begins] == ["start"]
    assert {name: cls().term for name, cls in METHODS.items() if cls.term} == {"pirp": "pirp"}
    assert BUNDLES == {"leader": ("ucpm", "satp"), "leader-paper": ("ucpm-paper", "satp-paper")}


def test_numbers_that_have_no_setting() -> None:
    assert ucpm.LARGEST_SHARPENING == 1 / 32 and satp.FARTHEST == 10**6
    assert informed.LANCZOS_STEPS == 8 and informed.FIRST_LABEL == 1_000_000
    assert signature_of(image_priors.total_variation) == {"smoothing": 0.05}
    assert (covariance.FLOOR, covariance.ITERATIONS, covariance.TOLERANCE) == (0.01, 200, 1e-4)
    assert (covariance.PROBES, covariance.WINDOW) == (2, 5)
    assert signature_of(Schedule.linear) == signature_of(Schedule.scaled_linear) == {"start": 1e-4, "end": 2e-2, "steps": 1000}
    assert signature_of(Schedule.cosine) == {"steps": 1000, "offset": 0.008, "largest": 0.999}
    assert Difference().memory == 0.5 and signature_of(local_mean) == {"window": 7}
    assert (Hutchinson().probes, Hutchinson().window, Hutchinson().seed) == (1, 7, 0)


@pytest.mark.parametrize("module", CHOSEN)
def test_limits_and_numbers_that_were_chosen_once(module: str) -> None:
    """Chosen by measurements or told to people; whoever has a better number changes it there too, and the documentation."""
    found = importlib.import_module(f"leader.{module}")
    assert {name: getattr(found, name) for name in CHOSEN[module]} == CHOSEN[module]


def test_exit_codes() -> None:
    assert (errors.FAILED, errors.WRONG_USAGE, errors.NO_ANSWER, errors.BUG, errors.INTERRUPTED) == (1, 2, 3, 70, 130)


def test_what_one_instance_of_the_page_gives() -> None:
    assert asdict(Limits()) == {
        "upload_bytes": 64 * 1024 * 1024,
        "pixels": 16_000_000,
        "waiting": 64,
        "jobs": 1,
        "threads": 1,
        "seconds": 3600,
        "keep_seconds": 3600,
        "kept": 512,
    }
    assert [(one.jobs, one.threads) for one in (fitted(8), fitted(1), fitted(8, jobs=2), fitted(8, threads=4))] == [
        (4, 2),
        (1, 1),
        (2, 4),
        (2, 4),
    ]


def test_operators_without_options() -> None:
    shape = (3, 8, 8)
    assert (
        Denoising(shape).rcond
        == Blur(shape, torch.ones(1, 1)).rcond
        == FromFunctions(shape, torch.clone, torch.clone).rcond
        == 1e-3
    )
    assert signature_of(WalshHadamard.__init__) == {
        "ratio": 0.25,
        "seed": 0,
        "order": "random",
        "keep_constant": True,
        "indices": None,
    }
    sr = operator_tasks.build_task("sr", shape)
    assert sr.task == "sr-bicubic" and sr.measurement_shape == (3, 2, 2)


def test_a_sampler_and_a_restoration() -> None:
    given = signature_of(Sampler.__init__)
    assert given == {
        "prior": "embedded",
        "method": "ddnm",
        "plugins": ("leader",),
        "steps": 100,
        "grid": None,
        "estimator": "auto",
        "probes": 1,
        "trust_time": 100,
        "use_presets": True,
    }
    given = signature_of(prepare)
    chosen = ("task", "sigma", "quality", "look", "method", "plugins", "steps", "ids", "device", "dtype", "threads", "settings")
    assert {given[key] for key in chosen} == {None}
    assert (given["prior"], given["seed"], given["average"]) == ("embedded", 0, None)
    assert (defaults.QUALITY, defaults.LOOK, defaults.METHOD_PLUGINS, defaults.METHOD_STEPS) == (
        "standard",
        "natural",
        ("leader",),
        100,
    )
    assert Sampler(Prior(Schedule.linear()), use_presets=False).choices.trust_time == 100
