"""Lets deepinv be imported beside a CPU build of torch."""

import torch


def declare_operators() -> None:
    """Two operators that torchvision, which deepinv imports, looks up: its builds for GPUs bring none for a CPU's torch."""
    for name in ("torchvision::nms", "torchvision::qnms"):
        torch.library.define(name, "(Tensor dets, Tensor scores, float threshold) -> Tensor")


declare_operators()  # before the test modules import leader.interop.deepinv, which imports deepinv
