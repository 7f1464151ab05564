"""Spoiled files behind the doors that came later: kept runs, output folders with a manifest, referees, maps."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

from tools.fuzz.damage import VALUES, json_text, spoiled, spoiled_json

MANIFEST = Path(".leader") / "leader-manifest.jsonl"
MAPS = ("map.png", "map.npy", "map.16.png", "map.fade.png", "map.pdf", "map.svg", "map.jpg", "map.tif", "map", ".fade.png")


def kept_run(rng: Random, seeds: Path, folder: Path) -> list[str]:
    """`--settings` with a run that --json kept, changed since."""
    shutil.copy(seeds / "pictures" / "rgb.png", folder)
    content = json.loads(rng.choice(sorted((seeds / "runs").iterdir())).read_text())
    path = folder / rng.choice(("run.json", "run.json", "run.toml", "run"))
    path.write_bytes(json_text(spoiled_json(content, rng), rng))
    extra = rng.choice(([], [], [], ["--force"], ["--sigma", "0.1"], ["--no-check"], ["--map", str(folder / "map.npy")]))
    return ["restore", str(folder / "rgb.png"), str(folder / "out.png"), "--settings", str(path), *extra]


def whole_folder(rng: Random, seeds: Path, folder: Path) -> list[str]:
    """A folder of good and bad pictures into one that has a manifest of strange lines already."""
    source, out = folder / "in", folder / "out"
    source.mkdir()
    for number in range(rng.randrange(4)):
        picture = rng.choice(sorted((seeds / "pictures").iterdir()))
        data = picture.read_bytes()
        name = rng.choice((f"{number}{picture.suffix}", f"{number} é.png", f"deep/{number}.png", "a.png.png"))
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_bytes(spoiled(data, rng) if rng.random() < 0.5 else data)
    if rng.random() < 0.7:
        place = out / rng.choice((MANIFEST.name, str(MANIFEST)))
        place.parent.mkdir(parents=True)
        place.write_bytes(b"".join(_line(rng) for _ in range(rng.randrange(5))))
    words = ["--jobs", "0", "--sigma", "0.1", "--steps", "1", "--task", rng.choice(("denoise", "denoise", "sr", "inpaint"))]
    for option, values in (("--maps", ("png", "npy", "x", "")), ("--method", ("ddnm", "ddpg"))):
        if rng.random() < 0.3:
            words += [option, rng.choice(values)]
    words += [flag for flag in ("--report", "--force", "--keep-failed", "--no-check") if rng.random() < 0.2]
    return ["restore", str(source), str(out), *words]


def _line(rng: Random) -> bytes:
    """A line of a manifest, more or less."""
    file = {"name": "0.png", "sha256": "0" * 64, "bytes": rng.choice((1, 2.5, float("inf"), "7", None, 10**30))}
    content: dict[str, Any] = {
        "leader": "folder 1",
        "name": rng.choice(("0.png", "../0.png", "", "x" * 5000, 3)),
        "status": rng.choice(("done", "refused", "failed", "x")),
        "content": "0" * 64,
        "settings": "1" * 64,
        "stamp": rng.choice(("1", None)),
        "files": {"picture": file},
    }
    if rng.random() < 0.3:
        content["leader"] = rng.choice(VALUES)
    if rng.random() < 0.5:
        content = spoiled_json(content, rng)
    text = json_text(content, rng)
    return (spoiled(text, rng) if rng.random() < 0.1 else text) + (b"\n" if rng.random() < 0.9 else b"")


def referee(rng: Random, seeds: Path, folder: Path) -> list[str]:
    """A checkpoint with a referee and factors beside it, one of them spoiled; or the commands that make them."""
    for name in ("net.safetensors", "net.json"):
        shutil.copy(seeds / "priors" / name, folder)
    for name in ("net.referee", "net.referee.json"):
        shutil.copy(seeds / "trust" / name, folder)
    shutil.copy(seeds / "pictures" / "rgb.png", folder)
    judge, factors = folder / "net.referee", folder / "net.referee.json"
    if rng.random() < 0.4:
        judge.write_bytes(spoiled(judge.read_bytes(), rng))
    else:
        factors.write_bytes(json_text(spoiled_json(json.loads(factors.read_text()), rng), rng))
    prior = ["--prior", str(folder / "net.safetensors")]
    if rng.random() < 0.15:
        command = rng.choice(("calibrate", "fit-trust"))
        minutes = ["--minutes", rng.choice(("0", "-1", "nan", "x"))]
        return [command, "--images", str(folder), *prior, *minutes]
    chosen = [word for name in rng.sample(MAPS, rng.randrange(1, 3)) for word in ("--map", str(folder / name))]
    run = ["--task", "denoise", "--sigma", "0.1", "--steps", "1", "--plugin", rng.choice(("none", "leader"))]
    return ["restore", str(folder / "rgb.png"), str(folder / "out.png"), *prior, *run, *chosen]
