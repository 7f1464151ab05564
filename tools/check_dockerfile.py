"""Follows the Dockerfile line by line in a fresh folder, where no container tool is at hand.

    python tools/check_dockerfile.py [--keep]

Every instruction is carried out as far as it can be without a container: files are copied from what git knows and
.dockerignore lets through, commands run with the image's folders replaced by ones in a temporary folder, and the last command
is started as an ordinary user (where this program is root) until its health check passes. What cannot be followed, the base
image and the making of the user, is compared with this machine instead: the version of Python, and that the user is no root.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PORT = "7860"
PATIENCE = 180.0
"""Seconds until the server must be healthy."""


class WrongLine(Exception):  # noqa: N818  # said to a person, not raised to a caller
    """A line of the Dockerfile that cannot be right."""


@dataclass
class Image:
    """What the lines so far have made.

    root    stands for / of the image; names of folders there are replaced by folders below it
    port    stands for the port of the image
    """

    root: Path
    port: str
    folder: Path = Path("/")
    environment: dict[str, str] = field(default_factory=dict)
    made_users: set[str] = field(default_factory=set)
    user: str = "root"
    exposed: set[str] = field(default_factory=set)
    health: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    def moved(self, text: str) -> str:
        """A text with the image's own folders and port replaced by those of the trial."""
        return re.sub(r"(?<![\w.])(/opt|/tmp|/home)(?=/)", f"{self.root}\\1", text).replace(PORT, self.port)

    def path(self, name: str) -> Path:
        whole = Path(name) if name.startswith("/") else self.folder / name
        return self.root / whole.relative_to("/")


def instructions(text: str) -> list[tuple[str, str]]:
    """(instruction, rest) of every line that says something."""
    lines = [line.strip() for line in text.replace("\\\n", " ").splitlines()]
    return [(first, rest.strip()) for first, _, rest in (line.partition(" ") for line in lines if line and line[0] != "#")]


def follow(image: Image, word: str, rest: str) -> None:
    """Carries one instruction out."""
    match word:
        case "FROM":
            wanted = re.match(r"python:(\d+\.\d+)", rest)
            here = f"{sys.version_info.major}.{sys.version_info.minor}"
            if wanted is None:
                raise WrongLine(f"the base image must be one of Python; found {rest}")
            print(f"  (not followed: this machine has Python {here}, the image {wanted[1]})")
        case "WORKDIR":
            image.folder = Path(rest)
            image.path(".").mkdir(parents=True, exist_ok=True)
        case "COPY":
            _copy(image, rest.split())
        case "RUN" if rest.startswith("useradd"):
            image.made_users.add(rest.split()[-1])
        case "RUN":
            _run(image, rest)
        case "ENV":
            name, _, value = rest.partition("=")
            known = {**os.environ, **image.environment}
            image.environment[name] = re.sub(r"\$(\w+)", lambda found: known[found[1]], image.moved(value))
        case "USER":
            if rest not in image.made_users:
                raise WrongLine(f"the user {rest} was not made by a line before")
            image.user = rest
        case "EXPOSE":
            image.exposed.add(rest)
        case "HEALTHCHECK":
            image.health = json.loads(rest.removeprefix("CMD "))
        case "CMD":
            image.command = json.loads(rest)
        case _:
            raise WrongLine(f"the instruction {word} is not known here")


def _copy(image: Image, names: list[str]) -> None:
    *sources, target = names
    listed = subprocess.run(["git", "ls-files", *sources], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [Path(name) for name in listed.stdout.split("\n") if name]
    if not files:
        raise WrongLine(f"nothing of {' '.join(sources)} is known to git")
    allowed = _allowed()
    for source in sources:
        if source not in allowed:
            raise WrongLine(f".dockerignore keeps {source} out")
    for file in files:
        inside = file.relative_to(sources[0]) if (ROOT / sources[0]).is_dir() else Path(file.name)
        place = image.path(target) / inside
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, place)


def _allowed() -> set[str]:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    return {line[1:] for line in lines if line.startswith("!")}


def _run(image: Image, rest: str) -> None:
    environment = {**os.environ, **image.environment}
    words = image.moved(rest)
    done = subprocess.run(["sh", "-c", words], cwd=image.path("."), env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise WrongLine(f"the command ended with {done.returncode}:\n{done.stderr[-2000:]}")


def start(image: Image) -> None:
    """Starts the last command as an ordinary user and waits until the health check passes."""
    if image.user == "root":
        raise WrongLine("the command would run as root")
    if PORT not in image.exposed or PORT not in image.command:
        raise WrongLine(f"the port {PORT} is not exposed or not the one of the command")
    image.path("/tmp/x").parent.mkdir(parents=True, exist_ok=True)
    ordinary = pwd.getpwnam("nobody") if os.getuid() == 0 else None
    if ordinary is not None:
        os.chmod(image.root, 0o755)
        os.chown(image.path("/tmp"), ordinary.pw_uid, ordinary.pw_gid)
    environment = {**os.environ, **image.environment, "TMPDIR": str(image.path("/tmp")), "HOME": str(image.path("/tmp"))}
    words = [image.moved(word) for word in image.command]
    program = shutil.which(words[0], path=environment["PATH"])
    if program is None or not program.startswith(str(image.root)):
        raise WrongLine(f"the command {words[0]} is not one that the image installed")
    number = None if ordinary is None else ordinary.pw_uid
    group = None if ordinary is None else ordinary.pw_gid
    try:
        subprocess.run([program, "--help"], env=environment, user=number, group=group, check=True, capture_output=True)
    except PermissionError:
        print("This machine's Python lies where an ordinary user cannot read it: the last command runs as you.")
        number = group = None
    server = subprocess.Popen([program, *words[1:]], env=environment, cwd=image.path("."), user=number, group=group)
    try:
        _until_healthy(image, server, environment)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)
    left = [path.name for path in image.path("/tmp").iterdir() if path.name.startswith("leader-web")]
    if left:
        raise WrongLine(f"the server left files behind: {', '.join(left)}")


def _until_healthy(image: Image, server: subprocess.Popen[bytes], environment: dict[str, str]) -> None:
    check = [image.moved(word) for word in image.health]
    check[0] = shutil.which(check[0], path=environment["PATH"]) or check[0]
    end = time.monotonic() + PATIENCE
    while server.poll() is None and time.monotonic() < end:
        if subprocess.run(check, env=environment, capture_output=True).returncode == 0:
            return
        time.sleep(1)
    raise WrongLine("the health check did not pass")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true", help="leave the folder of the trial where it is")
    asked = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    folder = Path(tempfile.mkdtemp(prefix="leader-image-"))
    image = Image(folder, port)
    try:
        for word, rest in instructions((ROOT / "Dockerfile").read_text(encoding="utf-8")):
            print(word, rest, flush=True)
            follow(image, word, rest)
        start(image)
    except WrongLine as error:
        sys.exit(f"Wrong: {error}")
    finally:
        if not asked.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print("Every line was followed, and the server became healthy as an ordinary user.")


if __name__ == "__main__":
    main()
