"""What can be said of a checkpoint file without building its network."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from leader.priors.checkpoints import missing, network_tensors, read, settle, side_car, twins
from leader.priors.detection import describe, detect, family
from leader.priors.loading import find_head


def inspect(file: str | Path, part: str | None = None) -> dict[str, object]:
    """Family, configuration, size and open questions of a checkpoint file; raises LeaderError for a bad one.

    Keys: path, bytes, tensors, parameters, dtypes, family, config, learned_variance, settings (known from
    registry or side-car), missing (settings still to give), same_shapes_as (registered names),
    side_car, variance_head.
    """
    path = Path(file)
    content = read(path)
    tensors = network_tensors(content, path.name, part or side_car(path).get("part"))
    config = detect(tensors, path.name)
    settings = settle(path, config, {})
    head = find_head(path)
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        "tensors": len(tensors),
        "parameters": sum(tensor.numel() for tensor in tensors.values()),
        "dtypes": dict(Counter(str(tensor.dtype).removeprefix("torch.") for tensor in tensors.values())),
        "family": family(config),
        "config": describe(config),
        "learned_variance": config.out_channels == 2 * config.in_channels,
        "settings": settings,
        "missing": missing(config, settings),
        "same_shapes_as": [entry.name for entry in twins(config)],
        "side_car": str(path.with_suffix(".json")) if side_car(path) else None,
        "variance_head": None if head is None else str(head),
    }
