"""The page's scripts without a browser: a visit in Node, with a small document in the place of the browser's."""

import json
import shutil
import subprocess
import zipfile
from importlib import resources
from pathlib import Path

import pytest

from leader.web.limits import Limits
from leader.web.site import Site

NODE = shutil.which("node")


@pytest.mark.skipif(NODE is None, reason="needs Node")
def test_what_the_scripts_ask_of_the_server_and_show(tmp_path: Path) -> None:
    routes = pytest.importorskip("leader.web.routes", reason="the page needs the extra web")
    site = Site(Limits())
    about = routes.about_site(site)
    site.close()
    shutil.copytree(str(resources.files("leader.web") / "static"), tmp_path / "static")
    (tmp_path / "static/package.json").write_text('{"type": "module"}')
    words = [str(NODE), str(Path(__file__).with_name("visit.mjs")), str(tmp_path / "static"), json.dumps(about)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    with zipfile.ZipFile(tmp_path / "static/all.zip") as archive:
        assert archive.testzip() is None
        found = {name: archive.read(name).decode().rstrip() for name in archive.namelist()}
    assert list(found.values()) == [f"api/export/{token}/jpg?quality=55" for token in ("k1", "r1", "s1", "x3")]
    assert list(found) == ["kept-restored.jpg", "my holiday-restored.jpg", "my holiday-restored-2.jpg", "ü_c_d.v2-restored.jpg"]
