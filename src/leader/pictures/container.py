"""Files for measurements that are not pictures: the measurement, its operator and its noise.

A container is a NumPy .npz archive of plain arrays (nothing in it can be executed):

  format   "leader-measurement 1"
  about    JSON text: task, image_shape, sigma (of [0, 1] images, or null if unknown), bits, options that are
           numbers or words
  y        the measurement of a [0, 1] image, with a leading batch axis, float32
  option.* options that are tables: kernel, mask, indices
  alpha    [H, W] transparency of the picture, if it had one
  icc      its colour profile as bytes, if it had one
"""

import json
import math
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leader.errors import LeaderError
from leader.files import check_readable, printable, replacing
from leader.operators import LinearOperator, build_task
from leader.pictures import MOST_PIXELS

FORMAT = "leader-measurement 1"
SUFFIX = ".npz"
WIDEST_KERNEL = 1025
"""Largest side of a kernel in pixels. A wider blur leaves nothing to restore, and its tables would fill the memory."""
MOST_BYTES = 2 << 30
"""Containers that would unpack to more bytes than this are rejected before they are read."""


@dataclass(frozen=True, repr=False, eq=False)
class Measurement:
    """The content of a container; `y` [B, ...] belongs to images of `image_shape` (C, H, W) in [0, 1]."""

    task: str
    y: Tensor
    image_shape: tuple[int, int, int]
    sigma: float | None = None
    options: dict[str, Any] = field(default_factory=dict)
    bits: int = 8
    alpha: NDArray[np.float32] | None = None
    icc: bytes | None = None

    def operator(self) -> LinearOperator:
        """The operator that made y."""
        _check_options(self.options)
        try:
            return build_task(self.task, self.image_shape, **self.options)
        except LeaderError:
            raise
        except (TypeError, ValueError, ArithmeticError, RuntimeError, IndexError) as error:
            raise LeaderError(f"The container has wrong options for its operator ({error}).") from error

    def __repr__(self) -> str:
        channels, height, width = self.image_shape
        noise = "unknown" if self.sigma is None else f"{self.sigma:g}"
        return f"<Measurement {self.task}: y {list(self.y.shape)} of {width} x {height} x {channels}, sigma {noise}>"


def write_container(path: Path, measurement: Measurement) -> None:
    """Writes a measurement whole or not at all."""
    tables = {name: value for name, value in measurement.options.items() if isinstance(value, Tensor)}
    about = {
        "task": measurement.task,
        "image_shape": list(measurement.image_shape),
        "sigma": measurement.sigma,
        "bits": measurement.bits,
        "options": {name: value for name, value in measurement.options.items() if name not in tables},
    }
    arrays: dict[str, NDArray[Any]] = {
        "format": np.array(FORMAT),
        "about": np.array(json.dumps(about)),
        "y": measurement.y.cpu().numpy().astype(np.float32),
    }
    arrays |= {f"option.{name}": table.cpu().numpy() for name, table in tables.items()}
    if measurement.alpha is not None:
        arrays["alpha"] = measurement.alpha
    if measurement.icc is not None:
        arrays["icc"] = np.frombuffer(measurement.icc, dtype=np.uint8)
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def read_container(path: Path) -> Measurement:
    """Reads a measurement; a damaged file, or one that is not a container, is rejected."""
    check_readable(path, "container")
    name = printable(path)
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(item.file_size for item in archive.infolist())
            if unpacked > MOST_BYTES:
                raise LeaderError(f"{name} would unpack to {unpacked} bytes; at most {MOST_BYTES} are supported.")
            for item in archive.infolist():
                _check_header(archive, item)
        with np.load(path, allow_pickle=False) as loaded:
            arrays = {key: loaded[key] for key in loaded.files}
    except LeaderError:
        raise
    except Exception as error:  # a damaged archive raises errors of every kind
        raise LeaderError(f"{name} is not a container that can be read; write one with `leader degrade`.") from error
    if "format" not in arrays or str(arrays["format"]) != FORMAT:
        raise LeaderError(f"{name} is an .npz file but not a '{FORMAT}'; write one with `leader degrade`.")
    try:
        return _assemble_measurement(arrays)
    except RecursionError as error:
        raise LeaderError(f"{name} has a description nested too deeply; write it again with `leader degrade`.") from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise LeaderError(f"{name} has missing or wrong entries ({error}); write it again.") from error


def _check_header(archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> None:
    """Rejects an array whose header asks for more memory than its data in the archive."""
    with archive.open(item) as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    if math.prod(shape) * dtype.itemsize > item.file_size:
        raise ValueError(f"{item.filename} asks for an array of shape {shape}")


def _check_options(options: dict[str, Any]) -> None:
    """Rejects kernels that are, or would become, absurdly large."""
    for key, most in (("std", WIDEST_KERNEL / 8), ("size", WIDEST_KERNEL)):
        value = options.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
            raise LeaderError(f"The container's operator has {key} = {str(value)[:40]}; expected a number up to {most:g}.")
    kernel = options.get("kernel")
    if isinstance(kernel, Tensor) and any(side > WIDEST_KERNEL for side in kernel.shape):
        raise LeaderError(f"The container's kernel has shape {list(kernel.shape)}; at most {WIDEST_KERNEL} pixels are allowed.")


def _assemble_measurement(arrays: dict[str, NDArray[Any]]) -> Measurement:
    about = json.loads(str(arrays["about"]))
    channels, height, width = (int(n) for n in about["image_shape"])
    if channels not in (1, 3) or min(height, width) < 1 or height * width > MOST_PIXELS:
        raise ValueError(f"image_shape is {[channels, height, width]}")
    options = dict(about["options"])
    for name, array in arrays.items():
        if name.startswith("option."):
            options[name.removeprefix("option.")] = torch.from_numpy(array)
    sigma = about["sigma"]
    y = torch.from_numpy(arrays["y"].astype(np.float32))
    if y.ndim < 2 or y.shape[0] != 1:
        raise ValueError(f"y has shape {list(y.shape)}")
    alpha = arrays["alpha"].astype(np.float32) if "alpha" in arrays else None
    if alpha is not None and (alpha.ndim != 2 or alpha.size == 0 or not np.isfinite(alpha).all()):
        raise ValueError(f"alpha has shape {list(alpha.shape)}")
    bits = int(about["bits"])
    if bits not in (8, 16):
        raise ValueError(f"bits is {bits}")
    return Measurement(
        task=str(about["task"]),
        y=y,
        image_shape=(channels, height, width),
        sigma=None if sigma is None else float(sigma),
        options=options,
        bits=bits,
        alpha=alpha,
        icc=arrays["icc"].tobytes() if "icc" in arrays else None,
    )
