"""What a run yields: a Step for each evaluation, and a Result at the end."""

from __future__ import annotations

import io
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from leader.methods.base import State
from leader.priors.ledger import Ledger

SHOWN = 8
"""Images of a Result that a notebook shows."""


@dataclass(frozen=True, repr=False, eq=False)
class Step:
    """One evaluation of every image that is not finished.

    ids         image ids, [B] as a tuple
    index       number of steps the loop has yielded before
    t, u        times now and next, LongTensor [B]
    state       the state after the step
    x0          the network's estimate after plug-ins, [B, C, H, W]
    x0_hat      the same after data consistency
    sigma       Sigma_t, [B, C, H, W], or None where no estimator runs
    U           mean of Sigma per image, [B] on the CPU as t and u are, or None
    jump        grid steps taken, LongTensor [B]

    >>> problem = leader.Problem(torch.rand(1, 3, 8, 8), leader.operators.Denoising((3, 8, 8)), 0.1)
    >>> [step.index for step in leader.Sampler("embedded", "ddnm", (), 3).iterate(problem)]
    [0, 1, 2]
    """

    ids: tuple[int, ...]
    index: int
    t: Tensor
    u: Tensor
    state: State
    x0: Tensor
    x0_hat: Tensor
    sigma: Tensor | None
    U: Tensor | None
    jump: Tensor

    def visit(self, row: int) -> Visit:
        """The entry of this step in the trace of the image in `row`."""
        mean = None if self.U is None else float(self.U[row])
        return Visit(int(self.t[row]), int(self.u[row]), mean, int(self.jump[row]))

    def __repr__(self) -> str:
        means = "" if self.U is None else f", U {[float(f'{value:.3g}') for value in self.U.tolist()]}"
        return f"Step({self.index}: images {list(self.ids)}, t {self.t.tolist()} -> {self.u.tolist()}{means})"


@dataclass(frozen=True)
class Visit:
    """One entry of an image's trace."""

    t: int
    u: int
    U: float | None
    jump: int


OnStep = Callable[[Step], None]
"""Called with every Step of a run: progress bars, previews, tests."""


@dataclass(frozen=True, repr=False, eq=False)
class Result:
    """The restored images and everything needed to repeat the run.

    images         [B, C, H, W] in [-1, 1], not clamped, in the order of the problem
    posterior_std  square root of Sigma at the first visited time at or below `trust_time`, [B, C, H, W] in [-1, 1] units: the
                   model's own spread there, not calibrated; None if no estimator ran
    error_std      a calibrated standard deviation of the error, or None if there is no calibration
    trace          the visits of each image id
    ledger         counts of network calls

    >>> problem = leader.Problem(torch.rand(1, 3, 8, 8), leader.operators.Denoising((3, 8, 8)), 0.1)
    >>> leader.Sampler("embedded", "ddnm", (), 5).run(problem)
    Result(ddnm: images [1, 3, 8, 8], 5 calls, seed 0)
    """

    images: Tensor
    posterior_std: Tensor | None
    error_std: Tensor | None
    trace: dict[int, list[Visit]]
    ledger: Ledger
    seed: int
    settings: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        total, method = self.ledger.total, self.settings.get("method", {}).get("name", "?")
        plugins = "".join(f" + {item['name']}" for item in self.settings.get("plugins", []))
        extra = "".join(f", {count} {name}" for name, count in (("JVPs", total.jvps), ("backwards", total.backwards)) if count)
        return f"Result({method}{plugins}: images {list(self.images.shape)}, {total.calls} calls{extra}, seed {self.seed})"

    def _repr_png_(self) -> bytes:
        """The restored images side by side, at most eight, for notebooks."""
        from leader.pictures.picture import Picture

        shown = to_unit_range(self.images[:SHOWN].detach())
        row = torch.cat(list(shown), dim=-1).permute(1, 2, 0)
        if row.shape[2] not in (1, 3):
            row = row.mean(2, keepdim=True)
        buffer = io.BytesIO()
        Picture(row.to("cpu", torch.float32).numpy()).to_pil().save(buffer, format="PNG")
        return buffer.getvalue()


def to_unit_range(images: Tensor) -> Tensor:
    """Converts images from the internal range [-1, 1] to [0, 1], clamped."""
    return ((images + 1) / 2).clamp(0, 1)


def drain(steps: Generator[Step, None, Result], on_step: OnStep | None = None) -> Result:
    """Runs a loop to its end, calls `on_step` with every Step, and returns the Result."""
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
        if on_step is not None:
            on_step(step)
        del step  # its images are not needed while the next ones are made
