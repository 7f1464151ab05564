"""One server and one browser for all tests of a session; every test has a browser context, a client, of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from leader.web.limits import Limits
from leader.web.site import Site
from tests.web.browsing import FLAGS, PATIENCE, chromium, serving

NewPage = Callable[..., Any]


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A small site, of whose files nothing is left."""
    place = tmp_path_factory.mktemp("site")
    monkeypatch.setattr("tempfile.tempdir", str(place))
    made = Site(Limits(upload_bytes=100_000, pixels=10_000))
    yield made
    made.close()
    assert not list(place.iterdir())


@pytest.fixture(scope="session")
def server_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="session")
def server(server_folder: Path) -> Iterator[str]:
    pytest.importorskip("starlette", reason="the page needs the extra web")
    with serving(server_folder) as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    found = chromium()
    if found is None:
        pytest.skip("No Chromium was found; install Debian's package chromium to run the tests of the page.")
    playwright = pytest.importorskip("playwright.sync_api", reason="the tests of the page need playwright")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=found, args=FLAGS, timeout=PATIENCE)
        yield opened
        opened.close()


@pytest.fixture
def new_page(server: str, browser: Any) -> Iterator[NewPage]:
    """Opens the page as a new client; at the end, no request went anywhere but to this machine, and no script failed.

    The policy of the page is set aside for the test's own scripts, unless `bypass_csp` is False.
    """
    contexts, foreign, broken = [], [], []

    def watch(request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.hostname != "127.0.0.1":
            foreign.append(request.url)

    def opened(**options: Any) -> Any:
        usual = {"viewport": {"width": 1366, "height": 768}, "bypass_csp": True}
        context = browser.new_context(**{**usual, **options})
        contexts.append(context)
        context.set_default_timeout(60_000)
        context.on("request", watch)
        page = context.new_page()
        page.on("pageerror", lambda error: broken.append(str(error)))
        page.goto(f"{server}/", timeout=PATIENCE)
        page.wait_for_selector("body[data-ready]", timeout=PATIENCE)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not foreign and not broken
