"""A case: its number gives a generator, the generator a few spoiled files and a command line that reads them."""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tools.fuzz.commands import any_command
from tools.fuzz.damage import VALUES, WORDS, json_text, mended_png, spoiled, spoiled_json, spoiled_text
from tools.fuzz.doors import kept_run, referee, whole_folder
from tools.fuzz.structure import spoiled_structure

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
SHARED = EXPERIMENTS.parent / "src" / "leader" / "bench"


@dataclass(frozen=True)
class Case:
    """What to run: arguments of `leader`, in a folder that holds the files they name."""

    number: int
    reader: str
    arguments: list[str]


Maker = Callable[[Random, Path, Path], list[str]]


def make_case(seed: int, number: int, seeds: Path, folder: Path, only: str | None = None) -> Case:
    """Case `number` of a seed: writes its files into `folder`."""
    rng = Random(f"{seed}/{number}")
    names = list(SHARES)
    reader = rng.choices(names, [SHARES[name][0] for name in names])[0]
    return Case(number, reader, SHARES[reader][1](rng, seeds, folder))


def reader_of(seed: int, number: int) -> str:
    """The reader a case is for, without making it."""
    rng = Random(f"{seed}/{number}")
    names = list(SHARES)
    return rng.choices(names, [SHARES[name][0] for name in names])[0]


def _good_picture(seeds: Path, folder: Path, name: str = "rgb.png") -> str:
    shutil.copy(seeds / "pictures" / name, folder / name)
    return str(folder / name)


def _out(folder: Path) -> str:
    return str(folder / "out.png")


def special(rng: Random, folder: Path, suffix: str) -> str:
    """A path that is no ordinary file."""
    path = folder / f"odd{suffix}"
    kind = rng.randrange(9)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.mkdir()
    elif kind == 2:
        path.symlink_to(path)
    elif kind == 3:
        path.symlink_to("/dev/zero")
    elif kind == 4:
        path = folder / ("n" * 300 + suffix)
    elif kind == 5:
        return f"{folder}/a\0b{suffix}"
    elif kind == 6:
        path = folder / f"\udcff{suffix}"
    elif kind == 7:
        path = Path("/dev/null")
    return str(path)


def _picture(rng: Random, seeds: Path, folder: Path) -> list[str]:
    sources = sorted((seeds / "pictures").iterdir())
    source = rng.choice(sources)
    path = folder / f"in{source.suffix if rng.random() < 0.9 else rng.choice(('.png', '.jpg', '.tif', '.eps', ''))}"
    path.write_bytes(_spoiled_picture(source.read_bytes(), rng, rng.choice(sources).read_bytes()))
    given = special(rng, folder, source.suffix) if rng.random() < 0.004 else str(path)
    kind = rng.random()
    if kind < 0.05:
        prior = seeds / "priors" / "pipeline"
        head = folder / "head.safetensors"
        return ["fit-variance", "--prior", str(prior), "--images", str(folder), "--minutes", "0.0001", "--out", str(head)]
    if kind < 0.11:
        return ["diagnose", given, *(["--json"] if rng.random() < 0.3 else [])]
    if kind < 0.2:
        return ["degrade", given, _out(folder), "--task", rng.choice(("sr", "denoise", "colourise")), "--sigma", "0.02"]
    task = rng.choice(("denoise", "denoise", "sr", "colourise", "inpaint", "jpeg", "deblur"))
    sigma = ["--sigma", "0.1"] if rng.random() < 0.5 and task != "jpeg" else []
    more = {"sr": ["--factor", "2"], "deblur": ["--kernel", "auto"]}.get(task, [])
    if task == "inpaint" and rng.random() < 0.5:
        more = ["--mask", "auto"]
    return ["restore", given, _out(folder), "--task", task, *sigma, *more, *_cheap(rng)]


def _spoiled_picture(data: bytes, rng: Random, other: bytes) -> bytes:
    """Half of them with a structure that says something wrong, the others with wrong bytes anywhere."""
    if rng.random() < 0.5:
        data = spoiled_structure(data, rng)
        return data if rng.random() < 0.8 else spoiled(data, rng)
    data = spoiled(data, rng, other)
    return mended_png(data) if rng.random() < 0.6 else data


def _cheap(rng: Random) -> list[str]:
    return ["--steps", "1", *rng.choice(([], ["--plugin", "none"], ["--method", "ddpg"]))]


def _settings(rng: Random, seeds: Path, folder: Path) -> list[str]:
    method, known = _known_settings(rng)
    path = folder / rng.choice(("set.toml", "set.json"))
    content = {rng.choice(known): rng.choice(VALUES) for _ in range(rng.randrange(4))}
    for table in ("satp", "ucpm", "equs", "equs+"):
        if rng.random() < 0.2:
            names = ("budget", "eta", "rho", "lam", "phi", "solve", "map", "sharpen", "width", "x")
            content[table] = {rng.choice(names): rng.choice(VALUES) for _ in range(rng.randrange(1, 3))}
    if path.suffix == ".json":
        path.write_bytes(json_text(content, rng))
    else:
        path.write_bytes(_toml(content, rng))
    given = special(rng, folder, path.suffix) if rng.random() < 0.01 else str(path)
    picture = _good_picture(seeds, folder)
    plugin = ["--plugin", rng.choice(("leader", "satp", "ucpm", "equs", "equs+", "none"))] if rng.random() < 0.7 else []
    task = rng.choice((["--task", "denoise"], ["--task", "sr", "--factor", "2"]))
    sigma = ["--sigma", rng.choice(("0", "0.05"))]
    return ["restore", picture, _out(folder), "--settings", given, "--method", method, "--steps", "2", *plugin, *task, *sigma]


def _known_settings(rng: Random) -> tuple[str, list[str]]:
    from leader.methods import METHODS

    method = rng.choice(sorted(METHODS))
    own = [item.name for item in fields(METHODS[method])]  # type: ignore[arg-type]
    loop = ["grid", "estimator", "probes", "trust_time", "use_presets", "steps", "satp", "ucpm", "x", ""]
    return method, own + loop


def _toml(content: dict[str, Any], rng: Random) -> bytes:
    """The content as TOML, as far as it can be, then perhaps damaged."""
    lines = [f"{json.dumps(key)} = {_toml_value(value)}" for key, value in content.items()]
    text = "\n".join(lines) + "\n"
    kind = rng.randrange(12)
    if kind == 0:
        return spoiled(text.encode(errors="replace"), rng)
    if kind == 1:
        return text.encode("utf-16")
    if kind == 2:
        return ("a = " + "[" * 100_000).encode()
    if kind == 3:
        return b"\xef\xbb\xbf" + text.encode(errors="replace") + b"\xff"
    return (spoiled_text(text, rng) if kind < 7 else text).encode(errors="replace")


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml_value(item) for item in value) + "]"
    if isinstance(value, float):
        return repr(value)
    return '"none"' if value is None else json.dumps(value)


def _experiment(rng: Random, seeds: Path, folder: Path) -> list[str]:
    source = rng.choice(sorted(EXPERIMENTS.glob("*.toml")))
    path = folder / "trial.toml"
    text, tasks = source.read_text(encoding="utf-8"), (SHARED / "tasks.toml").read_text(encoding="utf-8")
    text = text.replace("count = 16", "count = 1").replace("size = 128", "size = 32")
    if rng.random() < 0.25:
        tasks = spoiled_text(tasks, rng)
    else:
        text = spoiled_text(text, rng)
    path.write_bytes(spoiled(text.encode(errors="replace"), rng) if rng.random() < 0.1 else text.encode(errors="replace"))
    (folder / "tasks.toml").write_bytes(tasks.encode(errors="replace"))
    given = special(rng, folder, ".toml") if rng.random() < 0.01 else str(path)
    records = ["--records", str(folder / "records")]
    kind = rng.random()
    if kind < 0.75:
        return ["bench", "run", given, "--dry-run", *records]
    if kind < 0.9:
        return ["bench", "table", given, "--partial", *records, "--format", rng.choice(("md", "csv", "latex", "html", "x"))]
    return ["bench", rng.choice(("figure", "compare")), given, *records, *(["DDNM"] if rng.random() < 0.5 else [])]


def _array(rng: Random, good: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Something like the table `good`, of another shape, type or content."""
    kind = rng.randrange(10)
    shapes = (
        (),
        (0,),
        (1,),
        (3,),
        (0, 3),
        (1, 1),
        (2, 3),
        (1, 200),
        (12, 20),
        (20, 12),
        (3, 12, 20),
        (12, 20, 4),
        (2, 2, 2, 2),
    )
    if kind == 0:
        return np.full(rng.choice(shapes), rng.choice((0.0, 1.0, -1.0, 1e308, 1e-320, float("nan"), float("inf"))))
    if kind == 1:
        return np.ones(rng.choice(shapes), rng.choice(("f2", "f4", ">f8", "i8", "u1", "?", "c16", "U3", "S2", "M8[s]")))
    if kind == 2:
        return np.ones(rng.choice(shapes), dtype=[("a", "f8"), ("b", "i4")])
    if kind == 3:
        return np.array(rng.choice(([[]], [[1, 2], [3, 4]], [[1e300, -1e300]])))
    spoilt = np.array(good, dtype=np.float64)
    spoilt.flat[rng.randrange(spoilt.size)] = rng.choice((0.0, -5.0, 1e308, float("nan"), float("-inf"), 2**40))
    return spoilt


def _table(rng: Random, seeds: Path, folder: Path, what: str) -> str:
    """A kernel or a mask: a file of some kind, or words."""
    if rng.random() < 0.02:
        return special(rng, folder, rng.choice((".npy", ".txt", ".png", ".csv")))
    source = rng.choice(sorted((seeds / "tables").glob(f"{what}.*")))
    path = folder / source.name
    if source.suffix == ".npy" and rng.random() < 0.6:
        buffer = io.BytesIO()
        np.save(buffer, _array(rng, np.load(source)), allow_pickle=False)
        path.write_bytes(buffer.getvalue())
    elif source.suffix == ".npy" and rng.random() < 0.3:
        huge = b"{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }" % (rng.choice((10**5, 10**9, 2**62)), 10**5)
        path.write_bytes(b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + huge.ljust(117) + b"\n" + b"\0" * 64)
    elif source.suffix in (".txt", ".csv") and rng.random() < 0.7:
        text = spoiled_text(source.read_text(), rng)
        path.write_bytes(text.encode(rng.choice(("utf-8", "utf-16")), errors="replace"))
    else:
        data = spoiled(source.read_bytes(), rng)
        path.write_bytes(mended_png(data))
    return str(path)


def _kernel(rng: Random, seeds: Path, folder: Path) -> list[str]:
    words = ("gaussian", "motion", "gaussian:", "motion:", "gaussian:motion", "random:0.5", "")
    numbers = (
        "0",
        "1",
        "-1",
        "1e-9",
        "1e9",
        "1e300",
        "nan",
        "inf",
        "1.5",
        "3",
        "17",
        "1e18",
        "99999999999999999999999",
        "x",
        "٣",
    )
    if rng.random() < 0.25:
        kernel = rng.choice((*words, *(f"{kind}:{number}" for kind in ("gaussian", "motion") for number in numbers)))
    else:
        kernel = _table(rng, seeds, folder, "kernel")
    picture = _good_picture(seeds, folder)
    task = rng.choice(("deblur", "deblur-motion") if "gaussian" not in kernel else ("deblur", "deblur-gaussian"))
    if rng.random() < 0.2:
        return ["degrade", picture, str(folder / rng.choice(("out.png", "out.npz"))), "--task", task, "--kernel", kernel]
    return ["restore", picture, _out(folder), "--task", task, "--kernel", kernel, "--sigma", "0.02", *_cheap(rng)]


def _mask(rng: Random, seeds: Path, folder: Path) -> list[str]:
    numbers = ("0", "1", "-1", "0.5", "2", "nan", "1e300", "x", "", "0.5:1", "0.5:-1", "0.5:x", "0.5:1e30", "0.5:1:2", "1e-9")
    mask = f"random:{rng.choice(numbers)}" if rng.random() < 0.2 else _table(rng, seeds, folder, "mask")
    picture = _good_picture(seeds, folder, rng.choice(("rgb.png", "rgb.png", "alpha.png", "grey.png")))
    if rng.random() < 0.2:
        return ["degrade", picture, str(folder / rng.choice(("out.png", "out.npz"))), "--task", "inpaint", "--mask", mask]
    sigma = ["--sigma", rng.choice(("0", "0.05"))] if rng.random() < 0.7 else []
    return ["restore", picture, _out(folder), "--task", "inpaint", "--mask", mask, *sigma, *_cheap(rng)]


def _container(rng: Random, seeds: Path, folder: Path) -> list[str]:
    source = rng.choice(sorted((seeds / "containers").iterdir()))
    path = folder / "in.npz"
    kind = rng.random()
    if kind < 0.25:
        path.write_bytes(spoiled(source.read_bytes(), rng))
    elif kind < 0.28:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("y.npy", b"\0" * 50_000_000)
    else:
        with np.load(source) as archive:
            arrays: dict[str, Any] = {name: archive[name] for name in archive.files}
        if rng.random() < 0.6:
            about = spoiled_json(json.loads(str(arrays["about"])), rng)
            arrays["about"] = np.array(json_text(about, rng).decode("utf-8", "replace"))
        if rng.random() < 0.5:
            name = rng.choice([*arrays, "option.kernel", "option.mask", "option.indices", "alpha", "icc", "option.x"])
            arrays[name] = _array(rng, arrays.get(name, np.ones((3, 3))) if name not in ("about", "format") else np.ones(2))
        if rng.random() < 0.2:
            del arrays[rng.choice(list(arrays))]
        np.savez_compressed(path, **arrays)
    given = special(rng, folder, ".npz") if rng.random() < 0.01 else str(path)
    sigma = ["--sigma", rng.choice(("0", "0.1", "5"))] if rng.random() < 0.3 else []
    return ["restore", given, _out(folder), *sigma, *_cheap(rng)]


def _prior(rng: Random, seeds: Path, folder: Path) -> list[str]:
    source = seeds / "priors"
    kind = rng.random()
    if kind < 0.5:
        prior = folder / "pipeline"
        shutil.copytree(source / "pipeline", prior)
        chosen = prior / rng.choice(("unet/config.json", "unet/config.json", "scheduler/scheduler_config.json"))
        chosen.write_bytes(json_text(spoiled_json(json.loads(chosen.read_text()), rng), rng))
        if rng.random() < 0.1:
            weights = next((prior / "unet").glob("*.safetensors"))
            weights.write_bytes(spoiled(weights.read_bytes(), rng))
        if rng.random() < 0.1:
            rng.choice(sorted(path for path in prior.rglob("*") if path.is_file())).unlink()
    else:
        suffix = rng.choice((".pt", ".safetensors"))
        prior = folder / f"net{suffix}"
        data = (source / prior.name).read_bytes()
        prior.write_bytes(spoiled(data, rng) if kind < 0.65 else data)
        side_car = json.loads((source / "net.json").read_text())
        more = {"predicts": "eps", "rescale_timesteps": False, "label": 0, "part": "x", "heads": 2}
        side_car |= {key: value for key, value in more.items() if rng.random() < 0.1}
        (folder / "net.json").write_bytes(json_text(spoiled_json(side_car, rng) if kind > 0.75 else side_car, rng))
        if kind > 0.85:
            head = (source / "head.variance.safetensors").read_bytes()
            (folder / f"{prior.name}.variance.safetensors").write_bytes(spoiled(head, rng))
    if rng.random() < 0.1:
        return ["priors", "inspect", str(prior)]
    picture = _good_picture(seeds, folder)
    plugin = rng.choice(("none", "leader"))
    run = ["--task", "denoise", "--sigma", "0.1", "--steps", "1"]
    return ["restore", picture, _out(folder), "--prior", str(prior), *run, "--plugin", plugin]


def _command(rng: Random, seeds: Path, folder: Path) -> list[str]:
    for name in ("rgb.png", "grey.png", "alpha.png"):
        _good_picture(seeds, folder, name)
    shutil.copy(seeds / "containers" / "cs.npz", folder)
    shutil.copy(seeds / "tables" / "kernel.npy", folder)
    shutil.copy(seeds / "tables" / "mask.png", folder)
    (folder / "set.toml").write_text(f"eta = {rng.choice(WORDS)}\n", errors="replace")
    return any_command(rng, folder)


SHARES: dict[str, tuple[int, Maker]] = {
    "pictures": (26, _picture),
    "settings": (14, _settings),
    "experiments": (9, _experiment),
    "kernels": (9, _kernel),
    "masks": (7, _mask),
    "containers": (11, _container),
    "priors": (6, _prior),
    "commands": (7, _command),
    "runs": (5, kept_run),
    "folders": (3, whole_folder),
    "referees": (3, referee),
}
"""Of a hundred cases, how many each reader gets."""
