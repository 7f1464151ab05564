"""Whether this machine is faster in half precision, or in integers of eight bits: a short timing, kept in the cache folder.

The answer affects bits, so it must not change between runs: it is measured once per processor and torch version.
"""

import json
import os
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.files import replacing
from leader.priors.int8 import Int8Conv, is_exact
from leader.priors.mixed import HALF, half_dtype

FAST = 0.75
"""Largest ratio of the time in other numbers to that in float32 at which they pay off."""
ROUNDS = 7


def cache_file() -> Path:
    """The file of the answers: under XDG_CACHE_HOME, or ~/.cache."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "leader" / "half-precision.json"


def has_fast(kind: str, device: torch.device) -> bool:
    """Whether convolutions on a device are faster in a precision of `leader.priors.mixed`, and right."""
    question = f"{_name_processor(device)}, torch {torch.__version__}" + ("" if kind == HALF else f", {kind}")
    return _ask(str(cache_file()), question, kind, str(device))


@lru_cache(maxsize=8)
def _ask(file: str, question: str, kind: str, device: str) -> bool:
    path, place = Path(file), torch.device(device)
    known = _read(path)
    if question not in known:
        known[question] = (kind == HALF or (place.type == "cpu" and is_exact())) and _time(place, kind) <= FAST
        _write(path, known)
    return known[question]


def _read(path: Path) -> dict[str, bool]:
    """The stored answers; none if the file is missing or broken."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and all(isinstance(value, bool) for value in found.values()) else {}


def _write(path: Path, known: dict[str, bool]) -> None:
    """Stores the answers; if that fails, each process measures again."""
    with suppress(OSError, LeaderError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def _name_processor(device: torch.device) -> str:
    """The processor: machines of several kinds may share a home folder."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    about = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    name = about.get("model name") or platform.processor() or platform.machine()
    extras = [flag for flag in about.get("flags", "").split() if "bf16" in flag]
    return " ".join([device.type, name, torch.backends.cpu.get_cpu_capability(), *extras])


@torch.no_grad()
def _time(device: torch.device, kind: str) -> float:
    """The time of a convolution in coarser numbers over that in float32, the fastest of several, alternating."""
    order = torch.channels_last
    image = torch.ones(1, 96, 48, 48, device=device).contiguous(memory_format=order)
    weight = torch.full((96, 96, 3, 3), 1e-3, device=device).contiguous(memory_format=order)
    calls: list[Callable[[], Tensor]] = [lambda: torch.nn.functional.conv2d(image, weight, padding=1)]
    if kind == HALF:
        half, light = (value.to(half_dtype(device)) for value in (image, weight))
        calls.append(lambda: torch.nn.functional.conv2d(half, light, padding=1))
    else:
        conv = Int8Conv(torch.ones_like(weight, dtype=torch.int8), torch.full((96,), 1e-3), torch.zeros(96), to_bytes=True)
        few = image.to(torch.uint8)
        calls.append(lambda: conv(few))
    seconds: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for taken, call in zip(seconds, calls):
            begin = time.perf_counter()
            call()[0, 0, 0, 0].item()  # waits for a GPU
            taken.append(time.perf_counter() - begin)
    full, coarse = (min(taken[1:]) for taken in seconds)  # the first one also fills caches
    return coarse / full
