"""What identifies a prior: the SHA-256 of its files. Names and paths may change, the bytes may not."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from leader.errors import LeaderError
from leader.files import sha256_once
from leader.priors import catalogue, diffusers_folder
from leader.priors.loading import EMBEDDED, find_head

ABSENT = "absent"
DIGITS = 16


def fingerprint(name_or_path: str | Path) -> str:
    """The first 16 digits of the SHA-256 of each of the prior's files, joined by "+"; "absent" where there are none here."""
    return "+".join(sha256_once(path)[:DIGITS] for path in list_files(name_or_path)) or ABSENT


def list_files(name_or_path: str | Path) -> tuple[Path, ...]:
    """The files that decide what a prior answers: weights, settings beside them, variance head; empty where they are absent."""
    name = str(name_or_path)
    if name == EMBEDDED:
        folder = Path(str(resources.files("leader.priors") / "weights"))
        return folder / "pyramid.safetensors", folder / "pyramid.json"
    if name.startswith(diffusers_folder.HUB):
        try:
            path = diffusers_folder.fetch(name, offline=True)
        except LeaderError:
            return ()
    else:
        path = catalogue.ENTRIES[name].path if name in catalogue.ENTRIES else Path(name_or_path).expanduser()
    if path.is_dir():
        return tuple(sorted(item for item in path.rglob("*") if item.is_file()))
    if not path.is_file():
        return ()
    beside = (path.with_suffix(".json"), find_head(path))
    return (path, *(item for item in beside if item is not None and item.is_file()))
