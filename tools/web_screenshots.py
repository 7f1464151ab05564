"""Takes the pictures of docs/web.md: the page at rest, at work, done and comparing, on a laptop and a phone, light and dark.

    python -m tools.web_screenshots ADDRESS [--out docs/images]

ADDRESS is that of a running `leader web`.
"""

import argparse
import io
from pathlib import Path
from typing import Any

from PIL import Image
from tests.web.browsing import FLAGS, PATIENCE, choose, chromium, restore

SCREENS = {"laptop": (1366, 768), "phone": (390, 844)}
SHOTS = (
    ("done", "laptop", "light"),
    ("map", "laptop", "dark"),
    ("brush", "laptop", "dark"),
    ("compare", "laptop", "light"),
    ("rest", "phone", "dark"),
    ("done", "phone", "light"),
)


def keep(page: Any, path: Path) -> None:
    """A screenshot as a JPEG: small, and the colours of the map and of its legend are what they are."""
    image = Image.open(io.BytesIO(page.screenshot()))
    image.convert("RGB").save(path, quality=70, optimize=True, progressive=True)


def shoot(browser: Any, address: str, folder: Path, moment: str, screen: str, scheme: str) -> None:
    """One picture of the page in a moment, on a screen, in a colour scheme."""
    width, height = SCREENS[screen]
    phone = {"has_touch": True, "is_mobile": True} if screen == "phone" else {}
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, bypass_csp=True, **phone)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    page.wait_for_function("[...document.querySelectorAll('.sample img')].every(i => i.naturalWidth > 0)")
    if moment != "rest":
        _act(page, moment)
    page.wait_for_timeout(700)
    keep(page, folder / f"web-{moment}-{screen}-{scheme}.jpg")
    context.close()


def _act(page: Any, moment: str) -> None:
    """Brings the page to a moment, with a sample."""
    page.click(f"[data-sample={'torn' if moment == 'brush' else 'noisy'}]")
    page.wait_for_selector("#repairs input:enabled")
    if moment == "brush":
        page.click("#paint")
        box = page.locator(".frame").first.bounding_box()
        for row in (0.3, 0.62):
            page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + row * box["height"])
            page.mouse.down()
            page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + (row + 0.1) * box["height"], steps=9)
            page.mouse.up()
    elif moment == "compare":
        choose(page, "noisy")
        page.click("#mode-compare")
        page.locator("#side-B").get_by_label("Quality").select_option("best")
        page.click("#start")
        page.wait_for_function("document.querySelectorAll('.pane-title')[1].textContent.includes('best')")
        page.wait_for_function("document.querySelector('#busy').hidden")
    else:
        choose(page, "noisy", "small")
        restore(page)
        page.evaluate("scrollTo(0, 0)")
    if moment == "map":
        page.click("#map")
        page.mouse.move(500, 300)


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address")
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    asked = parser.parse_args()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=FLAGS)
        for moment, screen, scheme in SHOTS:
            shoot(browser, asked.address, asked.out, moment, screen, scheme)


if __name__ == "__main__":
    main()
