"""How much memory this process uses, in MB of 2^20 bytes."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from leader.errors import LeaderError

STATUS = Path("/proc/self/status")


def memory_now(device: str = "cpu") -> float:
    """Resident memory, or on a GPU what torch has allocated there."""
    if device.startswith("cuda"):
        return torch.cuda.memory_allocated() / 2**20
    return _resident("VmRSS")


def memory_peak(device: str = "cpu") -> float:
    """The largest it ever was in this process."""
    if device.startswith("cuda"):
        return torch.cuda.max_memory_allocated() / 2**20
    return _resident("VmHWM")


def _resident(line: str) -> float:
    """A line of the kernel's report, which counts in kB of 2^10 bytes.

    Its ru_maxrss, used where there is no report, survives exec and so contains the parent's size.
    """
    if STATUS.is_file():
        for text in STATUS.read_text().splitlines():
            if text.startswith(f"{line}:"):
                return int(text.split()[1]) / 2**10
    if sys.platform == "win32":
        raise LeaderError("Peak memory is measured on Linux and macOS only; leave 'memory' out.")
    import resource

    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
