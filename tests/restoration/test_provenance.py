"""What a restored file says of itself: stable, machine readable, without names of files; and where faces may be invented."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import leader
from leader.operators import gaussian_kernel
from leader.pictures import Picture, read_picture, write_picture
from leader.pictures.exif import ASCII, Tag
from leader.pictures.metadata import Metadata
from leader.restoration import invention
from leader.restoration.repeat import write_stamp
from leader.restoration.restore import prepare, restore
from leader.restoration.restored import Restoration
from tests.cheap_prior import CheapPrior, photograph

PLACE = Metadata({271: Tag(ASCII, b"Maker\0")}, {36867: Tag(ASCII, b"2024:05:06 07:08:09\0")}, {1: Tag(ASCII, b"N\0")})


def run(image: Any, task: str, **options: Any) -> Restoration:
    return restore(image, task, prior=CheapPrior(), steps=2, check=False, **{"sigma": 0.02, **options})


def record_in(path: Path) -> dict[str, Any]:
    with Image.open(path) as image:
        image.load()
        found: dict[str, Any] = json.loads(image.getexif().get_ifd(34665)[37395])
    return found


def test_a_result_says_how_it_was_made_and_keeps_what_its_file_said(tmp_path: Path) -> None:
    secret = tmp_path / "private name.jpg"
    write_picture(secret, Picture(photograph(16, 20).permute(1, 2, 0).numpy(), metadata=PLACE), location=True)
    np.save(tmp_path / "my kernel.npy", np.ones((3, 3)))
    results = {
        "sr": run(secret, "sr", factor=2, down="average", seed=7),
        "deblur": run(secret, "deblur", kernel=tmp_path / "my kernel.npy", kernel_doubt=0, method="ddnm", plugins=("satp",)),
    }
    for task, result in results.items():
        for suffix in (".jpg", ".png", ".webp", ".tif", ".avif"):
            result.save(tmp_path / f"out{suffix}")
            assert b"private" not in (tmp_path / f"out{suffix}").read_bytes()
            record = record_in(tmp_path / f"out{suffix}")
            assert record["program"] == f"leader {leader.__version__}" and record["task"] == task
            assert record["invented"] is True and record["sigma"] == 0.02 and record["steps"] == 2
            assert record["prior"] == "other" and record["weights"] is None
            kept = read_picture(tmp_path / f"out{suffix}").metadata
            assert kept.main[271] == PLACE.main[271] and kept.exif[36867] == PLACE.exif[36867] and kept.gps == {}
            words = kept.main[270].data.decode().rstrip("\0")
            assert words == (
                f"Restored with leader {leader.__version__}: task {task}, method {record['method']}, seed {record['seed']}; "
                "parts are invented."
            )
        if task == "sr":
            assert record["options"] == {"down": "average", "factor": 2} and record["seed"] == 7
        else:
            assert record["options"] == {"kernel_doubt": 0} and record["plugins"] == ["satp"] and record["method"] == "ddnm"
    results["sr"].save(tmp_path / "placed.png", location=True)
    assert read_picture(tmp_path / "placed.png").metadata.gps == PLACE.gps


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        run(photograph(16, 20), "denoise", sigma=0.1 / 3).save(tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert record_in(tmp_path / "a.png")["sigma"] == 0.0333333


def test_a_prior_by_name_is_named_and_one_by_path_is_not() -> None:
    made = run(photograph(16, 16), "denoise")

    def prior(source: str) -> dict[str, Any]:
        origin = replace(made.origin, prior=source, prior_sha256="0123456789abcdef" * 4)
        found: dict[str, Any] = json.loads(write_stamp(made.posed, made.result, origin).record)
        return {key: found[key] for key in ("prior", "weights")}

    assert prior("embedded") == {"prior": "embedded", "weights": "0123456789abcdef"}
    assert prior("ffhq-256")["prior"] == "ffhq-256"
    assert prior("/home/someone/faces.pt")["prior"] == "other"
    posed = replace(made.posed, options={"down": "bicubic", "file": "/home/me/x.png", "name": "Holiday", "k": torch.ones(2)})
    assert json.loads(write_stamp(posed, made.result, made.origin).record)["options"] == {"down": "bicubic"}


def test_notes_of_the_file_reach_the_run() -> None:
    damaged = Picture(photograph(16, 16).permute(1, 2, 0).numpy(), metadata=Metadata(notes=("It is damaged.",)))
    assert run(damaged, "denoise").notes[0] == "It is damaged."


def said(task: str, **options: Any) -> int:
    ready = prepare(photograph(48, 48), task, prior=CheapPrior(), steps=2, sigma=0.02, **options)
    return sum(note == invention.NOTE for note in ready.notes)


def test_one_sentence_where_faces_are_likely_to_be_invented() -> None:
    assert [said("sr", factor=factor) for factor in (1, 2, 3, 4)] == [0, 0, 1, 1]
    assert said("denoise") == said("colourise") == 0
    assert [said("deblur", kernel=f"gaussian:{std}") for std in (1, 1.7, 2, 3)] == [0, 0, 1, 1]
    assert said("deblur", kernel=np.ones((1, 9))) == 0
    for side, count in ((16, 0), (17, 1)):
        mask = np.ones((48, 48))
        mask[10 : 10 + side, 5 : 5 + side] = 0
        assert said("inpaint", mask=mask) == count
    thin = np.ones((48, 48))
    thin[20:24] = 0  # a scratch
    assert said("inpaint", mask=thin) == 0
    assert said("inpaint", mask="random:0.8:1") == 0 and said("inpaint", mask="random:0.92:1") == 1
    alpha = np.ones((48, 48), np.float32)
    alpha[:20, :20] = 0
    transparent = Picture(photograph(48, 48).permute(1, 2, 0).numpy(), alpha)
    assert invention.NOTE in prepare(transparent, "inpaint", prior=CheapPrior(), steps=2, sigma=0.02).notes


@pytest.mark.parametrize(("std", "strong"), [(1.75, False), (1.85, True)])
def test_a_gaussian_is_strong_where_a_ninth_of_the_frequencies_is_left(std: float, strong: bool) -> None:
    """|K| = exp(-2 pi^2 s^2 f^2) >= 0.1 on a disk of area 0.366 / s^2, which is 1 / 9 at s = 1.815."""
    assert invention.strong_blur(gaussian_kernel(std, 25)) is strong
    far = torch.zeros(151, 151)
    far[150, 150] = 1  # a kernel of more than 128 pixels is judged whole
    assert not invention.strong_blur(far) and invention.strong_blur(torch.ones(151, 151))
