"""Numbers on pages: those that a source prints, rounded or not, and no others."""

from __future__ import annotations

from pathlib import Path

from tools.check_numbers import check_page

PAGE = """12.34 before any mark
<!-- numbers: results/a.md -->
PSNR +0.44 % [0.2, 0.68], not 0.43, and 3.8e+08; `0.99` and [a](b-9.9.md) are no claims, nor is "0.58 dB".

| the paper says | we measure |
| --- | --- |
| 9.87 | -5.51 and 7.77 |

9.87 is ours again
<!-- numbers: -->
6.66
"""


def find_lines(page: str, folder: Path) -> list[tuple[int, str]]:
    return [(line, what.split()[0]) for line, what in check_page(page, folder)]


def test_what_no_source_prints_is_found(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "a.md").write_text("| +0.438 % | **0.24** | 0.6799 | -5.51 | 3.8e+08 |")
    assert find_lines(PAGE, tmp_path) == [(3, "0.43"), (7, "7.77"), (9, "9.87")]


def test_a_source_that_is_gone_is_found(tmp_path: Path) -> None:
    assert find_lines(PAGE, tmp_path) == [(2, "there")]
