"""The columns of tables and figures: one entry for each number of a record, with everything about how it is shown."""

from leader.by_name import Registry
from leader.metrics import METRICS, Column

_OWN: dict[str, Column] = {
    **{name: metric.column for name, metric in METRICS.own.items()},
    "residual": Column("residual", 4, 0, "root mean square of y - A x of the clamped picture, in units of [0, 1] pictures"),
    "residual_raw": Column("raw residual", 6, 0, "the same before clamping"),
    "calls": Column("calls", 1, -1, "forward evaluations of the network, per image"),
    "jvps": Column("JVPs", 1, -1),
    "backwards": Column("backwards", 1, -1),
    "work": Column("work", 1, -1, "full-resolution passes, in which a derivative of the network counts as two more"),
    "seconds": Column("seconds", 2, -1, "wall-clock time of one image with one thread; compare within a table only"),
    "trust_seconds": Column("map seconds", 3, -1, "wall-clock time of the error map, after the run"),
    "coverage": Column("90 % intervals", 3, 0, "share of open pixels whose truth lies in the interval said to hold 90 %"),
    "coverage_50": Column("50 %", 3, 0, "the same for 50 %"),
    "coverage_80": Column("80 %", 3, 0, "the same for 80 %"),
    "coverage_95": Column("95 %", 3, 0, "the same for 95 %"),
    "calibration_error": Column(
        "calibration error", 3, -1, "mean distance of coverage from 50, 80, 90 and 95 %, image by image"
    ),
    "ause": Column("AUSE", 3, -1, "area between the sparsification curves by the map and by the true error, over the error"),
    "rank": Column("rank", 3, 1, "Spearman correlation of error and map over blocks of 8 x 8 pixels"),
    "peak_mb": Column("peak MB", 1, -1, "peak resident memory of a fresh process, in MB"),
    "run_mb": Column("run MB", 1, -1, "the part of the peak that came after the prior was loaded, in MB"),
}
COLUMNS: Registry[Column] = Registry("number", "leader.metrics", _OWN, lambda _, name: METRICS[name].column)
"""By the name in a record."""
DEFAULT = ("psnr", "lpips", "calls", "work", "seconds")
"""The default columns of a table or figure."""
