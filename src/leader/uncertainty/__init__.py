"""Sigma_t: how far the prior itself trusts its estimate, pixel by pixel."""

from leader.uncertainty.estimators import ESTIMATORS, Difference, Estimator, Hutchinson, local_mean, make_estimator

__all__ = ["ESTIMATORS", "Difference", "Estimator", "Hutchinson", "local_mean", "make_estimator"]
