"""Fits the score of runs that undid a blur (`leader.trust.score`) to the kept runs of benchmarks/self_check.py.

    python benchmarks/self_check_fit.py    weights, what they do on photographs left out, and mistakes by the score's limit

The part `third`, the test, is not looked at.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from common import read_records
from numpy.typing import NDArray
from self_check import RECORDS, Pixels

from leader.trust import score
from leader.trust.limits import MOST_ODDS, SCORE, WEIGHTS

RIDGE = 2.0
"""Weight of the squares of the score's weights, for features of standard deviation 1, as the fit minimises them."""
FOLDS = 10
SWEPT = (-2.0, 0.05, 0.1)
"""First, end and step of the limits that are tried."""


def fit_score(rows: list[dict[str, Any]]) -> str:
    """Weights of `leader.trust.score` from the runs that undid a blur, and what they do on photographs left out.

    Runs between 2 and 3 dB below the given picture are left out: they are nearly ruined.
    """
    own = [row for row in rows if score.is_scored(row["numbers"]) and row["part"] in ("val", "first")]
    names = list(WEIGHTS)
    table = np.array([[score.list_features(row["numbers"])[name] for name in names] for row in own])
    gain = np.array([row["psnr"] - row["psnr_given"] for row in own])
    ruined, harmless, told = gain <= -3, gain > -1, (gain <= -3) | (gain > -2)
    photographs = sorted({row["photograph"] for row in own})
    fold = np.array([photographs.index(row["photograph"]) % FOLDS for row in own])
    left_out = np.zeros(len(own))
    for number in range(FOLDS):
        weights, bias = logistic(table[told & (fold != number)], ruined[told & (fold != number)])
        left_out[fold == number] = table[fold == number] @ weights + bias
    weights, bias = logistic(table[told], ruined[told])
    said = ", ".join(f'"{name}": {value:.3f}' for name, value in zip(names, weights))
    beyond = left_out > SCORE.failed
    looked = [row["numbers"]["too_wide"] for row in own if row["numbers"].get("too_wide") is not None]
    unseen = np.clip(looked, -MOST_ODDS, MOST_ODDS).mean()
    return (
        f"{len(own)} runs: WEIGHTS = {{{said}}}, BIAS = {bias:.3f}, UNSEEN = {unseen:.2f}\n"
        f"photographs left out: failed {(beyond & ruined).sum()} of {ruined.sum()} ruined and "
        f"{(beyond & harmless).sum()} of {harmless.sum()} not harmed\n" + mistakes_by_limit(rows)
    )


def mistakes_by_limit(rows: Iterable[dict[str, Any]]) -> str:
    """By limit of the score as it is now: ruined runs below and unharmed ones above, of the parts that may choose it."""
    own = [row for row in rows if score.is_scored(row["numbers"]) and row["part"] != "third"]
    odds = np.array([score.score_run(row["numbers"]) for row in own])
    gain = np.array([row["psnr"] - row["psnr_given"] for row in own])
    lines = [f"{len(own)} runs of {', '.join(sorted({row['part'] for row in own}))}"]
    for limit in np.arange(*SWEPT):
        missed, alarms = int(((odds <= limit) & (gain <= -3)).sum()), int(((odds > limit) & (gain > -1)).sum())
        lines.append(f"limit {limit:+.1f}: {missed} ruined missed, {alarms} false alarms, {missed + alarms} together")
    return "\n".join(lines)


def logistic(features: Pixels, ruined: NDArray[np.bool_]) -> tuple[Pixels, float]:
    """Weights [F] and bias of the log-odds of `ruined` [N] given features [N, F], by Newton's method."""
    mean, scale = features.mean(0), features.std(0) + 1e-9
    x = np.column_stack([(features - mean) / scale, np.ones(len(features))])
    ridge = np.diag([RIDGE] * features.shape[1] + [0.0])
    found = np.zeros(x.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-x @ found))
        slope = x.T @ (chance - ruined) + ridge @ found
        found -= np.linalg.solve((x * (chance * (1 - chance))[:, None]).T @ x + ridge, slope)
    weights = found[:-1] / scale
    return weights, float(found[-1] - weights @ mean)


if __name__ == "__main__":
    print(fit_score(read_records(RECORDS)))
