"""Whether this machine is faster in half precision: a short timing, stored in the user's cache folder.

The answer affects bits, so it must not change between runs: it is measured once per processor and torch version.
"""

from __future__ import annotations

import json
import os
import platform
import time
from functools import lru_cache
from pathlib import Path

import torch

from leader.errors import LeaderError
from leader.files import replacing
from leader.priors.mixed import half_dtype

FAST = 0.75
"""Largest ratio of the time in half precision to that in float32 at which it pays off."""
ROUNDS = 7


def cache_file() -> Path:
    """The file of the answers: under XDG_CACHE_HOME, or ~/.cache."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "leader" / "half-precision.json"


def has_fast_half(device: torch.device) -> bool:
    """Whether convolutions on a device are faster in its half precision."""
    return _ask(str(cache_file()), f"{_name_processor(device)}, torch {torch.__version__}", str(device))


@lru_cache(maxsize=8)
def _ask(file: str, processor: str, device: str) -> bool:
    path = Path(file)
    known = _read(path)
    if processor not in known:
        known[processor] = _time(torch.device(device)) <= FAST
        _write(path, known)
    return known[processor]


def _read(path: Path) -> dict[str, bool]:
    """The stored answers; none if the file is missing or broken."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or not all(isinstance(value, bool) for value in found.values()):
        return {}
    return found


def _write(path: Path, known: dict[str, bool]) -> None:
    """Stores the answers; if that fails, each process measures again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    except (OSError, LeaderError):
        return


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
def _time(device: torch.device) -> float:
    """The time of a convolution in half precision over that in float32, the fastest of several, alternating."""
    kinds = (torch.float32, half_dtype(device))
    images = [torch.ones(1, 96, 48, 48, device=device, dtype=kind) for kind in kinds]
    weights = [torch.full((96, 96, 3, 3), 1e-3, device=device, dtype=kind) for kind in kinds]
    seconds: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for taken, image, weight in zip(seconds, images, weights):
            begin = time.perf_counter()
            answer = torch.nn.functional.conv2d(image, weight, padding=1)
            answer[0, 0, 0, 0].item()  # waits for a GPU
            taken.append(time.perf_counter() - begin)
    full, half = (min(taken[1:]) for taken in seconds)  # the first one also fills caches
    return half / full
