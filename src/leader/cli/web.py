"""leader web: the page on this machine."""

import os
from typing import Annotated

import typer

from leader.cli.console import to_stdout
from leader.errors import UsageError

EXAMPLES = """
Examples:

    leader web

    leader web --port 8080 --jobs 2 --max-pixels 4000000

    LEADER_WEB_AUTH=name:password leader web --host 0.0.0.0 --name photos.example.org
"""
AUTH = "LEADER_WEB_AUTH"
AUTH_HELP = "What every visitor must enter; better set in LEADER_WEB_AUTH."


def web(
    host: Annotated[str, typer.Option(help="The address to listen on; 127.0.0.1 is only this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 7860,
    auth: Annotated[str | None, typer.Option(metavar="NAME:PASSWORD", envvar=AUTH, help=AUTH_HELP)] = None,
    max_megabytes: Annotated[float, typer.Option(help="Largest uploaded file.")] = 64.0,
    max_pixels: Annotated[int, typer.Option(help="Largest picture, given or restored.")] = 16_000_000,
    queue: Annotated[int, typer.Option(help="Length of the queue.")] = 64,
    time_limit: Annotated[float, typer.Option(help="Time limit per picture, in seconds.")] = 3600.0,
    keep: Annotated[float, typer.Option(help="How long pictures and results are kept, in seconds.")] = 3600.0,
    jobs: Annotated[int | None, typer.Option(min=1, help="Simultaneous pictures; by default set by the cores.")] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Threads per picture; the exact bits depend on them.")
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(help="A host name that remote visitors use; requests under other names are refused."),
    ] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="Trust the headers of a proxy in front of the page.")
    ] = False,
) -> None:
    """Serves a page on this machine: drop a picture in and watch its restoration."""
    from leader.web.limits import fit_limits
    from leader.web.reach import Reach
    from leader.web.server import check_extra, serve

    check_extra()
    reach = Reach(host, tuple(name or ()), behind_proxy)
    pair = _parse_auth(auth)
    limits = fit_limits(
        jobs=jobs,
        threads=threads,
        upload_bytes=max_megabytes * 2**20,
        pixels=max_pixels,
        waiting=queue,
        seconds=time_limit,
        keep_seconds=keep,
    )
    _check_port(host, port)
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    to_stdout(f"Open http://{f'[{shown}]' if ':' in shown else shown}:{port} in a browser; Ctrl-C ends it.")
    serve(reach, port, limits, pair)


def _parse_auth(auth: str | None) -> tuple[str, str] | None:
    if auth is None:
        return None
    name, colon, password = auth.partition(":")
    if not (name and colon and password):
        raise UsageError(f"Give a visitor's name and password as NAME:PASSWORD, in --auth or in {AUTH}.")
    os.environ.pop(AUTH, None)
    return name, password


def _check_port(host: str, port: int) -> None:
    """Rejects an unavailable address before anything is loaded."""
    import socket

    from leader.errors import LeaderError

    try:
        with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
            pass
    except OSError as error:
        raise LeaderError(f"Cannot listen on {host}:{port} ({error.strerror}); choose another --port or --host.") from error
