"""Takes the pictures of docs/web.md: the page at rest, running and done, on a laptop and a phone, in the light and in the dark.

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
SCHEMES = ("light", "dark")


def keep(page: Any, path: Path, whole: bool = False) -> None:
    """A screenshot as a JPEG: small, and the colours of the map and of its legend are what they are."""
    image = Image.open(io.BytesIO(page.screenshot(full_page=whole)))
    image.convert("RGB").save(path, quality=85, subsampling=0, optimize=True, progressive=True)


def shoot(browser: Any, address: str, folder: Path, screen: str, scheme: str) -> None:
    width, height = SCREENS[screen]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, has_touch=screen == "phone")
    page = context.new_page()
    page.goto(address, timeout=PATIENCE)
    page.wait_for_selector("#start", timeout=PATIENCE)
    page.wait_for_function("[...document.querySelectorAll('.sample img')].every(i => i.naturalWidth > 0)", timeout=PATIENCE)
    keep(page, folder / f"web-rest-{screen}-{scheme}.jpg")
    page.click("[data-sample=small]")
    page.wait_for_selector("#seen .given img", timeout=PATIENCE)
    page.wait_for_function("/about/.test(document.querySelector('#quality').innerText)", timeout=PATIENCE)
    choose(page, "quality", "Draft")
    page.click("#start")
    page.wait_for_selector("#out .preview", timeout=PATIENCE)
    if screen == "phone":
        page.locator("#out").scroll_into_view_if_needed()
    else:
        page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(300)
    keep(page, folder / f"web-running-{screen}-{scheme}.jpg")
    finished(page)
    page.wait_for_timeout(500)
    if screen == "phone":
        page.evaluate("document.querySelector('#out').scrollIntoView()")
    keep(page, folder / f"web-done-{screen}-{scheme}.jpg", whole=screen == "laptop")
    context.close()


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address")
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    asked = parser.parse_args()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=FLAGS)
        for screen in SCREENS:
            for scheme in SCHEMES:
                shoot(browser, asked.address, asked.out, screen, scheme)


if __name__ == "__main__":
    main()
