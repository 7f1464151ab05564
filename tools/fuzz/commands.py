"""Command lines with options nobody should give: any value for any option, and options that do not belong together."""

from pathlib import Path
from random import Random
from typing import Any

NUMBERS = (
    *("0", "1", "2", "-1", "3.5", "1e-9", "1e3", "1e18", "1e308", "nan", "inf", "-inf", "x", "25", "1001"),
    *("99999999999999999999", "0x10", "٣"),
)
NAMES = ("", "x", "none", "all", "-", "--", "..", "a" * 3000, "é", "\x1b[31m", "embedded", "DDNM", "leader", "a b")
MAPS = ("map.png", "map.npy", "map.16.png", "map.fade.png", "map.pdf", "map.svg", "map.jpg", "map.tif", "map", ".fade.png")
KEPT_SHORT: dict[tuple[str, ...], list[str]] = {
    ("demo",): ["--steps", "1"],
    ("train",): ["--hours", "0"],
    ("fit-variance",): ["--minutes", "0.0001"],
    **{(name,): ["--minutes", "-1"] for name in ("fit-trust", "calibrate", "adapt")},
    ("calibrate-satp",): ["--count", "0"],
    ("bench", "run"): ["--dry-run"],
    ("restore",): ["--jobs", "0"],  # a worker of the fuzzer starts no workers
}
"""Options that commands get last, so that none begins what takes minutes, or processes of its own."""
NOT_RUN = {("web",), ("priors", "get")}
"""A server, and downloads."""
SHARES: dict[tuple[str, ...], float] = {("restore",): 0.47, ("degrade",): 0.16}
"""How often these two are drawn; the others share what is left."""
ALWAYS = {"--task": ("degrade",), "--steps": ("restore",)}
"""Options that a command is always given: without them it would take long, or refuse at once."""


def any_command(rng: Random, folder: Path) -> list[str]:
    """A command with options of its own, as the command line declares them; relative names lie in `folder`."""
    import typer

    from leader.cli import app

    if rng.random() < 0.05:
        known = (*NAMES, *NUMBERS, "--help", "--version", "restore", "bench", "priors")
        return [rng.choice(known) for _ in range(rng.randrange(4))]
    commands = {path: item for path, item in _list_commands(typer.main.get_command(app)) if path not in NOT_RUN}
    others = (1 - sum(SHARES.values())) / (len(commands) - len(SHARES))
    path = rng.choices(list(commands), [SHARES.get(one, others) for one in commands])[0]
    tables, words = _tables(rng, folder), list(path)
    for parameter in commands[path].params:
        wanted = parameter.required or path in [(name,) for name in ALWAYS.get(parameter.opts[0], ())]
        if parameter.name == "help" or (not wanted and rng.random() > 0.12):
            continue
        values = tables.get(parameter.opts[0])
        value = rng.choice(values) if values and rng.random() < 0.8 else _value(rng, folder, parameter)
        if parameter.param_type_name == "argument":
            words.append(value)
        elif getattr(parameter, "is_flag", False):
            words.append(rng.choice([*parameter.opts, *parameter.secondary_opts]))
        else:
            words += [rng.choice(parameter.opts), value]
    return [*words, *KEPT_SHORT.get(path, [])]


def _names() -> tuple[list[str], list[str], list[str]]:
    """Tasks, methods and plug-ins that there are."""
    from leader.methods import METHODS
    from leader.plugins import BUNDLES, PLUGINS
    from leader.restoration.tasks import TASKS

    return sorted(TASKS), sorted(METHODS), [*sorted(PLUGINS), *sorted(BUNDLES), "none"]


def _input(rng: Random, folder: Path) -> str:
    return str(folder / rng.choice(("rgb.png", "rgb.png", "grey.png", "alpha.png", "cs.npz", "none.png", "kernel.npy", "")))


def _output(rng: Random, folder: Path) -> str:
    names = ["out.png", "out.png", "out.jpg", "out.npz", "out.tif", "out.xyz", "out", "rgb.png", "none/out.png"]
    return str(folder / rng.choice([*names, "", "o" * 300 + ".png"]))


def _tables(rng: Random, folder: Path) -> dict[str, tuple[str, ...]]:
    """Values by option, sensible ones among them."""

    def files(*names: str) -> tuple[str, ...]:
        return tuple(str(folder / name) for name in names)

    name, number, (tasks, methods, plugins) = rng.choice(NAMES), rng.choice(NUMBERS), _names()
    drawn = f"{rng.choice(('disk', 'line', 'gaussian'))}:{number}"
    return {
        "picture": (_input(rng, folder),),
        "out": (_output(rng, folder),),
        "--task": (*tasks, *tasks, name),
        "--sigma": ("0", "0.05", "0.1", number, rng.choice(NUMBERS)),
        "--kernel": ("gaussian:1", "motion:1", "auto", drawn, *files("kernel.npy"), name),
        "--mask": ("random:0.5", "auto", *files("mask.png"), f"random:{number}", name),
        "--factor": ("2", "4", number),
        "--down": ("bicubic", "average", "auto", "lanczos", "box", name),
        "--seed": ("0", "7", number),
        "--steps": ("1", "1", "2", number),
        "--method": (*methods, name),
        "--plugin": (*plugins, name),
        "--budget": ("0", "0.05", number),
        "--prior": ("embedded", "embedded", "imagenet-256", name, str(folder)),
        "--map": files("map.npy", *MAPS, "map.xyz", "rgb.png", "out.png", ""),
        "--figure": files("figure.png", "figure.svg", "figure.xyz"),
        "--quality": ("draft", "standard", "best", name),
        "--look": ("natural", "faithful", name),
        "--average": ("1", "2", number),
        "--estimator": ("none", "head", "hutchinson", "difference", "exact", name),
        "--threads": ("1", number),
        "--dtype": ("float32", "bfloat16", name),
        "--device": ("cpu", "cuda:99", name),
        "--json": files("run.json", "out.png", "none/run.json", ""),
        "--settings": files("set.toml", "rgb.png", "none.toml", ""),
        "--ratio": ("0.5", number),
        "--order": ("random", "sequency", "published", name),
    }


def _list_commands(command: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
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
    known = [word for names in _names() for word in names]
    return rng.choice((*known, "table1", "small", "cpu", "md", _input(rng, folder), *NAMES))
