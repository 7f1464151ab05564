"""The contact sheet: one HTML page with every picture before and after, its map and its verdict; click to sort.

The page is self-contained: it makes no requests and runs only its own short script. It is written picture by picture, so memory
does not grow with its size.
"""

import base64
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from leader.errors import LeaderError
from leader.files import flush_to_disk, printable
from leader.folders.manifest import DONE, FAILED, Line, Manifest
from leader.folders.names import REPORT
from leader.folders.places import Source, Target
from leader.trust import maps

SIDE = 112
GAP = 4


def write_strip(path: Path, before: Image.Image, after: Image.Image, spread: NDArray[np.float32] | None) -> None:
    """Writes the strip: three squares side by side, the last one empty if there is no map."""
    strip = Image.new("RGB", (3 * SIDE + 2 * GAP, SIDE), "white")
    views = [before, after, *([] if spread is None else [Image.fromarray(maps.colours(spread))])]
    for position, view in enumerate(views):
        small = _fit(view)
        left = position * (SIDE + GAP) + (SIDE - small.width) // 2
        strip.paste(small, (left, (SIDE - small.height) // 2))
    strip.save(path, "WEBP", quality=70, method=4)


def _fit(view: Image.Image) -> Image.Image:
    """The view scaled to fit the square; small pictures are enlarged without smoothing."""
    scale = SIDE / max(view.size)
    size = (max(1, round(view.width * scale)), max(1, round(view.height * scale)))
    return view.resize(size, Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS)


COLUMNS = ("picture", "before, after, map", "verdict", "noise level", "uncertainty", "network calls", "pixels", "seconds")
_ORDER = {"failed": 0, "error": 0, "refused": 1, "doubtful": 2, "fine": 3}

_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Restored pictures</title>
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; \
script-src 'unsafe-inline'">
<style>
body{--ink:#222;--paper:#fff;--line:#ddd;--dim:#555;--good:#1b6e2c;--unsure:#8a5a00;--bad:#a3121c;--link:#1d4ed8;
font:15px/1.4 system-ui,sans-serif;margin:1.5rem;color:var(--ink);background:var(--paper);color-scheme:light}
@media (prefers-color-scheme:dark){body{--ink:#e5e7eb;--paper:#111827;--line:#374151;--dim:#9ca3af;--good:#4ade80;
--unsure:#fbbf24;--bad:#fca5a5;--link:#93c5fd;color-scheme:dark}}
@media (max-width:640px){body{margin:.6rem}}
a{color:var(--link)}
table{border-collapse:collapse}
th{position:sticky;top:0;background:var(--paper);text-align:left;padding:0}
th button{font:inherit;font-weight:600;color:inherit;background:none;border:0;padding:.5rem;cursor:pointer;text-align:inherit}
th[aria-sort=ascending] button::after{content:" \\25B2"}
th[aria-sort=descending] button::after{content:" \\25BC"}
td{border-top:1px solid var(--line);padding:.4rem .5rem;vertical-align:middle}
td:first-child{min-width:6rem;max-width:22rem;overflow-wrap:anywhere}
td.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
img{display:block}
.fine{color:var(--good)}.doubtful{color:var(--unsure)}.failed,.error,.refused{color:var(--bad);font-weight:600}
small{display:block;color:var(--dim);font-weight:400;min-width:12rem;max-width:26rem}
</style></head><body>
"""
_TAIL = """</tbody></table>
<script>
const body=document.querySelector("tbody");
document.querySelectorAll("th").forEach((head,column)=>head.firstChild.addEventListener("click",()=>{
 const down=head.getAttribute("aria-sort")==="ascending";
 document.querySelectorAll("th").forEach(other=>other.removeAttribute("aria-sort"));
 head.setAttribute("aria-sort",down?"descending":"ascending");
 const key=row=>row.children[column].dataset.key;
 const rows=[...body.rows].map(row=>[key(row),row]);
 const compare=head.dataset.kind==="n"?(a,b)=>a[0]-b[0]:(a,b)=>a[0].localeCompare(b[0],undefined,{numeric:true});
 rows.sort((a,b)=>down?compare(b,a):compare(a,b));
 body.append(...rows.map(pair=>pair[1]));
}));
</script></body></html>
"""


def write_report(source: Source, target: Target, manifest: Manifest, names: Iterable[str]) -> None:
    """Writes the page into the output folder; `names` are the sources it shows."""
    lines = (manifest.line(name) for name in names if name in manifest.entries)
    with tempfile.TemporaryDirectory(prefix="report-", dir=target.staging) as folder:
        file = Path(folder) / "report.html"
        try:
            with file.open("w", encoding="utf-8", errors="xmlcharrefreplace") as page:
                page.writelines(page_text(lines, lambda line: _strip(line, source, target, Path(folder))))
            flush_to_disk(file)
            target.keep(file, REPORT)
        except OSError as error:
            raise LeaderError(f"The report could not be written ({error.strerror or error}).") from error


def page_text(lines: Iterable[Line], strip: Any) -> Iterator[str]:
    """Yields the page in pieces. strip: a picture's line -> WebP bytes of its thumbnails, or None."""
    yield _HEAD
    yield "<h1>Restored pictures</h1>\n<p>Click a heading to sort. The map says how far off a pixel may be: dark blue is known "
    yield "to within one grey level of 255, red to no better than 40.</p>\n<table><thead><tr>"
    for position, title in enumerate(COLUMNS):
        yield f'<th data-kind="{"s" if position == 0 else "n"}"><button type="button">{title}</button></th>'
    yield "</tr></thead><tbody>\n"
    for number, line in enumerate(lines):
        yield _row(number, line, strip(line))
    yield _TAIL


def _row(number: int, line: Line, strip: bytes | None) -> str:
    run = _table(line.get("run"))
    level, reasons = _level(line, _table(run.get("verdict")))
    name = escape(printable(line["name"]))
    shown = line.get("files", {}).get("picture") if line.get("status") == DONE else None
    link = name if shown is None else f'<a href="{escape(_address(shown["name"]))}">{name}</a>'
    image = ""
    if strip is not None:
        data = base64.b64encode(strip).decode("ascii")
        width = 3 * SIDE + 2 * GAP
        image = f'<img alt="before, after, map of {name}" width="{width}" height="{SIDE}" src="data:image/webp;base64,{data}">'
    width, height = _size(run.get("size"))
    calls = _table(run.get("network")).get("calls")
    cells = [
        f'<td data-key="{name}">{link}</td>',
        f'<td data-key="{number}">{image}</td>',
        f'<td data-key="{_ORDER.get(level, 4)}"><span class="{escape(level)}">{escape(level)}</span>'
        f"<small>{escape(reasons)}</small></td>",
        _number(run.get("sigma"), "{:.4f}"),
        _number(run.get("mean_uncertainty"), "{:.4f}"),
        _number(calls, "{:.0f}"),
        f'<td class="n" data-key="{width * height}">{width} × {height}</td>',
        _number(line.get("seconds"), "{:.1f}"),
    ]
    return f"<tr>{''.join(cells)}</tr>\n"


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _level(line: Line, verdict: Mapping[str, Any]) -> tuple[str, str]:
    """The status of a row, and the reason."""
    if line.get("status") == FAILED:
        return "error", str(line.get("error", ""))
    found = verdict.get("reasons")
    reasons = "; ".join(map(str, found)) if isinstance(found, list) else ""
    if line.get("status") != DONE:
        return "refused", reasons
    return str(verdict.get("level", "not judged")), reasons


def _address(name: Any) -> str:
    return quote(str(name).encode("utf-8", "surrogatepass"))


def _size(value: Any) -> tuple[int, int]:
    """Width and height in a line, (0, 0) if missing."""
    if isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)):
        return int(value[0]), int(value[1])
    return 0, 0


def _is_number(value: Any) -> bool:
    """Whether the value is a usable number: lines may be edited, and JSON has integers that no float can hold."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -1e300 < value < 1e300


def _number(value: Any, pattern: str) -> str:
    if not _is_number(value):
        return '<td class="n" data-key="-1">–</td>'
    return f'<td class="n" data-key="{value!r}">{pattern.format(value)}</td>'


def _strip(line: Line, source: Source, target: Target, folder: Path) -> bytes | None:
    """The thumbnails of a picture: those kept with its result, or else new ones without a map."""
    if line.get("status") != DONE:
        return None
    files = line.get("files", {})
    try:
        if "strip" in files:
            return target.read(str(files["strip"]["name"]))
        from leader.pictures import read_picture

        copy = folder / f"before{Path(line['name']).suffix}"
        source.fetch(line["name"], copy)
        result = str(files["picture"]["name"])
        after = read_picture(_save(target.read(result), folder, result)).rgb()
        before = after if copy.suffix.lower() == ".npz" else read_picture(copy).rgb()
        strip = folder / "strip.webp"
        write_strip(strip, before, after, None)
        return strip.read_bytes()
    except (OSError, ValueError):
        return None  # no thumbnail for a picture that was moved since, or for an invalid file name


def _save(data: bytes, folder: Path, name: str) -> Path:
    file = folder / f"after{Path(name).suffix}"
    file.write_bytes(data)
    return file
