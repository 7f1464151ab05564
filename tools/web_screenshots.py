"""Takes the pictures of docs/web.md: the page at rest and done, on a laptop and a phone, in the light and in the dark.

    python -m tools.web_screenshots ADDRESS [--out docs/images]

ADDRESS is that of a running `leader web`.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Any

from PIL import Image
from tests.web.browsing import FLAGS, PATIENCE, choose, chromium, finished

SCREENS = {"laptop": (1280, 860), "phone": (390, 844)}
SHOTS = (("rest", "laptop", "light"), ("rest", "phone", "dark"), ("done", "laptop", "dark"), ("done", "phone", "light"))


def keep(page: Any, path: Path, whole: bool = False) -> None:
    """A screenshot as a JPEG: small, and the colours of the map and of its legend are what they are."""
    image = Image.open(io.BytesIO(page.screenshot(full_page=whole)))
    image.convert("RGB").save(path, quality=85, subsampling=0, optimize=True, progressive=True)


def shoot(browser: Any, address: str, folder: Path, moment: str, screen: str, scheme: str) -> None:
    path = folder / f"web-{moment}-{screen}-{scheme}.jpg"
    width, height = SCREENS[screen]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, has_touch=screen == "phone")
    page = context.new_page()
    page.goto(address, timeout=PATIENCE)
    page.wait_for_selector("#start", timeout=PATIENCE)
    page.wait_for_function("[...document.querySelectorAll('.sample img')].every(i => i.naturalWidth > 0)", timeout=PATIENCE)
    if moment == "done":
        _run_draft(page)
        if screen == "phone":
            page.evaluate("document.querySelector('#out').scrollIntoView()")
    keep(page, path, whole=moment == "done" and screen == "laptop")
    context.close()


def _run_draft(page: Any) -> None:
    """Restores the first sample and waits for the result."""
    page.click("[data-sample=small]")
    page.wait_for_selector("#seen .given img", timeout=PATIENCE)
    page.wait_for_function("/about/.test(document.querySelector('#quality').innerText)", timeout=PATIENCE)
    choose(page, "quality", "Draft")
    page.click("#start")
    finished(page)
    page.wait_for_timeout(500)


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
