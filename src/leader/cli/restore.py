"""leader restore: restores a degraded picture and writes the result, its trust map and the run itself."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from leader.cli.console import to_stderr
from leader.cli.errors import NO_ANSWER
from leader.cli.folder import FolderOptions, is_folder, restore_folder
from leader.cli.options import METHOD, option_names, with_options
from leader.cli.results import Results
from leader.errors import UsageError
from leader.progress import Busyness, ProgressDisplay
from leader.restoration.request import RestoreRequest

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
EXAMINED = "The picture is being examined."
CONTEXT = {"allow_extra_args": True}
"""Lets the command see extra names, so that it can explain how to restore many pictures."""


@with_options
def restore(
    ctx: typer.Context,
    picture: Annotated[
        Path, typer.Argument(metavar="IN", help="A picture, a container (.npz) of leader degrade, or a folder.")
    ],
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The picture to write: .png, .jpg, .webp, .tif, .bmp, ...; or a folder.")
    ],
    request: RestoreRequest,
    results: Results,
    folder: FolderOptions,
    settings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Settings of method and plug-ins (TOML, JSON), or a run kept by --json.",
            rich_help_panel=METHOD,
        ),
    ] = None,
) -> None:
    """Restores a degraded picture, or every picture of a folder."""
    busyness = Busyness()  # before the heavy imports, which tell it as well as anything
    from leader.cli.results import existing_files
    from leader.cli.running import run_and_tell
    from leader.files import check_readable, printable
    from leader.pictures import FORMATS, check_format
    from leader.restoration.diagnose import NothingToRepairError, check_advised

    _refuse_more_names(ctx, picture, out)
    if is_folder(picture):
        _refuse_of_one(results)
        if out.suffix.lower() in FORMATS and not out.is_dir():
            raise UsageError(
                f"IN ({printable(picture)}) is a folder, so OUT is one too; found the name of a picture, {printable(out)}."
            )
        request, run = _add_settings(ctx, request, settings)
        if request.task is None:
            raise _no_task(picture, out)
        restore_folder(picture, out, request, run, results, folder)
        return
    folder.refuse(picture)
    read = {"IN": picture, "--mask": request.mask, "--kernel": request.kernel, "--prior": request.prior}
    results.check_files(out, existing_files({**read, "--settings": settings}))
    check_readable(picture, "picture")
    request, _ = _add_settings(ctx, request, settings)
    try:
        with ProgressDisplay(to_stderr, text=EXAMINED):
            ready = request.prepare(picture)
    except NothingToRepairError as good:
        for sentence in good.found:
            to_stderr(sentence)
        to_stderr(f"{printable(out)} was not written: {good}")
        return
    check_format(out, ready.given.alpha is not None, ready.size)
    if ready.posed.diagnosis is not None:
        for sentence in ready.posed.diagnosis.sentences():
            to_stderr(sentence)
    restored = run_and_tell(ready, results.check, not results.yes, busyness.ratio)
    try:
        check_advised(restored)
    except NothingToRepairError as good:
        results.write_run(restored)
        to_stderr(f"{printable(out)} was not written.")
        to_stderr(good.args[0])
        return
    if restored.verdict is not None and restored.verdict.level == "failed" and not results.keep_failed:
        results.write_run(restored)
        to_stderr(f"{printable(out)} was not written; see the messages above, or use --keep-failed to look at it.")
        raise typer.Exit(NO_ANSWER)
    results.write(out, restored)


def _add_settings(
    ctx: typer.Context, request: RestoreRequest, settings: Path | None
) -> tuple[RestoreRequest, dict[str, Any] | None]:
    """The request with a settings file applied; or the request of a run kept by --json, and that run."""
    from leader.cli.settings import is_run, read_settings

    content = read_settings(settings)
    if not is_run(content):
        return replace(request, settings=content), None
    repeated = RestoreRequest.from_run(content)
    given = [
        option_names(item.name, item.metadata["word"])[0]
        for item in fields(RestoreRequest)
        if "word" in item.metadata and _was_given(ctx, item.name)
    ]
    if given:
        raise UsageError(
            f"The settings file is a kept run, which holds every choice; leave out {', '.join(given)} or the file."
        )
    return repeated, content


def _was_given(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _refuse_of_one(results: Results) -> None:
    """Rejects the files of a single restoration if IN is a folder."""
    instead = {
        "--map": (results.map_files, "--maps png"),
        "--figure": (results.figure, "--report"),
        "--json": (results.json, "the manifest"),
    }
    for option, (given, other) in instead.items():
        if given:
            raise UsageError(f"{option} is for a single picture; IN is a folder, so use {other}.")


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
        f"Say what happened to {picture} with --task, one of {', '.join(TASKS)}; for example: "
        f"leader restore {picture} {out} --task sr"
    )
