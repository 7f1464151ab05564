"""Sigma_t: how far the prior itself trusts its estimate, pixel by pixel."""

from leader.uncertainty.estimators import ESTIMATORS, Estimator, local_mean, make_estimator

__all__ = ["ESTIMATORS", "Estimator", "local_mean", "make_estimator"]
