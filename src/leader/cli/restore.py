"""leader restore: a degraded picture in; a restored one, its trust map and the run itself out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leader import defaults
from leader.cli import options
from leader.cli.console import to_stderr, to_stdout
from leader.errors import UsageError

if TYPE_CHECKING:
    from leader.cli.folder import FolderWords
    from leader.restoration.restore import Preparation
    from leader.restoration.restored import Restoration

EXAMPLES = """
Examples:

    leader restore small.jpg large.png --task sr --factor 4

    leader restore shaken.jpg steady.png --task deblur --kernel kernel.png --map trust.png

    leader restore blurred.jpg sharp.png --task deblur --kernel auto

    leader restore blurred.png sharp.png --task deblur-gaussian --kernel gaussian:2.5 --sigma 0.02

    leader restore blocky.jpg smooth.png --task jpeg

    leader restore torn.png whole.png --task inpaint --mask known.png --figure both.png

    leader restore scratched.png whole.png --task inpaint --mask auto

    leader restore measured.npz picture.png --plugin leader --budget 0.05 --json run.json

    leader restore measured.npz again.png --settings run.json

    leader restore photos restored --task sr --jobs 2 --report
"""
CONTEXT = {"allow_extra_args": True}
"""More names than two reach the command, which says what to do with many pictures."""
STDOUT = Path("-")

_OF_FOLDERS = ("jobs", "engine", "address", "maps", "report")
_BESIDE_A_RUN = (
    "picture",
    "out",
    "map_files",
    "figure",
    "json_file",
    "settings",
    "force",
    "check",
    "keep_failed",
    "keep_location",
    "yes",
    *_OF_FOLDERS,
)


@dataclass(frozen=True)
class Outcome:
    """What becomes of results: whether they are judged, written though they failed, and written with their place."""

    check: bool
    keep_failed: bool
    keep_location: bool


@dataclass(frozen=True)
class Outputs:
    """The files a restoration is written to; None where none was asked for."""

    picture: Path
    maps: tuple[Path, ...]
    figure: Path | None
    json: Path | None
    location: bool = False

    def check(self, inputs: dict[str, Path], force: bool) -> None:
        """Refuses, before any work is done, what could not or must not be written."""
        from leader.cli.outputs import check_outputs
        from leader.pictures import check_format
        from leader.pictures.figures import check_figure, check_map

        check_format(self.picture)
        kept = None if self.json == STDOUT else self.json
        maps = {"--map" if number == 0 else f"--map {number + 1}": path for number, path in enumerate(self.maps)}
        check_outputs(inputs, {"OUT": self.picture, **maps, "--figure": self.figure, "--json": kept}, force)
        for path in self.maps:
            check_map(path)
        if self.figure is not None:
            check_figure(self.figure)

    def write(self, restored: Restoration) -> None:
        """Writes all of them, and names each on stdout as soon as it is there."""
        say = self._say
        restored.save(self.picture, self.location)
        say(str(self.picture))
        if restored.picture.metadata.gps and not self.location:
            to_stderr("Where the picture was taken is left out of the result; --keep-location keeps it.")
        for path in self.maps:
            restored.save_map(path)
            say(str(path))
        if self.figure is not None:
            from leader.pictures.figures import draw_side_by_side, with_holes

            views = [("given", restored.given.pixels), ("restored", restored.array)]
            mask = restored.posed.options.get("mask")
            if mask is not None:
                views.insert(1, ("filled in", with_holes(restored.given.pixels, mask.numpy() > 0)))
            words = "" if restored.verdict is None else f"Verdict: {restored.verdict.in_words()}"
            draw_side_by_side(self.figure, views, restored.uncertainty, words)
            say(str(self.figure))
        self.write_run(restored)

    def write_run(self, restored: Restoration) -> None:
        """Writes the run alone, where it was asked for."""
        if self.json is None:
            return
        if self.json == STDOUT:
            to_stdout(_run_text(restored))
            return
        write_run(self.json, restored)
        self._say(str(self.json))

    def _say(self, text: str) -> None:
        (to_stderr if self.json == STDOUT else to_stdout)(text)


def restore(
    ctx: typer.Context,
    picture: Annotated[
        Path, typer.Argument(metavar="IN", help="A picture, a container (.npz) of leader degrade, or a folder.")
    ],
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The picture to write: .png, .jpg, .webp, .tif, .bmp, ...; or a folder.")
    ],
    task: options.Task = None,
    sigma: Annotated[
        str | None,
        typer.Option("--sigma", metavar="NUMBER", help="Noise level, 0.05 = 5 % of the range; estimated if left out."),
    ] = None,
    kernel: options.Kernel = None,
    kernel_doubt: options.KernelDoubt = None,
    mask: options.Mask = None,
    factor: options.Factor = None,
    down: options.Down = None,
    quality: options.Quality = None,
    look: options.Look = None,
    method: options.Method = defaults.METHOD,
    plugin: options.Plugins = None,
    steps: options.Steps = defaults.STEPS,
    budget: Annotated[
        float | None,
        typer.Option("--budget", help="Information loss SATP allows per step: 0 slow, 0.1 fast."),
    ] = None,
    estimator: options.Estimator = None,
    prior: options.Prior = defaults.PRIOR,
    device: options.Device = None,
    dtype: options.Precision = None,
    threads: options.Threads = None,
    seed: options.Seed = defaults.SEED,
    average: Annotated[
        int | None,
        typer.Option("--average", metavar="N", min=1, help="The mean of N runs: closer to the truth, N times the work."),
    ] = None,
    map_files: Annotated[
        list[Path] | None,
        typer.Option(
            "--map", help="Write the trust map: colours (.png, .pdf), numbers (.npy, .16.png) or the faded picture (.fade.png)."
        ),
    ] = None,
    figure: Annotated[Path | None, typer.Option("--figure", help="Write before, after and the trust map side by side.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the whole run: --settings repeats it; - for stdout.")
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option("--settings", help="Settings of method and plug-ins (TOML, JSON), or a run kept by --json."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Judge the result: is it plausible, and explained by the noise?")
    ] = True,
    keep_failed: Annotated[
        bool,
        typer.Option("--keep-failed", help="Write OUT even where the verdict is failed, which else ends with exit code 3."),
    ] = False,
    keep_location: Annotated[
        bool, typer.Option("--keep-location", help="Keep where the picture was taken (GPS), which is left out otherwise.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Begin runs of more than ten minutes without a question.")] = False,
    jpeg: Annotated[
        bool, typer.Option("--jpeg/--no-jpeg", help="Make use of the traces of JPEG compression, in the file or in its pixels.")
    ] = True,
    force: options.Force = False,
    jobs: options.Jobs = None,
    engine: options.EngineName = "local",
    address: options.Address = None,
    maps: options.Maps = None,
    report: options.Report = False,
) -> None:
    """Restores a degraded picture, or every picture of a folder."""
    from leader.cli.errors import NO_ANSWER
    from leader.cli.folder import FolderWords, is_folder
    from leader.cli.outputs import existing_files
    from leader.cli.running import run_and_tell
    from leader.cli.settings import is_run, read_settings, with_options
    from leader.files import check_readable, printable
    from leader.pictures import check_format
    from leader.pictures.container import SUFFIX
    from leader.restoration.arguments import as_sigma
    from leader.restoration.restore import prepare

    _refuse_more_names(ctx, picture, out)

    def arguments(content: dict[str, Any]) -> dict[str, Any]:
        """Those of `prepare`, from the command line and a file of settings."""
        plugins = options.plugin_names(plugin)
        if plugins is None and budget is not None:
            plugins = ("leader",)  # whose budget it is
        return {
            "task": task,
            "sigma": None if sigma is None else as_sigma(sigma),
            "kernel": kernel,
            "kernel_doubt": kernel_doubt,
            "mask": mask,
            "factor": factor,
            "down": down,
            "quality": quality,
            "look": look,
            "method": method,
            "plugins": plugins,
            "steps": steps,
            "prior": prior,
            "device": device,
            "dtype": dtype,
            "threads": threads,
            "seed": seed,
            "average": average,
            "settings": with_options(content, plugins or (), budget=budget, estimator=estimator),
            **({} if jpeg else {"jpeg": False}),
        }

    words = FolderWords(jobs, engine, address, maps, report)
    if is_folder(picture):
        _refuse_of_one(map_files, figure, json_file)
        content = read_settings(settings)
        run = content if is_run(content) else None
        outcome = Outcome(check, keep_failed, keep_location)
        _folder(ctx, picture, out, {} if run else arguments(content), run, outcome, words, force)
        return
    words.refuse(picture)
    outputs = Outputs(out, tuple(map_files or ()), figure, json_file, keep_location)
    read = {"IN": picture, "--mask": mask, "--kernel": kernel, "--settings": settings, "--prior": prior}
    outputs.check(existing_files(read), force)
    check_readable(picture, "picture")
    content = read_settings(settings)
    if is_run(content):
        ready = _again(ctx, picture, content)
    else:
        chosen = arguments(content)
        if task is None and picture.suffix.lower() != SUFFIX:
            chosen = _advised(picture, chosen)
        ready = prepare(picture, **chosen)
    check_format(out, ready.given.alpha is not None)
    restored = run_and_tell(ready, check, ask=not yes)
    if restored.verdict is not None and restored.verdict.level == "failed" and not keep_failed:
        outputs.write_run(restored)
        to_stderr(f"{printable(out)} was not written; see what was said of the picture, or use --keep-failed to look at it.")
        raise typer.Exit(NO_ANSWER)
    outputs.write(restored)


def _folder(
    ctx: typer.Context,
    source: Path,
    out: Path,
    arguments: dict[str, Any],
    run: dict[str, Any] | None,
    outcome: Outcome,
    words: FolderWords,
    force: bool,
) -> None:
    """A folder restored with what the command line says, or with a kept run."""
    from leader.cli.folder import address_of, restore_folder
    from leader.folders.choices import Choices, with_tables
    from leader.restoration.repeat import arguments_of
    from leader.restoration.tasks import find_task

    if run is not None:
        _only_the_run(ctx)
        threads = arguments_of(run)["threads"]
    else:
        if arguments["task"] is None:
            raise _no_task(source, out)
        find_task(arguments["task"])
        threads = arguments.pop("threads")
    choices = Choices(with_tables(arguments), run, outcome.check, outcome.keep_failed, outcome.keep_location)
    restore_folder(address_of(source), address_of(out), choices, words, threads, force)


def _advised(picture: Path, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with what the diagnosis of a picture advises, told on stderr."""
    from leader.restoration.diagnose import diagnose, refuse_options

    refuse_options(arguments)
    found = diagnose(picture)
    for sentence in found.sentences():
        to_stderr(sentence)
    advice = found.advised()
    to_stderr(advice.note())
    return {**arguments, "task": advice.task, **advice.options}


def _refuse_of_one(map_files: list[Path] | None, figure: Path | None, json_file: Path | None) -> None:
    """Refuses the files of one restoration where a folder is restored."""
    instead = {"--map": (map_files, "--maps png"), "--figure": (figure, "--report"), "--json": (json_file, "the manifest")}
    for option, (given, other) in instead.items():
        if given:
            raise UsageError(f"{option} is a file of one restoration; IN is a folder, for which there is {other}.")


def _again(ctx: typer.Context, picture: Path, run: dict[str, Any]) -> Preparation:
    """The restoration that a run kept by --json describes, of the picture given now."""
    from leader.restoration.repeat import arguments_of
    from leader.restoration.restore import prepare

    arguments = arguments_of(run)
    _only_the_run(ctx)
    return prepare(picture, **arguments)


def _only_the_run(ctx: typer.Context) -> None:
    """Refuses options beside a kept run that it says itself."""
    given = [
        max(item.opts, key=len)
        for item in ctx.command.params
        if item.name is not None and item.name not in _BESIDE_A_RUN and _was_given(ctx, item.name)
    ]
    if given:
        raise UsageError(
            f"The settings file is a kept run, which says everything itself; leave out {', '.join(given)} or the file."
        )


def _was_given(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _refuse_more_names(ctx: typer.Context, picture: Path, out: Path) -> None:
    if not ctx.args:
        return
    count = 2 + len(ctx.args)
    raise UsageError(
        f"restore takes one picture or folder IN and one name OUT; found {count} names ({picture}, {out}, {ctx.args[0]}"
        f"{', ...' if count > 3 else ''}): for many pictures put them into a folder, as in "
        "`leader restore photos restored --task sr`."
    )


def _no_task(picture: Path, out: Path) -> UsageError:
    from leader.restoration.tasks import TASKS

    return UsageError(
        f"What happened to {picture} must be said with --task, one of {', '.join(TASKS)}; for example: "
        f"leader restore {picture} {out} --task sr"
    )


def write_run(path: Path, restored: Restoration) -> None:
    """Everything about a run, which --settings repeats."""
    from leader.files import replacing

    with replacing(path) as temporary:
        temporary.write_text(_run_text(restored) + "\n", encoding="utf-8")


def _run_text(restored: Restoration) -> str:
    return json.dumps(restored.summary(), indent=2, default=str)
