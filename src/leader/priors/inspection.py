"""Describes a checkpoint file without building its network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from torch import Tensor

from leader.priors.checkpoints import find_missing, find_part, find_twins, network_tensors, read_side_car, settle_settings
from leader.priors.detection import detect_config, find_family
from leader.priors.loading import find_head, is_pyramid
from leader.priors.pyramid import read_settings
from leader.priors.tensor_files import read_checkpoint


def inspect(file: str | Path, part: str | None = None) -> dict[str, object]:
    """Family, configuration, size and open questions of a checkpoint file; raises LeaderError for a bad one.

    Keys: path, bytes, tensors, parameters, dtypes, family, config, learned_variance, settings (known from registry or
    side-car), missing (settings still to give), same_shapes_as (registered names), side_car, variance_head.
    """
    path = Path(file)
    content = read_checkpoint(path)
    if is_pyramid(path):
        return _pyramid(path, network_tensors(content, path.name, None))
    tensors = network_tensors(content, path.name, find_part(path, {} if part is None else {"part": part}))
    config = detect_config(tensors, path.name)
    settings = settle_settings(path, config, {})
    return {
        **_file(path, tensors),
        "family": find_family(config).name,
        "config": asdict(config),
        "learned_variance": config.out_channels == 2 * config.in_channels,
        "settings": settings,
        "missing": find_missing(config, settings),
        "same_shapes_as": [entry.name for entry in find_twins(config)],
        "side_car": str(path.with_suffix(".json")) if read_side_car(path) else None,
    }


def _pyramid(path: Path, tensors: Mapping[str, Tensor]) -> dict[str, object]:
    """A prior written by `leader train` or `leader publish`: its .json has all settings."""
    settings = read_settings(path)
    return {
        **_file(path, tensors),
        "family": "pyramid",
        "config": asdict(settings.net),
        "learned_variance": True,
        "settings": {"schedule": read_side_car(path)["schedule"], "calibrated": len(settings.scale.sigma) > 1},
        "missing": [],
        "same_shapes_as": [],
        "side_car": str(path.with_suffix(".json")),
    }


def _file(path: Path, tensors: Mapping[str, Tensor]) -> dict[str, object]:
    head = find_head(path)
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        "tensors": len(tensors),
        "parameters": sum(tensor.numel() for tensor in tensors.values()),
        "dtypes": dict(Counter(str(tensor.dtype).removeprefix("torch.") for tensor in tensors.values())),
        "variance_head": None if head is None else str(head),
    }
