"""Experiment and record files that are wrong in any way end in one sentence."""

import random
from pathlib import Path
from typing import Any

import pytest
from tools.fuzz.damage import spoiled_text
from typer.testing import CliRunner

from leader.bench.experiment_file import load_experiment
from leader.bench.records import Store, canonical
from leader.bench.run import dry_run
from leader.cli.app import app
from leader.errors import LeaderError
from tests.bench.tiny import TOML, write_tiny

RECORD: dict[str, Any] = {
    "key": "a",
    "asked": {"image": "i", "size": 64},
    "revisions": {"ddnm": 1},
    "package": "0.1.0",
    "psnr": 20.5,
    "lpips": None,
    "pictures": {"restored": "a-restored.png"},
    "trace": [[900, 1, 0.5], [0, 1, None]],
}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("steps = 5", 'steps = "five"', "'steps' of the form 'small of tiny.toml' must be a whole number"),
        ("steps = 5", "steps = 0", "must be in [1, 100000]; found 0"),
        ("size = 64", "size = 1000000", "in [1, 4096]; found 1000000"),
        *(("timing = false", f"seeds = {value}", "seed") for value in ("[]", "[-1]", '"x"')),
        ("timing = false", 'keep = ["everything"]', "thing to keep 'everything'"),
        ('fit = "crop"', 'fit = "crap"', "did you mean 'crop'"),
        ('title = "Tiny"', "title = 3", "'title' of the experiment 'tiny.toml' must be a word or nothing; found 3"),
        ('tasks = ["sr", "deblur"]', 'tasks = ["sr", "sr"]', "distinct labels"),
        ('name = "sr"', "", "The task 'sr' lacks 'name'"),
        ('name = "sr"', 'name = "rs"', "task 'rs'"),
        ("options = { factor = 4 }", "options = 4", "'options' in the task 'sr' must be a table"),
        ("options = { factor = 4 }", "options = { factor = nan }", "a finite number"),
        *(("options = { factor = 4 }", f"options = {{ factor = {value} }}", "a finite number") for value in ("[nan]", "[[4]]")),
        ("options = { factor = 4 }", 'options = { factor = "four" }', "The task 'sr' cannot be built|factor"),
        ("sigma = 0.05", "sigma = -1", "in [0, 10]; found -1"),
        ('methods = ["ddpg"]', 'methods = "ddpg"', "must be a list, each entry a word"),
        ('methods = ["ddpg"]', 'methods = ["ddpg"]\nplugins = ["satp"]', "each entry a list, each entry a word"),
        ('methods = ["ddpg"]', 'methods = ["ddpg"]\nsettings = { zeta = "x" }', "setting 'zeta' of the method 'ddpg'"),
        ('methods = ["ddpg"]', 'methods = ["ddpg"]\nsettings = { satp = 1 }', "must be a table"),
        ('methods = ["ddpg"]', 'methods = ["ddpg"]\nvary = { eta = 0.5 }', "must be a list of texts or numbers"),
        ('methods = ["ddpg"]', 'methods = ["ddpg"]\nlabel = "a}"', "braces"),
        ("satp = { budget = 0.3, eta = 2.0 }", "satp = { budget = [0.3] }", "setting 'budget' of the plug-in 'satp'"),
        (
            "[form.small]",
            '[form.small.methods.ddpg]\nsteps = "x"\n[form.small]',
            "of the method 'ddpg' of the form",
        ),
        ('methods = ["ddpg"]', 'methods = ["ddpg"]\ncount = 0', "'count' of the block of rows"),
        ('methods = ["ddpg"]', 'methods = ["ddpg"]\nrows = [3]', "must be a table; found 3"),
        ('methods = ["ddpg"]', 'methods = ["ddpg"]\nrows = 3', "no entry in the block of rows|'rows'"),
        ("[form.small]", "[table]\nmetrics = 3\n[form.small]", "'metrics' of the table '[table] of tiny.toml'"),
        ("[form.small]", '[figure]\nkind = "pie"\n[form.small]', "unknown kind 'pie'"),
        ("[[rows]]", "[rows]", "'rows' of the experiment 'tiny.toml' must be a list|not valid TOML"),
    ],
)
def test_a_wrong_entry_is_told_in_one_sentence(tmp_path: Path, before: str, after: str, words: str) -> None:
    path = write_tiny(tmp_path, TOML.replace(before, after))
    with pytest.raises(LeaderError) as told:
        dry_run(load_experiment(path), Store(tmp_path / "records", "tiny-small"), lambda line: None)
    text = str(told.value)
    assert any(word in text for word in words.split("|")), text
    assert "\n" not in text and len(text) < 400


@pytest.mark.parametrize(
    ("content", "word"),
    [
        *(('title = "Größe"'.encode("latin-1"), "UTF-8"), (b"a = " + b"[" * 5000 + b"]" * 5000, "too deeply")),
        *((b"a = " + b"9" * 5000, "not valid TOML"), (b"\x00\xff", "UTF-8"), (b"# " + b"x" * 1_100_000, "over 1 MB")),
        (b"", "lacks 'tasks'"),
    ],
    ids=["latin-1", "deep", "huge number", "binary", "huge", "empty"],
)
def test_files_that_are_no_experiments(tmp_path: Path, content: bytes, word: str) -> None:
    (tmp_path / "tiny.toml").write_bytes(content)
    with pytest.raises(LeaderError, match=word):
        load_experiment(tmp_path / "tiny.toml")


def test_garbled_experiments_never_end_in_a_traceback(tmp_path: Path) -> None:
    path = write_tiny(tmp_path)
    chance = random.Random(1)
    refused = 0
    for _ in range(300):
        text = TOML.replace("IMAGES", str(tmp_path / "images"))
        path.write_bytes(spoiled_text(text, chance).encode(chance.choice(["utf-8", "utf-8", "latin-1"]), "replace"))
        try:
            dry_run(load_experiment(path), Store(tmp_path / "records", "tiny-small"), lambda line: None)
        except LeaderError as error:
            refused += 1
            assert "\n" not in str(error)
    assert 150 < refused < 300


@pytest.mark.parametrize(
    "wrong",
    [
        *([], {"key": 3}, {"asked": []}, {"psnr": "20"}, {"psnr": True}, {"calls": [1]}),
        *({"pictures": {"restored": "../secret.png"}}, {"pictures": []}, {"trace": [[1, 2]]}, {"trace": [[1, 2, "x"]]}),
        *({"frames": 3}, {"commit": 1}, {"package": None}),
    ],
)
def test_a_line_that_is_no_record_is_told(tmp_path: Path, wrong: Any) -> None:
    good = canonical(RECORD) + "\n"
    (tmp_path / "x.jsonl").write_text(good)
    assert set(Store(tmp_path, "x").own) == {"a"}
    (tmp_path / "x.jsonl").write_text(good + canonical({**RECORD, **wrong} if isinstance(wrong, dict) else wrong) + "\n" + good)
    with pytest.raises(LeaderError, match=r"Line 2 of .* is not a record"):
        Store(tmp_path, "x")


ENDLESS = canonical(RECORD).replace("20.5", "1e999").encode()


@pytest.mark.parametrize("line", [b'{"key": NaN}', ENDLESS, b"[" * 100_000, b"\xff\xfe", b"{}", b"null", b'{"key": "a"'])
def test_bytes_that_are_no_record_are_told(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "x.jsonl").write_bytes(line + b"\n")
    with pytest.raises(LeaderError, match="Line 1 of"):
        Store(tmp_path, "x")


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        *((["--form", "smal"], 2, "did you mean 'small'"), (["--count", "0"], 1, "'count'")),
        *((["--size", "-3"], 1, "'size'"), (["--fit", "crob"], 2, "did you mean 'crop'")),
        (["--images", "nowhere"], 1, "no folder of pictures 'nowhere'"),
        *((["--device", "gpu"], 1, "Unknown device 'gpu'"), (["--prior", "nothing"], 1, "no prior 'nothing'")),
        (["--rows", "zzz"], 1, "No row matches 'zzz'"),
    ],
)
def test_wrong_options_of_a_run(tmp_path: Path, options: list[str], code: int, word: str) -> None:
    path = write_tiny(tmp_path)
    done = CliRunner().invoke(app, ["bench", "run", str(path), "--records", str(tmp_path / "r"), "--workers", "1", *options])
    assert done.exit_code == code and word in " ".join(done.output.split()), done.output
    assert "Traceback" not in done.output


def test_the_device_is_part_of_what_is_run(tmp_path: Path) -> None:
    experiment = load_experiment(write_tiny(tmp_path), device="cuda")
    assert {cell.recipe.device for cell in experiment.cells()} == {"cuda"}
