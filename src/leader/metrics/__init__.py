"""Metrics: pure functions of pictures in [0, 1], one number per image, each with documented conventions."""

from leader.metrics.distribution import Kid, fid, frechet_distance, kid
from leader.metrics.fidelity import data_consistency, psnr, ssim
from leader.metrics.inception import inception_features
from leader.metrics.metric import METRICS, Column, Metric
from leader.metrics.perceptual import lpips
from leader.metrics.uncertainty import (
    block_rank_correlation,
    calibration_error,
    coverage,
    interval_coverage,
    sparsification_curve,
    sparsification_error,
)

__all__ = [
    "METRICS",
    "Column",
    "Kid",
    "Metric",
    "block_rank_correlation",
    "calibration_error",
    "coverage",
    "data_consistency",
    "fid",
    "frechet_distance",
    "inception_features",
    "interval_coverage",
    "kid",
    "lpips",
    "psnr",
    "sparsification_curve",
    "sparsification_error",
    "ssim",
]
