"""The import graph: what counts as an import, and that circles are found."""

from itertools import pairwise
from pathlib import Path

import pytest
from tools.import_graph import BEGIN, END, draw, in_order, main, read_graph

FILES = {
    "__init__.py": "",
    "low.py": "import math\n",
    "high/__init__.py": "from leader.high.part import x\n",
    "high/part.py": (
        "from typing import TYPE_CHECKING\n"
        "from leader import low\n"
        "if TYPE_CHECKING:\n    from leader.top import y\n"
        "def f():\n    from leader.side import z\n    import leader.side.deep\n"
    ),
    "side/__init__.py": "",
    "side/deep.py": "from . import other\nfrom .. import low\n",
    "side/other.py": "",
    "top.py": "from leader.high import x\nclass C:\n    from leader.low import w\n",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "leader" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "leader"


def test_what_counts(source: Path) -> None:
    graph = read_graph(source)
    assert graph.loading == {"leader": set(), "low": set(), "high": {"low"}, "side": {"low"}, "top": {"high", "low"}}
    assert graph.later["high"] == {"side": 2} and not graph.later["top"]


def test_the_drawing(source: Path) -> None:
    assert draw(read_graph(source)).splitlines() == [
        "leader",
        "low",
        "high    -> low  ..> side(2)",
        "side    -> low",
        "top     -> low high",
    ]


def test_a_circle_is_named(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (source / "low.py").write_text("from leader import top\n")
    loading = read_graph(source).loading
    with pytest.raises(ValueError, match="circle: ") as raised:
        in_order(loading)
    named = str(raised.value).partition(": ")[2].split(" -> ")
    assert named[0] == named[-1] and all(there in loading[here] for here, there in pairwise(named))
    assert main(["--source", str(source)]) == 1
    assert "circle" in capsys.readouterr().err


def test_the_page(source: Path, tmp_path: Path) -> None:
    page = tmp_path / "design.md"
    page.write_text(f"# A page\n\n{BEGIN}\nold\n{END}\n\nmore\n")
    words = ["--source", str(source), "--page", str(page)]
    assert main([*words, "--check"]) == 1
    assert main([*words, "--write"]) == 0 and main([*words, "--check"]) == 0
    text = page.read_text()
    assert "top     -> low high" in text and "old" not in text and text.endswith("\n\nmore\n")
    page.write_text("no marks")
    assert main([*words, "--write"]) == 1 and page.read_text() == "no marks"
