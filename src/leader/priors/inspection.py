"""Describes a checkpoint file without building its network."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path

from leader.priors.checkpoints import find_missing, find_part, find_twins, network_tensors, read_side_car, settle_settings
from leader.priors.detection import detect_config, find_family
from leader.priors.loading import find_head, is_pyramid
from leader.priors.pyramid import read_settings
from leader.priors.tensor_files import read_checkpoint


def inspect(file: str | Path) -> dict[str, object]:
    """Family, configuration, size and open questions of a checkpoint file; raises LeaderError for a bad one.

    Keys: path, bytes, tensors, parameters, dtypes, variance_head, family, config, learned_variance, settings (known from
    registry or side-car), missing (settings still to give), same_shapes_as (registered names), side_car.
    """
    path = Path(file)
    content, head = read_checkpoint(path), find_head(path)
    if is_pyramid(path):  # written by `leader train` or `leader publish`: its .json has all settings
        tensors, found = network_tensors(content, path.name), read_settings(path)
        family, config, learned, missing, twins = "pyramid", asdict(found.net), True, list[str](), list[str]()
        settings = {"schedule": read_side_car(path)["schedule"], "calibrated": len(found.scale.sigma) > 1}
    else:
        tensors = network_tensors(content, path.name, find_part(path, {}))
        network = detect_config(tensors, path.name)
        settings = settle_settings(path, network, {})
        family, config, learned = find_family(network).name, asdict(network), network.out_channels == 2 * network.in_channels
        missing, twins = find_missing(network, settings), [entry.name for entry in find_twins(network)]
    return {
        "path": str(path),
        "bytes": path.stat().st_size,
        "tensors": len(tensors),
        "parameters": sum(tensor.numel() for tensor in tensors.values()),
        "dtypes": dict(Counter(str(tensor.dtype).removeprefix("torch.") for tensor in tensors.values())),
        "variance_head": None if head is None else str(head),
        "family": family,
        "config": config,
        "learned_variance": learned,
        "settings": settings,
        "missing": missing,
        "same_shapes_as": twins,
        "side_car": str(path.with_suffix(".json")) if read_side_car(path) else None,
    }
