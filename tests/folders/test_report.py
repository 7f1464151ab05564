"""The contact sheet: self-contained, complete, and safe whatever pictures are called."""

import base64
import io
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image

from leader.folders.places import open_source, open_target
from leader.folders.report import GAP, SIDE, page_text, write_report, write_strip
from leader.restoration.degrade import degrade_file
from tests.folders.conftest import go, save_picture


class Page(HTMLParser):
    """What a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[dict[str, str | None]]] = []
        self.images: list[bytes] = []
        self.links: list[str] = []
        self.tags: dict[str, int] = {}
        self.levels: list[str | None] = []
        self.kinds: list[str | None] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = dict(attrs)
        self.tags[tag] = self.tags.get(tag, 0) + 1
        if tag == "tr":
            self.rows.append([])
        if tag == "th":
            self.kinds.append(about["data-kind"])
        if tag == "td":
            self.rows[-1].append(about)
        if tag == "span":
            self.levels.append(about["class"])
        if tag == "a":
            self.links.append(str(about["href"]))
        if tag == "img":
            kind, data = str(about["src"]).split(",")
            assert kind == "data:image/webp;base64"
            self.images.append(base64.b64decode(data))
            told = int(str(about["width"])), int(str(about["height"]))
            assert told == Image.open(io.BytesIO(self.images[-1])).size, "a browser keeps room for it"

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self.rows and self.rows[-1]:
            cell = self.rows[-1][-1]
            cell["text"] = f"{cell.get('text', '')}{data}"


def page_of(out: Path) -> Page:
    return Page((out / "leader-report.html").read_text(encoding="utf-8"))


FOREIGN: list[dict[str, object]] = [
    {"run": {"size": "large", "sigma": "x", "verdict": {"level": 3, "reasons": 7}, "network": []}},
    {"run": {"size": [1, None], "sigma": 10**400, "mean_uncertainty": float("nan")}, "seconds": True},
    {"run": 5, "files": {"picture": {"name": 7, "sha256": 1, "bytes": 2}}},
    {"files": {"picture": {"name": "\ud800.png", "sha256": "", "bytes": 2}, "strip": {"name": 3, "sha256": "", "bytes": 1}}},
    {"status": "failed", "error": ["\ud800"]},
    {"status": "failed", "error": "\ud800"},
    {"files": {"picture": {"name": "a\0.png", "sha256": "", "bytes": 2}}},
]


@pytest.mark.parametrize("change", FOREIGN, ids=range(len(FOREIGN)))
def test_a_line_with_foreign_types_is_a_row_all_the_same(tree: Path, tmp_path: Path, change: dict[str, object]) -> None:
    """What a manifest says of pictures that are not restored now: somebody may have edited it."""
    out = tmp_path / "out"
    go(tree, out)
    target, source = open_target(str(out)), open_source(str(tree))
    manifest = target.open()
    try:
        manifest.append({**manifest.line("b.png"), **change})
        write_report(source, target, manifest, ["a.png", "b.png"])
    finally:
        manifest.close()
    rows = [row for row in page_of(out).rows if row]
    assert [row[0]["data-key"] for row in rows] == ["a.png", "b.png"]
    assert all(re.fullmatch(r"-?[\d.e-]+", str(cell["data-key"])) for row in rows for cell in row[1:])


def test_every_picture_has_a_row_with_thumbnails_and_keys_to_sort_by(tree: Path, tmp_path: Path) -> None:
    """And a page that asks nothing of anybody, whatever pictures are called."""
    (tree / "bad.png").write_text("no picture")
    save_picture(tree / (name := '<img src=x onerror="alert(1)">&.PNG'))
    for twice in ("a.webp", "sub/a.png"):  # each with its own thumbnails
        save_picture(tree / twice, 24, 15 + len(twice))
    (level,) = go(tree, tmp_path / "out", report=True).levels
    page, text = page_of(tmp_path / "out"), (tmp_path / "out/leader-report.html").read_text(encoding="utf-8")
    assert "http://" not in text and "https://" not in text and "default-src 'none'" in text
    assert page.tags.get("link") is None and page.tags["script"] == 1 and name in page.words
    rows = [row for row in page.rows if row]
    assert [row[0]["data-key"] for row in rows] == [name, "a.png", "a.webp", "b.png", "bad.png", "sub/a.png", "sub/c.png"]
    assert page.levels == 4 * [level] + ["error"] + 2 * [level] and {level, "error"} < set(page.words), (
        "as a class and as a word"
    )
    assert page.links == [quote(name), "a.png", "a.webp", "b.png", "sub/a.png", "sub/c.png"]
    assert len(set(page.images[1:])) == page.tags["img"] - 1 == 5
    assert {len(row) for row in rows} == {page.tags["th"]}
    for row in rows:
        assert all(re.fullmatch(r"-?[\d.e-]+", str(cell["data-key"])) for cell in row[1:])
    assert any("known format" in word for word in page.words)
    strip = np.asarray(Image.open(io.BytesIO(page.images[1])))
    assert strip.shape == (SIDE, 3 * SIDE + 2 * GAP, 3)
    given = np.asarray(Image.open(tree / "a.png").resize((SIDE, round(SIDE * 16 / 24)), Image.Resampling.NEAREST), np.float32)
    top = (SIDE - given.shape[0]) // 2
    assert np.abs(strip[top : top + given.shape[0], :SIDE] - given).mean() < 12, "the first thumbnail is the picture given"
    assert strip[SIDE // 2, -SIDE // 2].min() < 240, "the last the trust map"


def test_a_row_says_what_its_line_says() -> None:
    def line(level: str, **more: Any) -> dict[str, Any]:
        run = {"sigma": 0.25, "mean_uncertainty": 0.0625, "network": {"calls": 7}, "size": [30, 20], "seconds": 9.0}
        run["verdict"] = {"level": level, "reasons": ["it is <b>odd</b>", "and dark"]}
        files = {"picture": {"name": "a b#.png"}}
        return {"name": "x.png", "status": "done", "seconds": 1.25, "files": files, "run": run, **more}

    error = {"status": "failed", "error": "It is <i>torn</i>."}
    lines = [line("fine"), line("doubtful"), line("failed", status="refused"), line("failed"), line("fine", **error)]
    page = Page("".join(page_text(lines, lambda _: None)))
    assert page.kinds == ["s"] + 7 * ["n"] and page.links == 3 * ["a%20b%23.png"], "those that have a result"
    rows = [row for row in page.rows if row]
    cells = ["0.2500", "0.0625", "7", "30 × 20", "1.2"]
    assert [str(cell["text"]).strip() for cell in rows[0][3:]] == cells
    assert [cell["data-key"] for cell in rows[0][3:]] == ["0.25", "0.0625", "7", "600", "1.25"]
    assert [cell["data-key"] for cell in (row[1] for row in rows)] == ["0", "1", "2", "3", "4"]
    assert page.levels == ["fine", "doubtful", "refused", "failed", "error"]
    assert [row[2]["text"] for row in rows[:1]] == ["fineit is <b>odd</b>; and dark"] and rows[4][2][
        "text"
    ] == f"error{error['error']}"
    keys = [int(str(row[2]["data-key"])) for row in rows]
    assert keys[3] == keys[4] < keys[2] < keys[1] < keys[0], "the worst first"


VISIT = """
const row = (...keys) => ({ children: keys.map((key) => ({ dataset: { key } })) });
const table = { rows: [row("b10", "9"), row("a", "10"), row("b9", "1")], append: (...rows) => (table.rows = rows) };
const heads = ["s", "n"].map((kind) => {
  const firstChild = { addEventListener: (_, act) => (firstChild.click = act) };
  const head = { dataset: { kind }, firstChild, getAttribute: () => head.sort, removeAttribute: () => delete head.sort };
  return Object.assign(head, { setAttribute: (_, way) => (head.sort = way) });
});
globalThis.document = { querySelector: () => table, querySelectorAll: () => heads };
%s
for (const number of [0, 0, 1, 0]) {
  heads[number].firstChild.click();
  console.log(heads.map((head) => head.sort ?? "-").join(), body.rows.map((one) => one.children[0].dataset.key).join());
}
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_a_heading_sorts_upwards_then_downwards_by_text_or_by_number() -> None:
    script = "".join(page_text([], None)).partition("<script>")[2].partition("</script>")[0]
    said = subprocess.run(["node", "-e", VISIT % script], capture_output=True, text=True, check=True, timeout=60).stdout
    ways = ("ascending,- a,b9,b10", "descending,- b10,b9,a", "-,ascending b9,b10,a", "ascending,- a,b9,b10")
    assert said.splitlines() == list(ways)


def test_thumbnails_are_sharp_where_enlarged_smooth_where_reduced_and_whole(tmp_path: Path) -> None:
    tiles = np.indices((3, 2)).sum(0) % 2 * 255
    fine = np.indices((448, 224)).sum(0) % 2 * 255
    before, after = (Image.fromarray(board.astype(np.uint8)).convert("RGB") for board in (tiles, fine))
    write_strip(tmp_path / "s.webp", before, after, None)
    strip = np.asarray(Image.open(tmp_path / "s.webp").convert("L"), float)
    wide = round(SIDE * 2 / 3)
    left = (SIDE - wide) // 2
    large, small = strip[:, left : left + wide], strip[:, SIDE + GAP + SIDE // 4 :][:, : SIDE // 2]
    assert np.abs(large - 127).mean() > 110 and np.abs(small - 127).mean() < 40
    assert strip[:, : left - 3].min() > 240 and strip[:, left + wide + 3 : SIDE + SIDE // 4].min() > 240, "in the middle"


def test_colours_of_maps_mean_the_same_in_every_row(tmp_path: Path) -> None:
    plain = Image.new("RGB", (8, 8), "white")
    for level, expected in ((0.5, (13, 23, 66)), (60, (214, 40, 40))):
        write_strip(tmp_path / "s.webp", plain, plain, np.full((8, 8), level / 255, np.float32))
        shown = np.asarray(Image.open(tmp_path / "s.webp"), float)[SIDE // 2, -SIDE // 2]
        assert np.abs(shown - expected).max() < 12, "those of --map: dark blue is known, red is not"


def test_pictures_of_runs_without_a_report_are_shown_too(tree: Path, tmp_path: Path) -> None:
    degrade_file(tree / "b.png", tree / "measured.npz", "colourise", sigma=0.1)
    save_picture(tree / "a.png", 40, 30)
    go(tree, tmp_path / "out", {"task": "colourise"})
    assert go(tree, tmp_path / "out", {"task": "colourise"}, report=True).found == 4
    page = page_of(tmp_path / "out")
    assert len(page.images) == 4
    strip = np.asarray(Image.open(io.BytesIO(page.images[0])), float)
    grey = np.abs(np.diff(strip, axis=-1)).mean((0, 2))
    assert grey[:SIDE].mean() > 2 + grey[SIDE + GAP : 2 * SIDE + GAP].mean(), "before comes first"
    (tmp_path / "out/a.png").unlink()
    (tree / "a.png").unlink()
    go(tree, tmp_path / "out", {"task": "colourise"}, report=True)
    assert len(page_of(tmp_path / "out").images) == 3, "a picture that is gone has no row"
