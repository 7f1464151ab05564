"""Command lines with options nobody should give: any value for any option, and options that do not belong together."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from tools.fuzz.doors import MAPS

NUMBERS = (
    *("0", "1", "2", "-1", "3.5", "1e3", "1e308", "nan", "inf", "-inf", "", "x", "25", "1001", "99999999999999999999", "0x10"),
    "٣",
)
NAMES = ("", "x", "none", "all", "-", "--", "..", "a" * 3000, "é", "\x1b[31m", "embedded", "DDNM", "leader", "a b")
TASKS = ("sr", "deblur-gaussian", "deblur-motion", "deblur", "inpaint", "cs", "colourise", "denoise", "jpeg")
METHODS = (
    *("ddim", "ddnm", "ddrm", "dps", "diffpir", "ddpg", "idpg", "projdiff", "sitcom", "pirp"),
    *("pigdm", "daps", "red-diff", "repaint", "mcg", "dcdp"),
)
PLUGINS = ("leader", "ucpm", "satp", "equs", "equs+", "none")


def any_command(rng: Random, folder: Path) -> list[str]:
    """A command of the package with options drawn at random; relative names lie in `folder`."""
    kind = rng.random()
    if kind < 0.45:
        return _restore(rng, folder)
    if kind < 0.6:
        return _degrade(rng, folder)
    if kind < 0.7:
        return _other(rng, folder)
    if kind < 0.95:
        return _every_option(rng, folder)
    return [
        rng.choice((*NAMES, *NUMBERS, "--help", "--version", "restore", "bench", "priors")) for _ in range(rng.randrange(4))
    ]


def _input(rng: Random, folder: Path) -> str:
    return str(folder / rng.choice(("rgb.png", "rgb.png", "grey.png", "alpha.png", "cs.npz", "none.png", "kernel.npy", "")))


def _output(rng: Random, folder: Path) -> str:
    names = ["out.png", "out.png", "out.jpg", "out.npz", "out.tif", "out.xyz", "out", "rgb.png", "none/out.png"]
    return str(folder / rng.choice([*names, "", "o" * 300 + ".png"]))


def _tables(rng: Random, folder: Path) -> dict[str, tuple[str, ...]]:
    """Values by option that restore and degrade share, sensible ones among them."""
    return {
        "--task": (*TASKS, *TASKS, rng.choice(NAMES)),
        "--sigma": ("0", "0.05", "0.1", rng.choice(NUMBERS), rng.choice(NUMBERS)),
        "--kernel": (
            "gaussian:1",
            "motion:1",
            "auto",
            f"{rng.choice(('disk', 'line'))}:{rng.choice(NUMBERS)}",
            str(folder / "kernel.npy"),
            f"gaussian:{rng.choice(NUMBERS)}",
            rng.choice(NAMES),
        ),
        "--mask": ("random:0.5", "auto", str(folder / "mask.png"), f"random:{rng.choice(NUMBERS)}", rng.choice(NAMES)),
        "--factor": ("2", "4", rng.choice(NUMBERS)),
        "--down": ("bicubic", "average", "auto", "lanczos", "box", rng.choice(NAMES)),
        "--seed": ("0", "7", rng.choice(NUMBERS)),
    }


def _drawn(rng: Random, options: dict[str, tuple[str, ...]], share: float) -> list[str]:
    words: list[str] = []
    for name, values in options.items():
        if rng.random() < share:
            words += [name, rng.choice(values)]
    return words


def _restore(rng: Random, folder: Path) -> list[str]:
    options = _tables(rng, folder) | {
        "--method": (*METHODS, rng.choice(NAMES)),
        "--plugin": (*PLUGINS, rng.choice(NAMES)),
        "--budget": ("0", "0.05", rng.choice(NUMBERS)),
        "--prior": ("embedded", "embedded", "imagenet-256", rng.choice(NAMES), str(folder)),
        "--map": tuple(str(folder / name) for name in ("map.npy", *MAPS, "map.xyz", "rgb.png", "out.png", "")),
        "--quality": ("draft", "standard", "best", rng.choice(NAMES)),
        "--look": ("natural", "faithful", rng.choice(NAMES)),
        "--average": ("1", "2", rng.choice(NUMBERS)),
        "--estimator": ("none", "head", "hutchinson", "difference", "exact", rng.choice(NAMES)),
        "--threads": ("1", rng.choice(NUMBERS)),
        "--dtype": ("float32", "bfloat16", rng.choice(NAMES)),
        "--device": ("cpu", "cuda:99", rng.choice(NAMES)),
        "--json": tuple(str(folder / name) for name in ("run.json", "out.png", "none/run.json", "")),
        "--settings": tuple(str(folder / name) for name in ("set.toml", "rgb.png", "none.toml", "")),
    }
    if rng.random() < 0.05:
        options["--figure"] = tuple(str(folder / name) for name in ("figure.png", "figure.svg", "figure.xyz"))
    steps = ["--steps", rng.choice(("1", "1", "2", rng.choice(NUMBERS)))]
    given = _input(rng, folder)
    here = ["--jobs", "0"] if Path(given).is_dir() else []  # a worker of the fuzzer starts no workers
    return ["restore", given, _output(rng, folder), *steps, *here, *_drawn(rng, options, 0.2)]


def _degrade(rng: Random, folder: Path) -> list[str]:
    options = _tables(rng, folder) | {
        "--ratio": ("0.5", rng.choice(NUMBERS)),
        "--order": ("random", "sequency", "published", rng.choice(NAMES)),
    }
    task = options.pop("--task")
    return ["degrade", _input(rng, folder), _output(rng, folder), "--task", rng.choice(task), *_drawn(rng, options, 0.3)]


KEPT_SHORT = {
    ("demo",): ["--steps", "1"],
    ("train",): ["--hours", "0"],
    ("fit-variance",): ["--minutes", "0.0001"],
    ("fit-trust",): ["--minutes", "-1"],
    ("calibrate",): ["--minutes", "-1"],
    ("adapt",): ["--minutes", "-1"],
    ("calibrate-satp",): ["--count", "0"],
    ("bench", "run"): ["--dry-run"],
    ("restore",): ["--steps", "1", "--jobs", "0"],
}
"""Options that commands get last, so that none begins what takes minutes, or processes of its own."""
NOT_RUN = {("web",), ("priors", "get")}
"""A server, and downloads."""


def _every_option(rng: Random, folder: Path) -> list[str]:
    """Any command with its own options, as the command line declares them: each value good for its kind, or for none."""
    import typer

    from leader.cli import app

    path, command = rng.choice([item for item in _list_commands(typer.main.get_command(app)) if item[0] not in NOT_RUN])
    words: list[str] = []
    for parameter in command.params:
        if parameter.name == "help" or (not parameter.required and rng.random() > 0.25):
            continue
        value = _value(rng, folder, parameter)
        if parameter.param_type_name == "argument":
            words.append(value)
        elif getattr(parameter, "is_flag", False):
            words.append(rng.choice([*parameter.opts, *parameter.secondary_opts]))
        else:
            words += [rng.choice(parameter.opts), value]
    return [*path, *words, *KEPT_SHORT.get(path, [])]


def _list_commands(command: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """Every command with the words that lead to it."""
    inner = getattr(command, "commands", None)
    if inner is None:
        return [(path, command)]
    return [found for name, item in inner.items() for found in _list_commands(item, (*path, name))]


def _value(rng: Random, folder: Path, parameter: Any) -> str:
    if rng.random() < 0.1:
        return rng.choice((*NAMES, *NUMBERS))
    kind = parameter.bare_type().lower()
    if "int" in kind or "float" in kind:
        return rng.choice(("1", "2", "16", "0.5", *NUMBERS))
    if "path" in kind or parameter.name in ("images", "data", "state", "records"):
        return rng.choice((_input(rng, folder), _output(rng, folder), str(folder)))
    return rng.choice((*METHODS, *PLUGINS, *TASKS, "table1", "small", "cpu", "md", _input(rng, folder), *NAMES))


def _other(rng: Random, folder: Path) -> list[str]:
    name, number = rng.choice(NAMES), rng.choice(NUMBERS)
    here = str(folder)
    return rng.choice(
        (
            ["methods", rng.choice((*METHODS, name))],
            ["plugins", rng.choice((*PLUGINS, name))],
            ["tasks", rng.choice((*TASKS, name))],
            ["priors", name],
            ["priors", "show", name],
            ["priors", "inspect", _input(rng, folder)],
            ["priors", "get", rng.choice((name, "embedded"))],
            ["bench", "table", name],
            ["bench", "run", "table1", "--dry-run", "--count", number, "--size", rng.choice(("32", number)), "--rows", name],
            ["bench", "table", "table1", "--form", name],
            ["bench", "run", "table1", "--dry-run", "--images", here, "--count", "1", "--fit", name],
            ["bench", "compare", "table1", name, "--count", "1"],
            ["publish", "--state", here, "--images", here, "--calibration", here, "--out", str(folder / "p.safetensors")],
            ["train", "--images", here, "--state", str(folder / "run"), "--hours", "0", "--start", name, "--device", name],
            ["train", "--images", here, "--state", str(folder / "run"), "--hours", "0", "--parts", name, "--seed", number],
            ["fit-variance", "--prior", name, "--images", here, "--minutes", "0"],
        )
    )
