"""A diffusion model that others trained, as a prior: anime faces of 64 x 64 pixels, 63 million parameters, T = 300, cosine.

    export LEADER_ANIME64=FOLDER     # network.py (betas, load) and weights.safetensors: a conversion to PyTorch of the model
                                     # 64x64_cosin_300 of github.com/wangjia184/diffusion_model (MIT licence)
    python -m benchmarks.anime64 out/anime64/test --count 32
    python -m benchmarks.anime64 out/anime64/choice --count 3 --seed 1
    python -m benchmarks.anime64 out/anime64/fit --count 24 --seed 2
    HEAD=FOLDER/weights.safetensors.variance.safetensors
    leader fit-variance --prior benchmarks.anime64:Anime64 --images out/anime64/fit --minutes 10 --out $HEAD
    leader bench run benchmarks/real-ddpm.toml --form choice --images out/anime64/choice --records benchmarks/records/real-ddpm
    leader bench run benchmarks/real-ddpm.toml --form t50 --images out/anime64/test --records benchmarks/records/real-ddpm

`leader bench table` with the last line's options prints docs/results/real-ddpm.md, with `--form t100` the other one. The
pictures are drawn by the model itself, which flatters it: they show what a method gains with a prior that is right. Neither the
model nor its pictures are kept here; the records are.
"""

import importlib.util
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from PIL import Image
from torch import Tensor, nn

from leader import Problem, Sampler, Schedule
from leader.bench.images import to_pixels
from leader.errors import LeaderError
from leader.operators import Denoising
from leader.priors import NetworkPrior
from leader.schedule import Grid

FOLDER = "LEADER_ANIME64"
"""The variable of the environment that names the model's folder."""
TIMES = 298
"""Of its 300 times: at the last two x0 = (x - noise eps) / signal multiplies errors of eps by 190 and more."""
DRAWN = Grid((*range(288, -1, -12), -1))
"""The times at which pictures are drawn."""


class HalfNetwork(nn.Module):
    """A network whose convolutions and linear layers compute in bfloat16; x, t and the answer stay in float32."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        for part in network.modules():
            if isinstance(part, (nn.Conv2d, nn.Linear)):
                part.to(torch.bfloat16)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        with torch.autocast(x.device.type, torch.bfloat16):
            answer: Tensor = self.network(x, t)
        return answer.to(x.dtype)


class Anime64(NetworkPrior):
    """The model in the folder that the environment names; its rounding is a tenth of its own error of eps or less."""

    def __init__(self) -> None:
        named = os.environ.get(FOLDER)
        if not named:
            raise LeaderError(f"The model's folder is not known: set {FOLDER} to that of network.py and weights.safetensors.")
        folder = Path(named)
        for file in (folder / "network.py", folder / "weights.safetensors"):
            if not file.is_file():
                raise LeaderError(f"{file} does not exist: set {FOLDER} to the folder of the model.")
        code = _import_file(folder / "network.py")
        network, schedule = HalfNetwork(code.load(folder / "weights.safetensors")), Schedule(code.betas()[:TIMES])
        super().__init__(network, schedule, predicts="eps", size=(64, 64), name="anime64")
        self.home = folder / "weights.safetensors"


def _import_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("anime64_network", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(
    folder: Annotated[Path, typer.Argument(help="Where the pictures go.")],
    count: Annotated[int, typer.Option(min=1)] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Pictures of other seeds are others.")] = 0,
) -> None:
    """Draws pictures with the model: DDIM, 25 steps."""
    folder.mkdir(parents=True, exist_ok=True)
    sampler = Sampler(Anime64(), "ddim", (), grid=DRAWN, estimator=None)
    nothing = Problem(torch.zeros(1, 3, 64, 64), Denoising((3, 64, 64)), 1.0)
    for number in range(count):
        picture = sampler.run(nothing, seed, ids=[number]).images[0]
        Image.fromarray(to_pixels(picture)).save(folder / f"{number:03d}.png")


if __name__ == "__main__":
    try:
        typer.run(main)
    except LeaderError as error:
        sys.exit(str(error))
