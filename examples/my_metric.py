"""A metric of one's own, for tables: `metrics = ["psnr", "my_metric:edges"]` in an experiment's file."""

from torch import Tensor

from leader.metrics import Column, Metric


def compare_edges(restored: Tensor, reference: Tensor) -> Tensor:
    """Mean absolute difference of horizontal gradients, [B], of pictures [B, C, H, W] in [0, 1]."""
    return (restored.diff(dim=-1) - reference.diff(dim=-1)).abs().mean((1, 2, 3))


edges = Metric("edges", "", Column("edge error", 4, -1, "mean absolute difference of horizontal gradients"), compare_edges)
