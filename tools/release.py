"""The release checklist as a command: what must hold before a version is published.

    python tools/release.py                  everything, on every Python from 3.10 to 3.13 that is found
    python tools/release.py --python 3.12    one of them; --no-install leaves out the environments

- one version in pyproject.toml, leader.__version__, CITATION.cff and at the top of CHANGELOG.md, with a date
- a wheel below 15 MB that holds weights, sample pictures, type marker and notices, and no tests
- the wheel, installed into an empty environment, restores a picture in an empty folder with no repository around; every Python
  gives the same bytes
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
MOST_BYTES = 15_000_000
NOTICES = ("LICENSE", "THIRD_PARTY.md")
NEEDED = (
    *("leader/py.typed", "leader/priors/weights/pyramid.safetensors", "leader/priors/weights/pyramid.referee"),
    "leader/priors/weights/pyramid.int8",
    *("leader/metrics/weights/lpips_alex.safetensors", "leader/metrics/weights/LICENSES.md", "leader/cli/help.md"),
)
PICTURE = """
import numpy as np
from PIL import Image
rows, columns = np.mgrid[0:40, 0:56]
clean = 127 + 80 * np.sin(rows / 7)[..., None] * np.cos(columns[..., None] / (5 + np.arange(3)))
Image.fromarray((clean + np.random.default_rng(0).normal(0, 20, clean.shape)).clip(0, 255).astype(np.uint8)).save("noisy.png")
"""


class ReleaseError(Exception):
    """Something that must hold does not."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="release", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", choices=PYTHONS, help="only this one; may be repeated")
    parser.add_argument("--no-install", action="store_true", help="leave out the environments")
    parser.add_argument("--draft", action="store_true", help="the changelog may still say that the version is unreleased")
    asked = parser.parse_args(arguments)
    try:
        version = check_version(ROOT, asked.draft)
        print(f"version {version}: pyproject.toml, leader.__version__, CITATION.cff and CHANGELOG.md agree")
        with tempfile.TemporaryDirectory(prefix="release-") as folder:
            wheel = build_wheel(Path(folder) / "dist")
            check_wheel(wheel)
            print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, with notices")
            if not asked.no_install:
                try_wheel(wheel, version, asked.python or PYTHONS, Path(folder))
            shutil.copy(wheel, _make_folder(ROOT / "out"))
    except ReleaseError as error:
        print(f"Not ready: {error}", file=sys.stderr)
        return 1
    print(f"ready: out/{wheel.name}")
    return 0


def check_version(root: Path, draft: bool = False) -> str:
    """The one version that all files name."""
    patterns = {
        "pyproject.toml": r'^version = "(.+)"$',
        "src/leader/__init__.py": r'^__version__ = "(.+)"$',
        "CITATION.cff": r"^version: (.+)$",
        "CHANGELOG.md": r"^## (\S+)",
    }
    found = {}
    for name, pattern in patterns.items():
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        found[name] = match[1] if match else None
    if len(set(found.values())) > 1 or None in found.values():
        raise ReleaseError(f"the versions differ ({', '.join(f'{name}: {value}' for name, value in found.items())})")
    version = str(found["pyproject.toml"])
    dated = re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    if not dated and not draft:
        raise ReleaseError(f"CHANGELOG.md gives {version} no date: write '## {version} (YYYY-MM-DD)', or try with --draft")
    return version


def build_wheel(folder: Path) -> Path:
    """Builds the wheel from a copy of the working tree: what an earlier build left behind would come along."""
    source = _make_folder(folder / "source")
    for name in ("pyproject.toml", "README.md", *NOTICES):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "src" / "leader", source / "src" / "leader", ignore=shutil.ignore_patterns("__pycache__"))
    _run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(source)], folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def check_wheel(wheel: Path) -> None:
    if wheel.stat().st_size > MOST_BYTES:
        raise ReleaseError(f"{wheel.name} has {wheel.stat().st_size / 1e6:.1f} MB; at most {MOST_BYTES / 1e6:.0f} are wanted")
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
    notices = {Path(name).name for name in names if ".dist-info/" in name}
    missing = [name for name in NEEDED if name not in names] + [name for name in NOTICES if name not in notices]
    if missing:
        raise ReleaseError(f"{wheel.name} lacks {', '.join(missing)}")
    strange = [name for name in names if not name.startswith(("leader/", "leader_ir-")) or name.endswith(".pyc")]
    if strange:
        raise ReleaseError(f"{wheel.name} holds {strange[0]}, which does not belong in it")


def try_wheel(wheel: Path, version: str, wanted: Sequence[str], folder: Path) -> None:
    """Installs the wheel for every Python that is found, and restores a picture with it."""
    results = {}
    for name in wanted:
        python = find_python(name)
        if python is None:
            print(f"Python {name}: not found, not tried")
            continue
        results[name] = _try_one(wheel, version, python, _make_folder(folder / name))
        print(f"Python {name}: restored, {results[name][:12]}")
    if not results:
        raise ReleaseError("no Python was found to try the wheel with")
    if len(set(results.values())) > 1:
        raise ReleaseError("Pythons give different pictures")


def find_python(version: str) -> str | None:
    """An interpreter that says it is of this version: on the path, or one of pyenv's."""
    for candidate in _list_candidates(version):
        command = [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        try:
            found = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError:
            continue
        if found.stdout.strip() == version:
            return candidate
    return None


def _list_candidates(version: str) -> Iterator[str]:
    yield from filter(None, [shutil.which(f"python{version}"), sys.executable])
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from (str(path) for path in sorted(home.glob(f"versions/{version}.*/bin/python")))


def _try_one(wheel: Path, version: str, python: str, folder: Path) -> str:
    """The hash of a picture restored by the wheel in an environment of its own."""
    _run([python, "-m", "venv", str(folder / "venv")], folder)
    binaries = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    install = [str(binaries / "python"), "-m", "pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt")]
    _run([*install, str(wheel)], folder)
    place = _make_folder(folder / "empty")
    _run([str(binaries / "python"), "-c", PICTURE], place)
    said = _run([str(binaries / "leader"), "--version"], place).strip()
    if said != version:
        raise ReleaseError(f"the installed command says version {said}")
    _run([str(binaries / "leader"), "restore", "noisy.png", "clean.png", "--map", "map.png", "--threads", "1"], place)
    if not (place / "map.png").is_file():
        raise ReleaseError("the installed command wrote no map")
    return hashlib.sha256((place / "clean.png").read_bytes()).hexdigest()


def _run(command: Sequence[str], folder: Path) -> str:
    """Runs a command in a folder, without the variables that would lead Python to the repository."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"'{' '.join(command[:4])} ...' ended with {done.returncode}: {(done.stderr or done.stdout)[-600:]}")
    return done.stdout


def _make_folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


if __name__ == "__main__":
    raise SystemExit(main())
