"""Would the embedded prior gain from coarser features? One of its bodies is trained with a branch, beside the shipped one.

    python benchmarks/branch.py train --body expert --images photos/train --validation photos/val --state STATE --hours 2
    python benchmarks/branch.py table

The branch starts at zero, so training starts at the shipped network. A stopped run continues from STATE; its rates follow the
hours that have passed. Every look at the validation photographs is a record: hours of processor time, and the gain in dB at
each noise level over the shipped network on the same noise, both in bfloat16. What came of it is in docs/model-card.md.
"""

import math
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import typer
from common import append_records, locate_records, print_rows, read_records
from torch import Tensor, nn
from torch.nn import functional as F

from leader.files import replacing
from leader.priors.pyramid import PyramidPrior, embedded_file
from leader.priors.pyramid_net import Body, PyramidConfig, PyramidNet
from leader.train.data import Photographs, central_crops, list_images, open_photographs
from leader.train.objective import Task, draw_examples, fit_task
from leader.train.run import load_pyramid, validate

RECORDS = locate_records("branch")
SIGMAS = {"main": (50, 75, 100, 150, 255, 500), "expert": (10, 15, 25, 37)}
"""Noise levels to look at, of 255."""
TASKS = {
    "main": Task(8, 96, 0.9 * 37.5 / 255, 150 / 255, 70 / 255, (0.6, 0.2, 0.12, 0.08)),
    "expert": Task(8, 96, 0.0, 1.15 * 37.5 / 255, 0.0, (0.8, 0.12, 0.08), sigma_power=1.3),
}
LEAVES, RETURNS = 3, 9
"""Layers of the body after which the branch begins and ends."""
RATES = {"main": (2e-3, 3e-5), "expert": (5e-4, 2e-5)}
"""Of Muon for the branch and of Adam for all else; higher rates harm both bodies at first."""
LAST_RATE = 0.02
"""Share of both that is left at the end."""
AVERAGE = 0.999
LOOKS = 12
"""How often a run is compared on the validation photographs."""
CROPS = 12
"""Validation photographs, central crops of 256 pixels."""


class FlatConv(nn.Module):
    """A convolution whose weights are a matrix, as Muon takes them; zero at first if it ends a residual."""

    def __init__(self, inputs: int, outputs: int, side: int, stride: int = 1, zero: bool = False) -> None:
        super().__init__()
        self.shape, self.stride = (outputs, inputs, side, side), stride
        weight = torch.randn(outputs, inputs * side**2) * math.sqrt(2 / (inputs * side**2))
        self.weight = nn.Parameter(weight * (0 if zero else 1))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        padding = 1 if self.shape[2] == 3 else 0
        return F.conv2d(x, self.weight.view(self.shape), self.bias, self.stride, padding)


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = FlatConv(width, width, 3), FlatConv(width, width, 3, zero=True)

    def forward(self, x: Tensor) -> Tensor:
        residual: Tensor = self.second(F.relu(self.first(x)))
        return x + residual


class Branch(nn.Module):
    """Features at a half and a quarter of the cells' resolution; sides are padded to multiples of 4."""

    def __init__(self, width: int, coarse: int = 128) -> None:
        super().__init__()
        self.fine = nn.Sequential(FlatConv(width, width, 2, stride=2), Residual(width))
        self.coarse = nn.Sequential(FlatConv(width, coarse, 2, stride=2), Residual(coarse), Residual(coarse))
        self.up = FlatConv(coarse, 4 * width, 1)
        self.after = Residual(width)
        self.out = FlatConv(width, 4 * width, 1, zero=True)

    def forward(self, features: Tensor) -> Tensor:
        height, width = features.shape[2:]
        half = self.fine(F.pad(features, (0, -width % 4, 0, -height % 4), mode="replicate"))
        half = self.after(half + F.pixel_shuffle(self.up(self.coarse(half)), 2))
        return F.pixel_shuffle(self.out(half), 2)[..., :height, :width]


class BranchedBody(Body):
    """The body of the prior with a branch past its middle layers."""

    def __init__(self, config: PyramidConfig) -> None:
        super().__init__(config.width, config.depth, config.head_width)
        self.branch = Branch(config.width)

    def forward(self, pixels: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
        cells = F.pixel_unshuffle(pixels, 2)
        level = sigma.to(cells.dtype).view(-1, 1, 1, 1).expand(-1, 1, *cells.shape[2:])
        h = torch.cat([cells, level], 1).contiguous(memory_format=torch.channels_last)
        for number, conv in enumerate(self.convs, 1):
            h = F.relu(conv(h))
            if number == LEAVES:
                left = h
            if number == RETURNS:
                h = h + self.branch(left)
        return F.pixel_shuffle(self.out(h), 2), h


def build_net(body: str) -> PyramidNet:
    """The shipped network with a branch in one of its bodies."""
    net = PyramidNet(PyramidConfig())
    net.load_state_dict(load_pyramid(embedded_file()))
    branched = BranchedBody(net.config)
    branched.load_state_dict({**branched.state_dict(), **getattr(net, body).state_dict()})
    setattr(net, body, branched)
    net.requires_grad_(False)
    branched.requires_grad_(True)
    for head in (branched.h1, branched.h2):
        head.requires_grad_(False)
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


class Run:
    """What a checkpoint holds: network, averaged weights, optimisers, steps, hours passed and hours of processor time."""

    def __init__(self, body: str, state: Path) -> None:
        torch.manual_seed(0)
        self.body, self.file = body, state / f"{body}.pt"
        self.net = build_net(body)
        self.trained = {name: value for name, value in self.net.named_parameters() if value.requires_grad}
        self.average = {name: value.detach().clone() for name, value in self.trained.items()}
        flat = [value for name, value in self.trained.items() if ".branch." in name and value.ndim == 2]
        rest = [value for name, value in self.trained.items() if not (".branch." in name and value.ndim == 2)]
        self.optimisers: list[tuple[torch.optim.Optimizer, float]] = [
            (torch.optim.Muon(flat, lr=RATES[body][0], weight_decay=0.0), RATES[body][0]),
            (torch.optim.Adam(rest, lr=RATES[body][1]), RATES[body][1]),
        ]
        self.step, self.passed, self.spent = 0, 0.0, 0.0
        if self.file.exists():
            kept: dict[str, Any] = torch.load(self.file, weights_only=True)
            for name, value in self.trained.items():
                value.data.copy_(kept["net"][name])
            self.average = kept["average"]
            for (optimiser, _), content in zip(self.optimisers, kept["optimisers"], strict=True):
                optimiser.load_state_dict(content)
            self.step, self.passed, self.spent = kept["step"], kept["passed"], kept["spent"]

    def save(self) -> None:
        content = {
            "net": {name: value.detach() for name, value in self.trained.items()},
            "average": self.average,
            "optimisers": [optimiser.state_dict() for optimiser, _ in self.optimisers],
            "step": self.step,
            "passed": self.passed,
            "spent": self.spent,
        }
        with replacing(self.file, durable=True) as temporary:
            torch.save(content, temporary)

    def advance(self, photos: dict[str, Photographs], hours: float) -> float:
        """One step; returns its loss, 10 mse / sqrt(sigma^2 + 0.02^2) as in `leader.train.objective`."""
        falling = LAST_RATE + (1 - LAST_RATE) * 0.5 * (1 + math.cos(math.pi * min(1.0, self.passed / hours)))
        task, total = fit_task(TASKS[self.body], photos), 0.0
        for optimiser, rate in self.optimisers:
            optimiser.zero_grad()
            for group in optimiser.param_groups:
                group["lr"] = rate * falling * min(1.0, (self.step + 1) / 50)
        for examples in draw_examples(self.net, photos, task, 0, self.step, self.body == "expert"):
            with torch.autocast("cpu", torch.bfloat16):
                estimate, _ = self.net.features(examples.noisy, examples.sigma, examples.guides)
            mse = (estimate.float() - examples.clean).square().mean((1, 2, 3))
            loss = (10 * mse / (examples.sigma**2 + 0.02**2).sqrt()).sum() / task.batch
            torch.autograd.backward([loss])
            total += float(loss.detach())
        nn.utils.clip_grad_norm_(self.trained.values(), 1.0)
        for optimiser, _ in self.optimisers:
            optimiser.step()
        self.step += 1
        decay = min(AVERAGE, (1 + self.step) / (10 + self.step))
        torch._foreach_lerp_(list(self.average.values()), [value.detach() for value in self.trained.values()], 1 - decay)
        return total

    def look(self, clean: Tensor) -> list[float]:
        """PSNR [dB] of the averaged weights at each noise level."""
        kept = {name: value.detach().clone() for name, value in self.trained.items()}
        self._put(self.average)
        found = measure_psnr(self.net, clean, self.body)
        self._put(kept)
        return found

    @torch.no_grad()
    def _put(self, values: dict[str, Tensor]) -> None:
        for name, value in self.trained.items():
            value.copy_(values[name])


def measure_psnr(net: PyramidNet, clean: Tensor, body: str) -> list[float]:
    with torch.autocast("cpu", torch.bfloat16):
        return validate(net, clean, SIGMAS[body])["psnr"]


app = typer.Typer(add_completion=False)


@app.command()
def train(
    body: Annotated[Literal["main", "expert"], typer.Option()],
    images: Annotated[Path, typer.Option()],
    validation: Annotated[Path, typer.Option()],
    state: Annotated[Path, typer.Option(help="A folder for the decoded photographs and the checkpoint.")],
    hours: float = 2.0,
) -> None:
    torch.set_num_threads(1)
    state.mkdir(parents=True, exist_ok=True)
    photos, clean = open_photographs(images, state / "cache"), central_crops(list_images(validation)[:CROPS])
    run = Run(body, state)
    shipped = measure_psnr(PyramidPrior.load().net, clean, body)
    began, processor, before, spent = time.monotonic(), time.process_time(), run.passed, run.spent
    looked, total = math.floor(run.passed / hours * LOOKS), 0.0
    while run.passed < hours:
        total += run.advance(photos, hours)
        run.passed = before + (time.monotonic() - began) / 3600
        run.spent = spent + (time.process_time() - processor) / 3600
        if math.floor(run.passed / hours * LOOKS) > looked:
            looked += 1
            run.save()
            gains = [round(new - old, 4) for new, old in zip(run.look(clean), shipped, strict=True)]
            what = {"body": body, "hours": hours, "step": run.step, "core hours": round(run.spent, 3)}
            append_records(RECORDS, {**what, "sigma": SIGMAS[body], "gain": gains})
            print(what, gains, f"loss {total / run.step:.4f}", flush=True)


@app.command()
def table() -> None:
    """The gains in dB of every look, a table for each body."""
    for body, sigmas in SIGMAS.items():
        print_rows([["steps", "hours", *(f"σ {sigma}" for sigma in sigmas)], ["---:"] * (len(sigmas) + 2)])
        for record in read_records(RECORDS):
            if record["body"] == body:
                gains = (f"{gain:+.3f}" for gain in record["gain"])
                print_rows([[f"{record['step']:,}", f"{record['core hours']:.2f}", *gains]])
        print()


if __name__ == "__main__":
    app()
