"""A case: its number gives a generator, the generator a few spoiled files and a command line that reads them."""

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

from tools.fuzz.commands import MAPS, NUMBERS, any_command
from tools.fuzz.damage import VALUES, WORDS, mended_png, spoiled, spoiled_json, spoiled_structure, spoiled_text

ROOT = Path(__file__).resolve().parents[2]
RUN = ["--task", "denoise", "--sigma", "0.1", "--steps", "1"]


@dataclass(frozen=True)
class Case:
    """What to run: arguments of `leader`, in a folder that holds the files they name."""

    number: int
    reader: str
    arguments: list[str]


def make_case(seed: int, number: int, seeds: Path, folder: Path) -> Case:
    """Case `number` of a seed: writes its files into `folder`."""
    reader, rng = _draw_reader(seed, number)
    return Case(number, reader, SHARES[reader][1](rng, seeds, folder))


def reader_of(seed: int, number: int) -> str:
    """The reader a case is for, without making it."""
    return _draw_reader(seed, number)[0]


def _draw_reader(seed: int, number: int) -> tuple[str, Random]:
    rng = Random(f"{seed}/{number}")
    return rng.choices(list(SHARES), [share for share, _ in SHARES.values()])[0], rng


def _good_picture(seeds: Path, folder: Path, name: str = "rgb.png") -> str:
    return str(shutil.copy(seeds / "pictures" / name, folder))


def _out(folder: Path, *others: str, rng: Random | None = None) -> str:
    return str(folder / (rng.choice(("out.png", *others)) if rng else "out.png"))


def _odd(rng: Random, given: Path, chance: float = 0.01) -> str:
    """A path that is no ordinary file, now and then; else the one given."""
    if rng.random() > chance:
        return str(given)
    path = given.with_name(f"odd{given.suffix}")
    kind = rng.randrange(8)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.mkdir()
    elif kind < 4:
        path.symlink_to(path if kind == 2 else "/dev/zero")
    elif kind > 4:
        return str(given.with_name(("n" * 300, "a\0b", "\udcff")[kind - 5] + given.suffix))
    return str(path)


def _cheap(rng: Random) -> list[str]:
    return ["--steps", "1", *rng.choice(([], ["--plugin", "none"], ["--method", "ddpg"]))]


def _picture(rng: Random, seeds: Path, folder: Path) -> list[str]:
    sources = sorted((seeds / "pictures").iterdir())
    source = rng.choice(sources)
    path = folder / f"in{source.suffix if rng.random() < 0.9 else rng.choice(('.png', '.jpg', '.tif', '.eps', ''))}"
    data = source.read_bytes()
    if rng.random() < 0.5:
        data = spoiled_structure(data, rng)
    else:
        data = mended_png(spoiled(data, rng, rng.choice(sources).read_bytes()))
    path.write_bytes(data)
    given, kind = _odd(rng, path, 0.004), rng.random()
    if kind < 0.05:
        head = ["--out", str(folder / "head.safetensors")]
        return [
            "fit-variance",
            "--prior",
            str(seeds / "priors/pipeline"),
            "--images",
            str(folder),
            "--minutes",
            "0.0001",
            *head,
        ]
    if kind < 0.11:
        return ["diagnose", given, *(["--json"] if rng.random() < 0.3 else [])]
    if kind < 0.2:
        return ["degrade", given, _out(folder), "--task", rng.choice(("sr", "denoise", "colourise")), "--sigma", "0.02"]
    task = rng.choice(("denoise", "denoise", "sr", "colourise", "inpaint", "jpeg", "deblur"))
    sigma = ["--sigma", "0.1"] if rng.random() < 0.5 and task != "jpeg" else []
    more = {"sr": ["--factor", "2"], "deblur": ["--kernel", "auto"], "inpaint": rng.choice(([], ["--mask", "auto"]))}
    return ["restore", given, _out(folder), "--task", task, *sigma, *more.get(task, []), *_cheap(rng)]


def _settings(rng: Random, seeds: Path, folder: Path) -> list[str]:
    from leader.methods import METHODS

    method = rng.choice(sorted(METHODS))
    own = [item.name for item in fields(METHODS[method])]  # type: ignore[arg-type]
    known = [*own, "grid", "estimator", "probes", "trust_time", "use_presets", "steps", "satp", "ucpm", "x", ""]
    content: dict[str, Any] = {rng.choice(known): rng.choice(VALUES) for _ in range(rng.randrange(4))}
    for table in ("satp", "ucpm", "equs", "equs+"):
        if rng.random() < 0.2:
            names = ("budget", "eta", "rho", "lam", "phi", "solve", "map", "sharpen", "width", "x")
            content[table] = {rng.choice(names): rng.choice(VALUES) for _ in range(rng.randrange(1, 3))}
    path = folder / rng.choice(("set.toml", "set.json"))
    if path.suffix == ".json":
        path.write_bytes(spoiled_json(content, rng))
    else:
        lines = "".join(f"{json.dumps(key)} = {_toml_value(value)}\n" for key, value in content.items())
        damaged = spoiled_text(lines, rng) if rng.random() < 0.3 else lines
        text = damaged.encode(errors="replace")
        odd = (
            spoiled(text, rng),
            damaged.encode("utf-16", "replace"),
            b"a = " + b"[" * 100_000,
            b"\xef\xbb\xbf" + text + b"\xff",
        )
        path.write_bytes(rng.choice((*odd, *[text] * 12)))
    plugin = ["--plugin", rng.choice(("leader", "satp", "ucpm", "equs", "equs+", "none"))] if rng.random() < 0.7 else []
    task = rng.choice((["--task", "denoise"], ["--task", "sr", "--factor", "2"]))
    chosen = ["--settings", _odd(rng, path), "--method", method, "--steps", "2", *plugin]
    return ["restore", _good_picture(seeds, folder), _out(folder), *chosen, *task, "--sigma", rng.choice(("0", "0.05"))]


def _toml_value(value: Any) -> str:
    """A value in TOML, as far as it can be."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml_value(item) for item in value) + "]"
    return repr(value) if isinstance(value, float) else '"none"' if value is None else json.dumps(value)


def _experiment(rng: Random, seeds: Path, folder: Path) -> list[str]:
    path = folder / "trial.toml"
    text = rng.choice(sorted((ROOT / "experiments").glob("*.toml"))).read_text(encoding="utf-8")
    tasks = (ROOT / "src/leader/bench/tasks.toml").read_text(encoding="utf-8")
    text = text.replace("count = 16", "count = 1").replace("size = 128", "size = 32")
    if rng.random() < 0.25:
        tasks = spoiled_text(tasks, rng)
    else:
        text = spoiled_text(text, rng)
    data = text.encode(errors="replace")
    path.write_bytes(spoiled(data, rng) if rng.random() < 0.1 else data)
    (folder / "tasks.toml").write_bytes(tasks.encode(errors="replace"))
    given, records, kind = _odd(rng, path), ["--records", str(folder / "records")], rng.random()
    if kind < 0.75:
        return ["bench", "run", given, "--dry-run", *records]
    if kind < 0.9:
        return ["bench", "table", given, "--partial", *records, "--format", rng.choice(("md", "csv", "latex", "html", "x"))]
    return ["bench", rng.choice(("figure", "compare")), given, *records, *(["DDNM"] if rng.random() < 0.5 else [])]


SHAPES = ((), (0,), (1,), (3,), (0, 3), (1, 1), (2, 3), (1, 200), (12, 20), (20, 12), (3, 12, 20), (12, 20, 4), (2, 2, 2, 2))


def _array(rng: Random, good: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Something like the table `good`, of another shape, type or content."""
    kind, shape = rng.randrange(10), rng.choice(SHAPES)
    if kind == 0:
        return np.full(shape, rng.choice((0.0, 1.0, -1.0, 1e308, 1e-320, float("nan"), float("inf"))))
    if kind == 1:
        return np.ones(shape, rng.choice(("f2", "f4", ">f8", "i8", "u1", "?", "c16", "U3", "S2", "M8[s]")))
    if kind == 2:
        return np.ones(shape, dtype=[("a", "f8"), ("b", "i4")])
    if kind == 3:
        return np.array(rng.choice(([[]], [[1, 2], [3, 4]], [[1e300, -1e300]])))
    spoilt = np.array(good, dtype=np.float64)
    spoilt.flat[rng.randrange(spoilt.size)] = rng.choice((0.0, -5.0, 1e308, float("nan"), float("-inf"), 2**40))
    return spoilt


def _table(rng: Random, seeds: Path, folder: Path, what: str) -> str:
    """A kernel or a mask in a file of some kind."""
    source = rng.choice(sorted((seeds / "tables").glob(f"{what}.*")))
    path, data, kind = folder / source.name, source.read_bytes(), rng.random()
    if source.suffix == ".npy" and kind < 0.6:
        buffer = io.BytesIO()
        np.save(buffer, _array(rng, np.load(source)), allow_pickle=False)
        data = buffer.getvalue()
    elif source.suffix == ".npy" and kind < 0.75:
        huge = b"{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }" % (rng.choice((10**5, 10**9, 2**62)), 10**5)
        data = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + huge.ljust(117) + b"\n" + b"\0" * 64
    elif source.suffix in (".txt", ".csv") and kind < 0.7:
        data = spoiled_text(source.read_text(), rng).encode(rng.choice(("utf-8", "utf-16")), errors="replace")
    else:
        data = mended_png(spoiled(data, rng))
    path.write_bytes(data)
    return _odd(rng, path)


MASK_NUMBERS = (*NUMBERS, "0.5", "2", "0.5:1", "0.5:-1", "0.5:x", "0.5:1e30", "0.5:1:2", "1e-9")


def _kernel(rng: Random, seeds: Path, folder: Path) -> list[str]:
    drawn = f"{rng.choice(('gaussian', 'motion'))}:{rng.choice(NUMBERS)}"
    said = rng.choice((drawn, drawn, "gaussian", "motion", "gaussian:", "gaussian:motion", "random:0.5", ""))
    kernel = said if rng.random() < 0.25 else _table(rng, seeds, folder, "kernel")
    task = rng.choice(("deblur", "deblur-motion") if "gaussian" not in kernel else ("deblur", "deblur-gaussian"))
    return _with_table(rng, seeds, folder, ["--task", task, "--kernel", kernel], ["--sigma", "0.02"])


def _mask(rng: Random, seeds: Path, folder: Path) -> list[str]:
    mask = f"random:{rng.choice(MASK_NUMBERS)}" if rng.random() < 0.2 else _table(rng, seeds, folder, "mask")
    sigma = ["--sigma", rng.choice(("0", "0.05"))] if rng.random() < 0.7 else []
    return _with_table(rng, seeds, folder, ["--task", "inpaint", "--mask", mask], sigma)


def _with_table(rng: Random, seeds: Path, folder: Path, task: list[str], sigma: list[str]) -> list[str]:
    picture = _good_picture(seeds, folder, rng.choice(("rgb.png", "rgb.png", "alpha.png", "grey.png")))
    if rng.random() < 0.2:
        return ["degrade", picture, _out(folder, "out.npz", rng=rng), *task]
    return ["restore", picture, _out(folder), *task, *sigma, *_cheap(rng)]


def _container(rng: Random, seeds: Path, folder: Path) -> list[str]:
    source, path, kind = rng.choice(sorted((seeds / "containers").iterdir())), folder / "in.npz", rng.random()
    if kind < 0.25:
        path.write_bytes(spoiled(source.read_bytes(), rng))
    elif kind < 0.28:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("y.npy", b"\0" * 50_000_000)
    else:
        with np.load(source) as opened:
            arrays: dict[str, Any] = {name: opened[name] for name in opened.files}
        if rng.random() < 0.6:
            arrays["about"] = np.array(spoiled_json(json.loads(str(arrays["about"])), rng).decode("utf-8", "replace"))
        if rng.random() < 0.5:
            name = rng.choice([*arrays, "option.kernel", "option.mask", "option.indices", "alpha", "icc", "option.x"])
            arrays[name] = _array(rng, arrays.get(name, np.ones((3, 3))) if name not in ("about", "format") else np.ones(2))
        if rng.random() < 0.2:
            del arrays[rng.choice(list(arrays))]
        np.savez_compressed(path, **arrays)
    sigma = ["--sigma", rng.choice(("0", "0.1", "5"))] if rng.random() < 0.3 else []
    return ["restore", _odd(rng, path), _out(folder), *sigma, *_cheap(rng)]


def _prior(rng: Random, seeds: Path, folder: Path) -> list[str]:
    source, kind = seeds / "priors", rng.random()
    if kind < 0.5:
        prior = folder / "pipeline"
        shutil.copytree(source / "pipeline", prior)
        chosen = prior / rng.choice(("unet/config.json", "unet/config.json", "scheduler/scheduler_config.json"))
        chosen.write_bytes(spoiled_json(json.loads(chosen.read_text()), rng))
        if rng.random() < 0.1:
            weights = next((prior / "unet").glob("*.safetensors"))
            weights.write_bytes(spoiled(weights.read_bytes(), rng))
        if rng.random() < 0.1:
            rng.choice(sorted(path for path in prior.rglob("*") if path.is_file())).unlink()
    else:
        prior = folder / f"net{rng.choice(('.pt', '.safetensors'))}"
        data = (source / prior.name).read_bytes()
        prior.write_bytes(spoiled(data, rng) if kind < 0.65 else data)
        side_car = json.loads((source / "net.json").read_text())
        more = {"predicts": "eps", "rescale_timesteps": False, "label": 0, "part": "x", "heads": 2}
        side_car |= {key: value for key, value in more.items() if rng.random() < 0.1}
        (folder / "net.json").write_bytes(spoiled_json(side_car, rng) if kind > 0.75 else json.dumps(side_car).encode())
        if kind > 0.85:
            head = (source / "head.variance.safetensors").read_bytes()
            (folder / f"{prior.name}.variance.safetensors").write_bytes(spoiled(head, rng))
    if rng.random() < 0.1:
        return ["priors", "inspect", str(prior)]
    chosen_prior = ["--prior", str(prior), "--plugin", rng.choice(("none", "leader"))]
    return ["restore", _good_picture(seeds, folder), _out(folder), *chosen_prior, *RUN]


def _command(rng: Random, seeds: Path, folder: Path) -> list[str]:
    for name in ("pictures/rgb.png", "pictures/grey.png", "pictures/alpha.png", "containers/cs.npz", "tables/kernel.npy"):
        shutil.copy(seeds / name, folder)
    shutil.copy(seeds / "tables" / "mask.png", folder)
    (folder / "set.toml").write_text(f"eta = {rng.choice(WORDS)}\n", errors="replace")
    return any_command(rng, folder)


def _kept_run(rng: Random, seeds: Path, folder: Path) -> list[str]:
    """`--settings` with a run that --json kept, changed since."""
    content = json.loads(rng.choice(sorted((seeds / "runs").iterdir())).read_text())
    path = folder / rng.choice(("run.json", "run.json", "run.toml", "run"))
    path.write_bytes(spoiled_json(content, rng))
    extra = rng.choice(([], [], [], ["--force"], ["--sigma", "0.1"], ["--no-check"], ["--map", str(folder / "map.npy")]))
    return ["restore", _good_picture(seeds, folder), _out(folder), "--settings", str(path), *extra]


def _whole_folder(rng: Random, seeds: Path, folder: Path) -> list[str]:
    """A folder of good and bad pictures into one that has a manifest of strange lines already."""
    source, out = folder / "in", folder / "out"
    source.mkdir()
    for number in range(rng.randrange(4)):
        picture = rng.choice(sorted((seeds / "pictures").iterdir()))
        data = picture.read_bytes()
        place = source / rng.choice((f"{number}{picture.suffix}", f"{number} é.png", f"deep/{number}.png", "a.png.png"))
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(spoiled(data, rng) if rng.random() < 0.5 else data)
    if rng.random() < 0.7:
        manifest = out / rng.choice(("", ".leader")) / "leader-manifest.jsonl"
        manifest.parent.mkdir(parents=True)
        manifest.write_bytes(b"".join(_manifest_line(rng) for _ in range(rng.randrange(5))))
    words = ["--jobs", "0", "--sigma", "0.1", "--steps", "1", "--task", rng.choice(("denoise", "denoise", "sr", "inpaint"))]
    for option, values in (("--maps", ("png", "npy", "x", "")), ("--method", ("ddnm", "ddpg"))):
        words += [option, rng.choice(values)] if rng.random() < 0.3 else []
    words += [flag for flag in ("--report", "--force", "--keep-failed", "--no-check") if rng.random() < 0.2]
    return ["restore", str(source), str(out), *words]


def _manifest_line(rng: Random) -> bytes:
    """A line of a manifest, more or less."""
    content: dict[str, Any] = {"content": "0" * 64, "settings": "1" * 64, "stamp": rng.choice(("1", None)), "files": {}}
    content["files"]["picture"] = {
        "name": "0.png",
        "sha256": "0" * 64,
        "bytes": rng.choice((1, 2.5, float("inf"), "7", 10**30)),
    }
    content["leader"] = "folder 1" if rng.random() < 0.7 else rng.choice(VALUES)
    content["name"] = rng.choice(("0.png", "../0.png", "", "x" * 5000, 3))
    content["status"] = rng.choice(("done", "refused", "failed", "x"))
    text = spoiled_json(content, rng) if rng.random() < 0.5 else json.dumps(content).encode()
    return text + (b"\n" if rng.random() < 0.9 else b"")


def _referee(rng: Random, seeds: Path, folder: Path) -> list[str]:
    """A checkpoint with a referee and factors beside it, one of them spoiled; or the commands that make them."""
    for name in ("priors/net.safetensors", "priors/net.json", "trust/net.referee", "trust/net.referee.json"):
        shutil.copy(seeds / name, folder)
    judge, factors = folder / "net.referee", folder / "net.referee.json"
    if rng.random() < 0.4:
        judge.write_bytes(spoiled(judge.read_bytes(), rng))
    else:
        factors.write_bytes(spoiled_json(json.loads(factors.read_text()), rng))
    prior, picture = ["--prior", str(folder / "net.safetensors")], _good_picture(seeds, folder)
    if rng.random() < 0.15:
        minutes = ["--minutes", rng.choice(("0", "-1", "nan", "x"))]
        return [rng.choice(("calibrate", "fit-trust")), "--images", str(folder), *prior, *minutes]
    chosen = [word for name in rng.sample(MAPS, rng.randrange(1, 3)) for word in ("--map", str(folder / name))]
    return ["restore", picture, _out(folder), *prior, *RUN, "--plugin", rng.choice(("none", "leader")), *chosen]


SHARES: dict[str, tuple[int, Callable[[Random, Path, Path], list[str]]]] = {
    "pictures": (26, _picture),
    "settings": (14, _settings),
    "experiments": (9, _experiment),
    "kernels": (9, _kernel),
    "masks": (7, _mask),
    "containers": (11, _container),
    "priors": (6, _prior),
    "commands": (7, _command),
    "runs": (5, _kept_run),
    "folders": (3, _whole_folder),
    "referees": (3, _referee),
}
"""Of a hundred cases, how many each reader gets, and what makes them."""
