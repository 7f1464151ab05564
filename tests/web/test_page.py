"""The page in a real browser, from the first picture to the last byte."""

import base64
import hashlib
import io
import json
import os
import subprocess
import urllib.request
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.web.browsing import PATIENCE, axe, choose, command, finish, hand_in, look_at, restore, save, small_picture
from tests.web.conftest import NewPage

pytestmark = pytest.mark.browser

RECORD_PREVIEWS = """() => {
  window.seen = new Set();
  new MutationObserver((changes) => changes.forEach(({ target }) => {
    if (target.src?.startsWith("data:image/jpeg")) window.seen.add(target.src);
  })).observe(document.querySelector("#panes"), { subtree: true, attributes: true, attributeFilter: ["src"] });
}"""


def repeat(given: Path, folder: Path) -> bytes:
    """What `leader restore --settings run.json` makes of the same picture."""
    again = folder / "again.png"
    words = command("restore", str(given), str(again), "--settings", str(folder / "run.json"), "--keep-failed")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    return again.read_bytes()


def save_run(page: Any, folder: Path) -> dict[str, Any]:
    link = page.get_by_role("link", name="Download the run")
    found: dict[str, Any] = json.loads(save(page, link.click, folder / "run.json"))
    return found


def drag(page: Any, *points: tuple[float, float]) -> None:
    """Draws with the mouse through points of the picture, in shares of its sides."""
    box = look_at(page)
    places = [(box["x"] + u * box["width"], box["y"] + v * box["height"]) for u, v in points]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=6)
    page.mouse.up()


def read_mask(run: dict[str, Any]) -> Any:
    packed = run["options"]["mask"]
    return np.frombuffer(zlib.decompress(base64.b64decode(packed["zlib"])), packed["dtype"]).reshape(packed["shape"])


def test_a_picture_comes_back_and_its_run_is_repeated_byte_for_byte(
    new_page: NewPage, tmp_path: Path, server_folder: Path
) -> None:
    page = new_page(bypass_csp=False)  # everything here works under the policy of the page itself
    given = small_picture(tmp_path / "my secret holiday.png", 40, 56)
    hand_in(page, given)
    choose(page, "small")
    page.click("#expert summary")
    page.get_by_label("Seed").fill("7")
    page.get_by_label("Seed").blur()
    page.click("#expert summary")
    page.locator("#quality-draft .seconds[data-seconds]").wait_for()
    box = look_at(page)
    assert box["width"] > 600, "large and in the middle from the first second"
    assert page.locator("#start").bounding_box()["y"] < 768, "the button is in sight"
    page.evaluate(RECORD_PREVIEWS)
    page.click("#start")
    page.wait_for_selector("#result .verdict", timeout=PATIENCE)
    assert page.evaluate("window.seen.size") >= 1, "the picture itself grew clear"
    assert look_at(page) == box, "and stayed where it was"
    page.wait_for_function("document.querySelector('.after').naturalWidth === 112")
    assert page.evaluate("document.querySelector('.before').naturalWidth") == 56, "the photograph as it was given"
    run = save_run(page, tmp_path)
    restored = save(page, lambda: page.click("#save"), tmp_path / "restored.png")
    assert run["settings"]["threads"] == 1 and run["seed"] == 7, "the visitor's own"
    assert run["input"] == {"name": None, "sha256": hashlib.sha256(given.read_bytes()).hexdigest()}
    assert repeat(given, tmp_path) == restored
    assert not list(server_folder.rglob("*secret*"))


def test_before_and_after_zoom_pan_map_and_the_level_under_the_mouse(new_page: NewPage, tmp_path: Path) -> None:
    page = new_page()
    hand_in(page, small_picture(tmp_path / "a.png", 40, 56))
    choose(page, "noisy")
    restore(page)
    slider, clip = page.locator(".slider").first, "document.querySelector('.before').style.clipPath"
    middle = page.evaluate(clip)
    slider.focus()
    page.keyboard.press("Home")
    assert slider.get_attribute("aria-valuenow") == "0" and page.evaluate(clip) != middle
    page.locator(".pane").first.focus()
    page.keyboard.press("1")
    assert page.inner_text("#zoom") == "100 %" and look_at(page)["width"] == pytest.approx(56, abs=1)
    page.keyboard.press("0")
    fitted = look_at(page)
    corner = (fitted["x"] + 0.25 * fitted["width"], fitted["y"] + 0.25 * fitted["height"])
    page.mouse.move(*corner)
    page.mouse.wheel(0, -700)
    page.wait_for_function("parseInt(document.querySelector('#zoom').textContent) > 2000")
    near = look_at(page)
    assert near["x"] + 0.25 * near["width"] == pytest.approx(corner[0], abs=2), "what is under the mouse stays there"
    assert near["width"] / near["height"] == pytest.approx(56 / 40, rel=0.01)
    drag(page, (0.25, 0.25), (0.3, 0.27))
    moved = look_at(page)
    assert moved["x"] - near["x"] == pytest.approx(0.05 * near["width"], rel=0.1)
    page.keyboard.down("t")
    page.wait_for_function("document.querySelector('.map').naturalWidth > 0 && !document.querySelector('.map').hidden")
    assert "within 5 levels" in page.inner_text("#legend")
    page.keyboard.up("t")
    assert page.locator(".map").first.is_hidden()
    page.mouse.move(corner[0] + 9, corner[1] + 9)
    page.wait_for_function("/within \\d+ levels|levels off/.test(document.querySelector('#hover').textContent)")
    page.keyboard.down("b")
    assert slider.get_attribute("aria-valuenow") == "100"
    page.keyboard.up("b")


def test_repairs_in_a_chain_undo_and_history(new_page: NewPage, tmp_path: Path) -> None:
    page = new_page()
    hand_in(page, small_picture(tmp_path / "a.png", 32, 44))
    choose(page, "noisy", "small")
    page.select_option("#target", "pixels")
    page.get_by_label("At most this width").fill("66")
    page.get_by_label("At most this height").fill("100")
    page.get_by_label("At most this height").blur()
    assert "66 × 48" in page.inner_text("#target-size")
    restore(page)
    steps = page.locator(".steps button").all_inner_texts()
    assert ["Noise removed" in steps[0], "Enlarged" in steps[1], len(steps)] == [True, True, 2], "each with its verdict"
    page.wait_for_function("document.querySelector('.after').naturalWidth === 66")
    page.click("#undo")
    assert page.evaluate("document.querySelector('.after').src").endswith("restored.png")
    page.wait_for_function("document.querySelector('.after').naturalWidth === 44")
    page.click("#undo")
    assert page.locator("#result").is_hidden() and page.locator(".before").first.is_hidden()
    assert page.locator("#history li").count() == 2
    page.locator("#history button").first.click()
    page.wait_for_function("document.querySelector('.after').naturalWidth === 66")
    page.reload()
    page.wait_for_selector("body[data-ready]", timeout=PATIENCE)
    assert page.locator("#history li").count() == 2, "the session outlives a reload"
    page.locator("#history button").nth(1).click()
    page.click("#further")
    assert "Noise removed" in page.inner_text(".base") and page.inner_text("#start") == "Repair further"


def test_the_brush_paints_what_is_filled_in(new_page: NewPage, tmp_path: Path) -> None:
    page = new_page()
    given = small_picture(tmp_path / "a.png", 64, 80)
    hand_in(page, given)
    choose(page, "missing")
    page.click("#start")
    page.wait_for_selector("#told:not([hidden])", timeout=PATIENCE)
    assert page.inner_text("#told") == "Paint over the missing parts with the brush first."
    page.click("#paint")
    painted = """() => {
      const canvas = document.querySelector('.mask');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      return data.filter((_, index) => index % 4 === 3 && data[index] > 127).length;
    }"""
    tool = page.get_by_role("toolbar", name="Brush").get_by_role("button")
    drag(page, (0.25, 0.25), (0.75, 0.25))
    stroke = page.evaluate(painted)
    assert stroke > 0
    tool.filter(has_text="Lasso").click()
    drag(page, (0.2, 0.6), (0.4, 0.6), (0.4, 0.9), (0.2, 0.9))
    assert page.evaluate(painted) == pytest.approx(stroke + 0.06 * 64 * 80, rel=0.15), "a lasso fills its inside"
    tool.filter(has_text="Undo").click()
    assert page.evaluate(painted) == stroke
    page.keyboard.press("Control+Shift+z")
    assert page.evaluate(painted) > stroke
    page.keyboard.press("Control+z")
    tool.filter(has_text="Invert").click()
    assert page.evaluate(painted) == pytest.approx(64 * 80 - stroke, abs=60)
    tool.filter(has_text="Undo").click()
    tool.filter(has_text="Eraser").click()
    page.locator("#brushes [aria-pressed=true]", has_text="Eraser").wait_for()
    drag(page, (0.6, 0.25), (0.85, 0.25))
    assert page.evaluate(painted) < stroke
    page.locator(".pane").first.focus()
    tool.filter(has_text="Brush").click()
    page.locator(".pane").first.focus()
    page.keyboard.press("Space")  # the keyboard paints, in the middle
    page.click("#start")
    finish(page)
    run = save_run(page, tmp_path)
    mask = read_mask(run)
    assert run["task"] == "inpaint" and mask.shape == (64, 80)
    assert mask[16, 22:44].max() == 0 and mask[16, 66:].min() == 1, "the stroke, but for what was erased"
    assert mask[32, 40] == 0 and mask[40:].min() == 1, "a dab in the middle; the lasso was undone"
    restored = save(page, lambda: page.click("#save"), tmp_path / "restored.png")
    assert repeat(given, tmp_path) == restored, "the painted mask is in the run"


def test_scratches_are_proposed_and_can_be_corrected(new_page: NewPage, tmp_path: Path) -> None:
    pixels = np.asarray(Image.open(small_picture(tmp_path / "a.png", 96, 80))).copy()
    pixels[:, 30:32] = 255
    Image.fromarray(pixels).save(tmp_path / "a.png")
    page = new_page()
    hand_in(page, tmp_path / "a.png")
    choose(page, "missing")
    page.click("#paint")
    page.get_by_role("button", name="Find scratches and tears").click()
    page.wait_for_function(
        "document.querySelector('.mask').getContext('2d').getImageData(31, 50, 1, 1).data[3] > 127", timeout=PATIENCE
    )
    page.get_by_role("toolbar", name="Brush").get_by_role("button", name="Undo").click()
    assert page.evaluate("document.querySelector('.mask').getContext('2d').getImageData(31, 50, 1, 1).data[3]") == 0


def test_ten_files_wait_in_line_and_come_back_in_one_zip(new_page: NewPage, tmp_path: Path) -> None:
    page = new_page()
    files = [small_picture(tmp_path / f"holiday {number}.png", 16, 20 + number) for number in range(9)]
    (tmp_path / "letter.png").write_bytes(b"this is a text")
    hand_in(page, *files, tmp_path / "letter.png")
    assert page.locator("#queue li").count() == 10
    assert "waiting" in page.locator("#queue li").nth(5).inner_text()
    choose(page, "noisy")
    page.check("#same")
    page.click("#all")
    page.wait_for_function("document.querySelectorAll('#queue .done').length === 9", timeout=PATIENCE)
    page.wait_for_function("document.querySelectorAll('#queue .failed').length === 1", timeout=PATIENCE)
    page.wait_for_function("document.querySelector('#busy').hidden", timeout=PATIENCE)
    page.locator("#history button").first.click()
    page.get_by_label("Format of the file").select_option("jpg")
    content = save(page, lambda: page.click("#zip"), tmp_path / "all.zip")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [f"holiday {number}-restored.jpg" for number in range(9)]
        sizes = [Image.open(io.BytesIO(archive.read(name))).size for name in archive.namelist()]
    assert sizes == [(20 + number, 16) for number in range(9)]


def test_a_bad_file_is_told_in_a_sentence(new_page: NewPage, server: str, tmp_path: Path) -> None:
    before = json.load(urllib.request.urlopen(f"{server}/health"))["kept"]
    (tmp_path / "<img src=x onerror=alert(1)>.png").write_bytes(b"this is a text")
    page = new_page()
    page.set_input_files("#file", str(tmp_path / "<img src=x onerror=alert(1)>.png"))
    page.wait_for_selector("#told:not([hidden])", timeout=PATIENCE)
    told = page.inner_text("#told")
    assert "not a picture" in told and told.endswith(".") and "/" not in told, "no path of ours"
    assert page.locator("img[src=x]").count() == 0, "a name is text"
    assert json.load(urllib.request.urlopen(f"{server}/health"))["kept"] <= before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(new_page: NewPage, tmp_path: Path, scheme: str) -> None:
    script = axe()
    if script is None:
        pytest.skip("axe-core was not found; `make test-web` installs it with npm.")
    page = new_page(color_scheme=scheme)
    page.add_script_tag(path=str(script))
    _check_access(page, "at rest")
    hand_in(page, small_picture(tmp_path / "a.png", 24, 32))
    choose(page, "noisy", "small")
    restore(page)
    page.click("#map")
    page.click(".numbers summary")
    _check_access(page, "done")
    page.click("#map")
    choose(page, "missing", "blurred", "small")
    page.click("#paint")
    page.click("#expert summary")
    _check_access(page, "painting, with expert settings")
    page.click("#mode-compare")
    _check_access(page, "compare")


def _check_access(page: Any, where: str) -> None:
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    grave = [
        f"{item['id']} ({item['impact']}): {[node['html'][:160] for node in item['nodes']][:3]}"
        for item in found
        if item["impact"] in ("serious", "critical")
    ]
    assert not grave, f"{where}: " + "\n".join(grave)


def test_the_keyboard_suffices(new_page: NewPage) -> None:
    page = new_page()

    def tab_to(selector: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(f"{selector} cannot be reached")

    tab_to("[data-sample=blurred]")
    page.keyboard.press("Enter")
    page.wait_for_selector("#repairs input:enabled", timeout=PATIENCE)
    tab_to("[name=quality]")
    page.keyboard.press("ArrowRight")  # the longest: it still runs when the keys reach its cancel button
    assert page.evaluate("document.querySelector('[name=quality]:checked').value") == "best"
    tab_to("#start")
    page.keyboard.press("Enter")
    page.wait_for_selector("#cancel:not([hidden])", timeout=PATIENCE)
    tab_to("#cancel")
    page.keyboard.press("Space")
    page.wait_for_selector("#told.calm:not([hidden])", timeout=PATIENCE)
    assert page.locator("#start").is_enabled()


def test_touch_pinches_pans_and_slides(new_page: NewPage, tmp_path: Path) -> None:
    page = new_page(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    hand_in(page, small_picture(tmp_path / "a.png", 40, 56))
    choose(page, "noisy")
    restore(page)
    page.evaluate("scrollTo(0, 0)")
    touch = page.context.new_cdp_session(page)
    pane = page.locator(".pane").first.bounding_box()
    x, y = pane["x"] + pane["width"] / 4, pane["y"] + pane["height"] / 3

    def send(kind: str, *points: tuple[float, float]) -> None:
        listed = [{"x": px, "y": py, "id": number} for number, (px, py) in enumerate(points)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": listed})

    before = look_at(page)
    send("touchStart", (x - 20, y), (x + 20, y))
    for apart in (40, 60, 80):
        send("touchMove", (x - apart, y), (x + apart, y))
    send("touchEnd")
    wide = look_at(page)
    assert wide["width"] > 2 * before["width"], "two fingers zoom"
    send("touchStart", (x + 60, y))
    send("touchMove", (x + 20, y))
    send("touchMove", (x - 10, y))
    send("touchEnd")
    assert look_at(page)["x"] < wide["x"] - 20, "one finger moves it"
    handle = page.locator(".slider").first.bounding_box()
    start = handle["x"] + handle["width"] / 2
    send("touchStart", (start, y))
    send("touchMove", (start - 60, y))
    send("touchMove", (start - 90, y))
    send("touchEnd")
    assert int(page.locator(".slider").first.get_attribute("aria-valuenow") or 99) < 40, "and the slider slides"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390, "nothing is wider than the phone"


def test_the_page_is_there_at_once_and_light(new_page: NewPage) -> None:
    page = new_page()
    paint, weight = page.evaluate(
        """() => [
          performance.getEntriesByName("first-contentful-paint")[0].startTime,
          performance.getEntries().reduce((sum, entry) => sum + (entry.transferSize ?? 0), 0),
        ]"""
    )
    print(f"first paint {paint:.0f} ms, {weight / 1e3:.0f} kB")
    assert paint < 1000 and weight < 1e6
