"""The words of the command line that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer


def _task_names() -> list[str]:
    from leader.restoration.tasks import TASKS

    return list(TASKS)


def _method_names() -> list[str]:
    from leader.methods import METHODS

    return list(METHODS)


def _plugin_names() -> list[str]:
    from leader.plugins import BUNDLES, PLUGINS

    return [*BUNDLES, *PLUGINS, "none"]


def _prior_names() -> list[str]:
    from leader.priors.catalogue import ENTRIES

    return ["embedded", *ENTRIES]


def _estimator_names() -> list[str]:
    from leader.cli.lists import list_estimators

    return list(list_estimators())


Task = Annotated[
    str | None,
    typer.Option("--task", "-t", autocompletion=_task_names, help="What happened to the picture: see leader tasks."),
]
RequiredTask = Annotated[
    str,
    typer.Option("--task", "-t", autocompletion=_task_names, help="What to do to the picture: see leader tasks."),
]
Kernel = Annotated[
    str | None,
    typer.Option("--kernel", metavar="auto|FILE|gaussian:S|...", help="The kernel of the blur, see leader tasks deblur."),
]
KernelDoubt = Annotated[
    float | None,
    typer.Option("--kernel-doubt", metavar="NUMBER", help="Relative error of the kernel's width (0.1 = 10 %), 0 for none."),
]
Mask = Annotated[
    str | None,
    typer.Option(
        "--mask",
        metavar="FILE|random:SHARE|auto",
        help="White where the picture is known; auto looks for specks and scratches.",
    ),
]
Factor = Annotated[int | None, typer.Option("--factor", help="How much larger sr makes a picture (default 4).")]
Down = Annotated[
    str | None, typer.Option("--down", help="How it became small: auto (default), lanczos, box, ...: see leader tasks sr.")
]
Quality = Annotated[
    str | None,
    typer.Option("--quality", "-q", help="How much work to spend: draft, standard (the default) or best."),
]
Look = Annotated[
    str | None,
    typer.Option("--look", help="natural (believable texture, the default) or faithful (closer to the truth on average)."),
]
Method = Annotated[
    str | None,
    typer.Option("--method", "-m", autocompletion=_method_names, help="A method of your own choice: see leader methods."),
]
Plugins = Annotated[
    list[str] | None,
    typer.Option("--plugin", "-p", autocompletion=_plugin_names, help="May be repeated, none for none; a --method has leader."),
]
Prior = Annotated[
    str,
    typer.Option("--prior", autocompletion=_prior_names, help="See leader priors; or a checkpoint's path."),
]
Estimator = Annotated[
    str | None,
    typer.Option("--estimator", autocompletion=_estimator_names, help="How uncertainty is estimated: see leader estimators."),
]
Device = Annotated[str | None, typer.Option("--device", help="Where to compute: cpu, cuda or mps; the prior's by default.")]
Precision = Annotated[str | None, typer.Option("--dtype", help="Numbers to compute with: float32, float16 or bfloat16")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Threads of the CPU; the bits depend on them.")]
Steps = Annotated[
    int | None, typer.Option("--steps", "-n", help="Network steps; fewer are faster. By default those of the quality.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Another seed, another draw.")]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=0, max=4096, help="For folders: worker processes (1), which share the cores; 0 for none."),
]
EngineName = Annotated[str, typer.Option("--engine", help="For folders: local, or ray for a Ray cluster.")]
Address = Annotated[str | None, typer.Option("--address", help="Of the Ray cluster: auto, or HOST:PORT.")]
Maps = Annotated[
    str | None,
    typer.Option("--maps", metavar="png|npy", help="For folders: the uncertainty of every picture beside it (NAME.map.png)."),
]
Report = Annotated[bool, typer.Option("--report", help="For folders: one page with all pictures, before and after.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace files that exist.")]


def plugin_names(names: list[str] | None) -> tuple[str, ...] | None:
    """The plug-ins asked for; "none" alone for none."""
    from leader.errors import UsageError

    if not names:
        return None
    if names == ["none"]:
        return ()
    if "none" in names:
        raise UsageError("The plug-in 'none' stands alone; leave it out or leave out the others.")
    return tuple(names)
