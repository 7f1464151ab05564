"""The page in a real browser, from the first picture to the last byte."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import urllib.request
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.web.browsing import PATIENCE, at_rest, axe, choose, command, finished, hand_in, saved, small_picture
from tests.web.conftest import NewPage

pytestmark = pytest.mark.browser

RECORD_PREVIEWS = """() => {
  window.seen = new Set();
  new MutationObserver(() => {
    const shown = document.querySelector("#out .preview");
    if (shown) window.seen.add(shown.src);
  }).observe(document.querySelector("#out"), { childList: true, subtree: true, attributes: true });
}"""

ESTIMATED = "/about \\d+ (s|min)/.test(document.querySelector('#quality').innerText)"


def health(server: str) -> dict[str, Any]:
    found: dict[str, Any] = json.load(urllib.request.urlopen(f"{server}/health"))
    return found


def repeated(given: Path, folder: Path) -> bytes:
    """What `leader restore --settings run.json` makes of the same picture."""
    again = folder / "again.png"
    words = command("restore", str(given), str(again), "--settings", str(folder / "run.json"))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(words, check=True, capture_output=True, timeout=300, env=environment)
    return again.read_bytes()


def test_a_picture_comes_back_and_its_run_is_repeated_byte_for_byte(
    new_page: NewPage, tmp_path: Path, server_folder: Path
) -> None:
    page = new_page()
    given = small_picture(tmp_path / "my secret holiday.png")
    hand_in(page, given)
    choose(page, "factor", "2 times")
    page.wait_for_function(ESTIMATED, timeout=PATIENCE)
    page.evaluate(RECORD_PREVIEWS)
    page.click("#start")
    finished(page)
    assert page.evaluate("window.seen.size") >= 2  # the estimate grew clear before our eyes
    assert not list(server_folder.rglob("*secret*"))

    page.wait_for_function("[...document.querySelectorAll('#out img')].every(i => i.closest('details') || i.naturalWidth > 0)")
    assert page.evaluate("document.querySelector('.slider img').naturalWidth") == 96
    slider = page.locator(".slider input")
    clipped = "getComputedStyle(document.querySelector('.slider .over')).clipPath"
    middle = page.evaluate(clipped)
    slider.focus()
    page.keyboard.press("Home")
    assert slider.input_value() == "0"
    assert page.evaluate(clipped) != middle
    page.locator(".trust input").fill("0")
    assert page.evaluate("getComputedStyle(document.querySelector('.trust .over')).opacity") == "0"
    assert re.search(r"levels", page.inner_text(".legend"))
    assert page.locator(".verdict").count() == 1

    restored = saved(page, "Restored picture", tmp_path / "restored.png")
    run = json.loads(saved(page, "The run", tmp_path / "run.json"))
    assert saved(page, "Trust map", tmp_path / "map.png").startswith(b"\x89PNG")
    assert run["settings"]["threads"] == 1
    assert run["input"] == {"name": None, "sha256": hashlib.sha256(given.read_bytes()).hexdigest()}
    assert repeated(given, tmp_path) == restored


def test_painted_parts_are_what_is_filled_in(new_page: NewPage, tmp_path: Path) -> None:
    page = new_page()
    given = small_picture(tmp_path / "a.png", 64, 64)
    hand_in(page, given)
    choose(page, "kind", "Parts are missing")
    page.wait_for_selector(".paint canvas", timeout=PATIENCE)
    choose(page, "quality", "Draft")
    page.click("#start")
    page.wait_for_selector("#out .told", timeout=PATIENCE)
    assert page.inner_text("#out") == "Paint over the missing parts with the brush first."
    page.wait_for_function("document.querySelector('.sheet img').naturalWidth > 0", timeout=PATIENCE)
    box = at_rest(page, ".paint canvas")
    row = box["y"] + box["height"] / 4
    page.mouse.move(box["x"] + box["width"] / 4, row)
    page.mouse.down()
    page.mouse.move(box["x"] + 3 * box["width"] / 4, row, steps=8)
    page.mouse.up()
    page.wait_for_function("document.querySelector('#painted textarea, #painted input').value.length > 100")
    page.click("#start")
    page.wait_for_function("!document.querySelector('#out .told')", timeout=PATIENCE)  # what was told before is gone
    finished(page)
    restored = saved(page, "Restored picture", tmp_path / "restored.png")
    run = json.loads(saved(page, "The run", tmp_path / "run.json"))
    packed = run["options"]["mask"]
    mask = np.frombuffer(zlib.decompress(base64.b64decode(packed["zlib"])), packed["dtype"]).reshape(packed["shape"])
    assert run["task"] == "inpaint"
    assert mask[16, 20:44].max() == 0  # a stroke along the upper quarter, from a quarter to three quarters
    assert mask[32:].min() == 1
    assert mask[:, :8].min() == 1
    assert repeated(given, tmp_path) == restored, "the painted mask is in the run"


def test_a_bad_file_is_told_in_a_sentence(new_page: NewPage, server: str, tmp_path: Path) -> None:
    before = health(server)["kept"]
    (tmp_path / "bad.png").write_bytes(b"this is a text")
    page = new_page()
    page.set_input_files("#file", str(tmp_path / "bad.png"))
    page.wait_for_function("document.querySelector('#told').innerText.length > 0", timeout=PATIENCE)
    told = page.inner_text("#told")
    assert "not a picture" in told and told.endswith(".") and "/" not in told, "no path of ours"
    assert health(server)["kept"] <= before


def test_pasting_and_dropping(new_page: NewPage, tmp_path: Path) -> None:
    content = base64.b64encode(small_picture(tmp_path / "a.png").read_bytes()).decode()
    make = f"""(() => {{
      const bytes = Uint8Array.from(atob("{content}"), c => c.charCodeAt(0));
      const held = new DataTransfer();
      held.items.add(new File([bytes], "pasted.png", {{ type: "image/png" }}));
      return held;
    }})()"""
    for event in (
        f'new ClipboardEvent("paste", {{clipboardData: {make}, bubbles: true}})',
        f'new DragEvent("drop", {{dataTransfer: {make}, bubbles: true, cancelable: true}})',
    ):
        page = new_page()
        page.evaluate(f"() => {{ document.body.dispatchEvent({event}); }}")
        page.wait_for_selector("#seen .given img", timeout=PATIENCE)


def test_compare_shows_two_ways_with_one_zoom(new_page: NewPage, tmp_path: Path) -> None:
    page = new_page()
    hand_in(page, small_picture(tmp_path / "a.png", 24, 24))
    page.get_by_role("button", name="Expert settings").click()
    page.get_by_label("Seed").wait_for()
    fields = [page.get_by_label(words).input_value() for words in ("Steps", "Budget", "Noise level", "Seed")]
    assert fields == [""] * 4, "to look at expert settings changes none of them"
    page.get_by_role("tab", name="Compare").click()
    page.wait_for_selector("#compare", timeout=PATIENCE)
    choose(page, "quality-B", "Draft")
    page.click("#compare")
    page.wait_for_selector("#both .pane, #both .told", timeout=PATIENCE)
    assert page.locator("#both .pane").count() == 2
    page.locator("#both .pane").first.hover()
    page.mouse.wheel(0, -400)
    page.wait_for_function("document.querySelector('.pane img').style.transform.includes('scale')")
    transforms = page.evaluate("[...document.querySelectorAll('.pane img')].map(i => i.style.transform)")
    assert transforms[0] == transforms[1]
    assert float(re.findall(r"scale\(([\d.]+)\)", transforms[0])[0]) > 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(new_page: NewPage, tmp_path: Path, scheme: str) -> None:
    script = axe()
    if script is None:
        pytest.skip("axe-core was not found; `make test-web` installs it with npm.")
    page = new_page(color_scheme=scheme, bypass_csp=True)
    page.add_script_tag(path=str(script))
    _no_violation(page, "at rest")
    hand_in(page, small_picture(tmp_path / "a.png", 24, 24))
    choose(page, "quality", "Draft")
    page.click("#start")
    finished(page)
    _no_violation(page, "done")
    choose(page, "kind", "Parts are missing")
    page.wait_for_selector(".paint canvas", timeout=PATIENCE)
    page.get_by_role("button", name="Expert settings").click()
    page.get_by_label("Seed").wait_for()
    _no_violation(page, "painting, with expert settings")
    page.get_by_role("tab", name="Compare").click()
    page.wait_for_selector("#compare", timeout=PATIENCE)
    _no_violation(page, "compare")


def _no_violation(page: Any, where: str) -> None:
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    grave = [
        f"{item['id']} ({item['impact']}): {[node['html'][:160] for node in item['nodes']][:3]}"
        for item in found
        if item["impact"] in ("serious", "critical")
    ]
    assert not grave, f"{where}: " + "\n".join(grave)


def test_the_keyboard_suffices(new_page: NewPage) -> None:
    page = new_page()
    page.locator("[data-sample=blurred]").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#seen .given img", timeout=PATIENCE)
    page.wait_for_function(ESTIMATED, timeout=PATIENCE)
    page.locator("#quality input").nth(1).focus()
    page.keyboard.press("ArrowRight")  # the longest: it still runs when the keys reach its cancel button
    page.wait_for_function("document.querySelector('#quality input:checked').value === 'best'", timeout=PATIENCE)
    page.locator("#start").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#out .status", timeout=PATIENCE)
    page.wait_for_function("!document.querySelector('#cancel').disabled", timeout=PATIENCE)
    page.locator("#cancel").focus()
    page.keyboard.press("Space")
    page.wait_for_selector("#out .told.calm", timeout=PATIENCE)
