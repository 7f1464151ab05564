"""Settings of plug-ins that were fitted to a checkpoint, such as SATP's eta: a small file beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from leader.files import replacing
from leader.priors.json_files import check_number, check_table, read_json

SUFFIX = ".settings.json"
REMEDY = "make it again with `leader adapt`"
Fitted = Mapping[str, Mapping[str, float]]
"""Settings by plug-in and name."""


def fitted_file(checkpoint: Path) -> Path:
    """Where the settings fitted to a checkpoint (a file or a folder) are stored."""
    return checkpoint / f"prior{SUFFIX}" if checkpoint.is_dir() else checkpoint.with_name(checkpoint.stem + SUFFIX)


def save_fitted(fitted: Fitted, checkpoint: Path) -> Path:
    """Writes them beside the checkpoint; returns where."""
    with replacing(fitted_file(checkpoint)) as temporary:
        temporary.write_text(json.dumps(fitted, indent=1) + "\n", encoding="utf-8")
    return fitted_file(checkpoint)


def find_fitted(checkpoint: Path | None) -> Fitted:
    """Those beside a checkpoint, every value judged; none where nothing was fitted."""
    file = None if checkpoint is None else fitted_file(checkpoint)
    if file is None or not file.is_file():
        return {}
    content = read_json(file, "settings fitted to a prior", REMEDY)
    return {
        plugin: {
            name: check_number(value, f"{plugin[:40]}.{name[:40]} in {file}", -1e9, 1e9)
            for name, value in check_table(values, f"{plugin[:40]} in {file}").items()
        }
        for plugin, values in content.items()
    }
