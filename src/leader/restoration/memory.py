"""Whether a restoration fits into this machine, judged before anything large is allocated."""

from __future__ import annotations

import os
from pathlib import Path

from leader.errors import LeaderError

BYTES_PER_PIXEL = 240
"""What a pixel of a colour picture takes at least while it is restored: the states of the loop and the smallest network
(measured with the embedded prior: 260 bytes a pixel at 12 million, more where the picture is not large enough for pieces)."""
BYTES_ALWAYS = 250 << 20
"""The libraries themselves."""
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_needed(shape: tuple[int, int, int]) -> int:
    """Bytes that restoring an image of shape (C, H, W) takes at the very least, this program included."""
    channels, height, width = shape
    return BYTES_ALWAYS + height * width * BYTES_PER_PIXEL * (2 + channels) // 5  # a grey one needs three fifths


def memory_here() -> int | None:
    """Bytes of memory that this machine, or the container this program runs in, has; None where it does not tell."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not every system has sysconf or these names
        return None
    for file in _LIMITS:
        try:
            text = Path(file).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            found = min(found, int(text))
    return found if found > 0 else None


def check_memory(shape: tuple[int, int, int]) -> None:
    """Refuses an image of shape (C, H, W) that cannot be restored in the memory there is."""
    needed, there = memory_needed(shape), memory_here()
    if there is not None and needed > there:
        raise LeaderError(
            f"Restoring {shape[2]} x {shape[1]} pixels takes at least {needed / 2**30:.1f} GB of memory; this machine has "
            f"{there / 2**30:.1f} GB, so crop the picture or restore it in parts."
        )
