"""Records a run so that it can be repeated: every resolved option and every table; and a short form inside its picture.

`describe_run` makes the JSON of a run, `arguments_of` converts it back to arguments of `prepare`: the same picture gives the
same bytes again, even if kernel files are gone or presets have changed.
"""

import base64
import binascii
import json
import platform
import re
import zlib
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import leader
from leader.errors import LeaderError
from leader.files import printable, sha256_of
from leader.forensics.noise.light import LightNoise
from leader.forensics.noise.shot import ShotNoise
from leader.forensics.noise.spectrum import NoiseSpectrum
from leader.pictures import MOST_PIXELS
from leader.pictures.metadata import OURS, Stamp
from leader.priors.base import Prior
from leader.priors.catalogue import ENTRIES
from leader.restoration.arguments import Exactly, ImageLike, as_sigma
from leader.restoration.pose import PosedProblem
from leader.restoration.whitening import Coloured
from leader.result import Result
from leader.schedule import Grid

FORMAT = "run 1"
CHEAP = 1 << 30
"""Bytes of weights up to which they are hashed: about a second."""
DTYPES = ("float32", "float64")
_FIELDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("settings", "settings.method", "options", "prior"), (dict,)),
    **dict.fromkeys(("task", "device", "settings.method.name"), (str,)),
    **dict.fromkeys(("settings.seed", "settings.threads", "settings.steps", "settings.probes", "settings.trust_time"), (int,)),
    **dict.fromkeys(("settings.ids", "settings.plugins", "settings.grid"), (list,)),
    "sigma": (int, float),
    "uniform_grid": (bool,),
}
"""What a run that is repeated must hold, and of which type."""
_WORD = re.compile(r"[a-z][a-z0-9-]{0,30}|[a-z-]{1,30}:\d\d?(\+[a-z-]{1,30}:\d\d?){1,5}")
"""Options that are words, such as "bicubic", or "box:30+lanczos:70"; whatever could be the name of a file is left out."""


@dataclass(frozen=True)
class Origin:
    """Where a run's picture and prior came from.

    image         the name of the file that was given, or None; `image_sha256` that of its bytes
    prior         the name or the absolute path of the prior, or None for an object; `prior_sha256` that of its weights
    device        where it ran
    dtype         of the network, None for a prior given as an object; a mixture is float32 below the times `rounded_from`
    uniform_grid  whether pruning counts in steps of the grid
    """

    image: str | None
    image_sha256: str | None
    prior: str | None
    prior_sha256: str | None
    device: str
    dtype: str | None
    rounded_from: dict[str, int]
    uniform_grid: bool


def identify_image(image: ImageLike) -> tuple[str | None, str | None]:
    """Name and SHA-256 of a picture's file; None for both if it is no file."""
    file = Path(image) if isinstance(image, (str, Path)) else None
    return (None, None) if file is None else (printable(file.name), sha256_of(file))


def identify_prior(prior: str | Path | Prior) -> tuple[str | None, str | None]:
    """Name or absolute path of a prior, and the SHA-256 of its weights; None for an object."""
    if isinstance(prior, Prior):
        return None, None
    path = Path(prior).expanduser()
    source = str(path.resolve() if path.exists() else prior)
    return source, weights_hash(source)


def weights_hash(prior: str) -> str | None:
    """SHA-256 of the weights of a prior by name or path, if they are one file that is quick to read."""
    if prior == "embedded":
        with resources.as_file(resources.files("leader.priors") / "weights" / "pyramid.safetensors") as file:
            return sha256_of(file)
    path = ENTRIES[prior].path if prior in ENTRIES else Path(prior)
    return sha256_of(path) if path.is_file() and path.stat().st_size <= CHEAP else None


def describe_run(posed: PosedProblem, result: Result, origin: Origin) -> dict[str, Any]:
    """The run as JSON values: every option as it was resolved, tables included."""
    return {
        "leader": FORMAT,
        "task": posed.task,
        "operator": posed.problem.operator.task,
        "options": {name: _pack_table(value) if isinstance(value, Tensor) else value for name, value in posed.options.items()},
        "sigma": posed.sigma,
        "sigma_from": posed.sigma_from,
        "noise_spectrum": posed.noise.table.tolist() if isinstance(posed.noise, NoiseSpectrum) else None,
        "shot_noise": list(astuple(posed.noise)) if isinstance(posed.noise, ShotNoise) else None,
        "grain": posed.grain,
        "clipped": 0 if posed.problem.censored is None else posed.problem.censored.count,
        "seed": result.seed,
        "settings": result.settings,
        "uniform_grid": origin.uniform_grid,
        "prior": {"source": origin.prior, "sha256": origin.prior_sha256},
        "device": origin.device,
        "dtype": origin.dtype,
        "rounded_from": origin.rounded_from,
        "input": {"name": origin.image, "sha256": origin.image_sha256},
        "versions": _versions(),
        "notes": list(posed.notes),
    }


def _versions() -> dict[str, str]:
    found = {name: str(import_module(name).__version__) for name in ("leader", "torch", "numpy", "PIL")}
    return {**found, "python": platform.python_version(), "machine": platform.machine()}


def _pack_table(table: Tensor) -> dict[str, Any]:
    array = table.detach().cpu().contiguous().numpy()
    return {
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "zlib": base64.b64encode(zlib.compress(array.tobytes(), 9)).decode("ascii"),
    }


def _unpack_table(name: str, packed: Mapping[str, Any]) -> Exactly:
    for field, kind in (("shape", list), ("dtype", str), ("zlib", str)):
        _check_field({name: packed}, f"{name}.{field}", (kind,))
    shape, dtype, text = packed["shape"], packed["dtype"], packed["zlib"]
    if dtype not in DTYPES or len(shape) != 2 or not all(type(n) is int and n > 0 for n in shape):
        raise _malformed(f"options.{name}", f"a table of {' or '.join(DTYPES)}", f"{shape} {dtype}")
    count = shape[0] * shape[1]
    size = count * np.dtype(dtype).itemsize
    if count > MOST_PIXELS:
        raise _malformed(f"options.{name}", f"at most {MOST_PIXELS} numbers", count)
    try:
        data = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), size + 1)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise _malformed(f"options.{name}", "a table, compressed", error) from error
    if len(data) != size:
        raise _malformed(f"options.{name}", f"{size} bytes", len(data))
    return Exactly(torch.from_numpy(np.frombuffer(data, dtype=dtype).reshape(shape).copy()))


def arguments_of(summary: Mapping[str, Any], prior: Prior | None = None) -> dict[str, Any]:
    """The arguments of `prepare` that repeat a run, from its `Restoration.summary()`.

    prior  that of the run, if it was given as an object

    All resolved choices are given explicitly and presets are off, so that later versions of presets do not matter.
    """
    if not isinstance(summary, Mapping) or summary.get("leader") != FORMAT:
        raise LeaderError(f"This is no run that can be repeated; expected the summary of a restoration, '{FORMAT}'.")
    for path, kinds in _FIELDS.items():
        _check_field(summary, path, kinds)
    settings = summary["settings"]
    arguments = {
        "sigma": _sigma_of(summary),
        "clipped": bool(summary.get("clipped", 0)),
        **({"grain": summary["grain"]} if summary.get("grain") else {}),
        "ids": tuple(settings["ids"]),
        "average": max(1, len(settings["ids"])),
        **{name: summary[name] for name in ("task", "device")},
        **{name: settings[name] for name in ("seed", "threads", "steps")},
        **_method_and_plugins(settings, summary["uniform_grid"]),
        **_prior_of(summary, prior),
    }
    for name, value in summary["options"].items():
        if name in arguments:
            raise _malformed("options", "options of the task", name)
        arguments[name] = _unpack_table(name, value) if isinstance(value, Mapping) else value
    return arguments


def _sigma_of(summary: Mapping[str, Any]) -> float | Coloured:
    """The noise level, with the picture's noise if the measurement was whitened."""
    sigma = as_sigma(summary["sigma"])
    table, line = summary.get("noise_spectrum"), summary.get("shot_noise")
    try:
        if line is not None:
            return Coloured(sigma, ShotNoise(*line) if len(line) == 3 else LightNoise(*line))
        return sigma if table is None else Coloured(sigma, NoiseSpectrum(np.array(table, dtype=np.float64)))
    except (TypeError, ValueError, OverflowError, LeaderError) as error:
        raise _malformed("noise_spectrum or shot_noise", "that of a kept run", error) from error


def _method_and_plugins(settings: Mapping[str, Any], uniform: bool) -> dict[str, Any]:
    method, plugins, times = settings["method"], settings["plugins"], settings["grid"]
    if not all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in plugins):
        raise _malformed("settings.plugins", "tables with a name", plugins)
    if not times or not all(type(time) is int for time in times):
        raise _malformed("settings.grid", "a list of integers", times)
    own, *others = ({key: value for key, value in item.items() if key != "name"} for item in (method, *plugins))
    names = tuple(item["name"] for item in plugins)
    of_plugins = dict(zip(names, others))
    rest = {
        "grid": Grid(tuple(times), uniform, _read_row(settings, "grid_clock"), _read_row(settings, "grid_labels")),
        "estimator": settings.get("estimator"),
        "probes": settings["probes"],
        "trust_time": settings["trust_time"],
        "use_presets": False,
    }
    twice = set(own) & (set(of_plugins) | set(rest))
    if twice:
        raise _malformed("settings.method", "settings of the method", ", ".join(sorted(twice)))
    return {"method": method["name"], "plugins": names, "settings": {**own, **of_plugins, **rest}}


def _read_row(settings: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """The row of the one image of a table of whole numbers; empty where the run needed none."""
    rows = settings.get(name, [[]])
    one = rows[0] if isinstance(rows, list) and rows and all(other == rows[0] for other in rows) else None
    if not isinstance(one, list) or not all(type(number) is int for number in one):
        raise _malformed(f"settings.{name}", "a list of integers for one image", rows)
    return tuple(one)


def _prior_of(summary: Mapping[str, Any], prior: Prior | None) -> dict[str, Any]:
    """Prior and dtype; weights other than those of the run are rejected."""
    source, digest = summary["prior"].get("source"), summary["prior"].get("sha256")
    if prior is not None:
        return {"prior": prior}
    if not isinstance(source, str):
        raise LeaderError("This run used a prior that was given as an object; pass the same one again as `prior`.")
    _check_field(summary, "dtype", (str,))
    found = weights_hash(source) if digest is not None else None
    if found is not None and found != digest:
        raise LeaderError(f"The weights of the prior '{printable(source)}' are not those of the run; use the original ones.")
    return {"prior": source, "dtype": summary["dtype"]}


def _check_field(table: Mapping[str, Any], path: str, kinds: tuple[type, ...]) -> None:
    value: Any = table
    for name in path.split("."):
        value = value.get(name)
    if not isinstance(value, kinds):
        raise _malformed(path, " or ".join(kind.__name__ for kind in kinds), "nothing" if value is None else value)


def _malformed(name: str, expected: str, found: object) -> LeaderError:
    text = str(found)
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    return LeaderError(f"The run cannot be repeated: its '{printable(name)}' must be {expected}; found {printable(shown)}.")


def write_stamp(posed: PosedProblem, result: Result, origin: Origin) -> Stamp:
    """The note that a restored picture carries: program, task, method and seed, and that parts are invented.

    It is the same for the same run, wherever and whenever that happens: it holds no times and no names of files.
    """
    program = f"leader {leader.__version__}"
    method = str(result.settings["method"]["name"])
    record: dict[str, Any] = {
        "program": program,
        "task": posed.task,
        "options": {name: value for name, value in sorted(posed.options.items()) if _is_plain(value)},
        "sigma": float(f"{posed.sigma:.6g}"),
        "method": method,
        "plugins": [str(item["name"]) for item in result.settings["plugins"]],
        "steps": result.settings["steps"],
        "seed": result.seed,
        "prior": origin.prior if origin.prior == "embedded" or origin.prior in ENTRIES else "other",
        "weights": None if origin.prior_sha256 is None else origin.prior_sha256[:16],
        "invented": True,
        **({"grain": float(f"{posed.grain:.6g}")} if posed.grain > 0 else {}),
    }
    sentence = f"{OURS} {leader.__version__}: task {posed.task}, method {method}, seed {result.seed}; parts are invented."
    return Stamp(program, sentence, json.dumps(record, separators=(",", ":"), default=str))


def _is_plain(value: object) -> bool:
    return isinstance(value, (int, float)) or (isinstance(value, str) and _WORD.fullmatch(value) is not None)
