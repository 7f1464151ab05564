"""Presets of one prior, stored beside its weights: what a calibration found for it, in the format of the package's own.

They hold for that prior alone, so their entries name none, and they win over every entry of the package.
"""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from leader.errors import LeaderError
from leader.files import replacing
from leader.toml import read_table

SUFFIX = ".presets.toml"
KEYS = ("method", "task", "noise", "settings", "source")
Entry = dict[str, Any]


def stored_file(home: Path) -> Path:
    """Where the presets of the prior whose weights are at `home` (a file or a folder) are stored, whether or not they are."""
    return home / f"prior{SUFFIX}" if home.is_dir() else home.with_name(home.name + SUFFIX)


def read_stored(home: Path | None) -> tuple[Entry, ...]:
    """The entries stored beside a prior; none where there is no file."""
    file = None if home is None else stored_file(home)
    if file is None or not file.is_file():
        return ()
    state = file.stat()
    return _read(file, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=16)
def _read(file: Path, changed: int, size: int) -> tuple[Entry, ...]:
    """Read once while the file stays as it is: every plan asks."""
    found = read_table(file, "presets", "correct it or delete it").get("preset", [])
    for entry in found if isinstance(found, list) else [None]:
        known = isinstance(entry, dict) and entry.keys() <= set(KEYS) and isinstance(entry.get("settings"), dict)
        plain = (entry.get(key, "") for key in ("method", "task", "noise")) if isinstance(entry, dict) else ()
        if not known or not all(isinstance(value, (str, float, int)) for value in plain):
            raise LeaderError(f"{file} must hold [[preset]] entries with settings and, of {', '.join(KEYS)}, no other keys.")
    return tuple(found)


def add_stored(home: Path, entries: Iterable[Mapping[str, Any]]) -> Path:
    """Stores entries beside a prior; each takes the place of one for the same method, task and noise with the same source."""
    same = ("method", "task", "noise", "source")
    kept = {tuple(entry.get(key, "any") for key in same): entry for entry in (*read_stored(home), *entries)}
    file = stored_file(home)
    with replacing(file, durable=True) as temporary:
        temporary.write_text("\n".join(map(format_entry, kept.values())), encoding="utf-8")
    return file


def format_entry(entry: Mapping[str, Any]) -> str:
    """A [[preset]] entry as TOML."""
    return "[[preset]]\n" + "".join(f"{key} = {_format_value(value)}\n" for key, value in entry.items())


def _format_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_format_value(item)}" for key, item in value.items()) + " }" if value else "{}"
    return json.dumps(value)
