"""Downloads a registered checkpoint: resumed where it stopped, checked by hash, whole or not at all."""

import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from leader.errors import LeaderError
from leader.files import sha256_once
from leader.priors.catalogue import CatalogueEntry, check_hash, find_entry

Progress = Callable[[int, int | None], None]
CHUNK = 1 << 20


@dataclass(frozen=True)
class Download:
    """A checkpoint on disk, its hash, and whether that is the published hash (None: none is published)."""

    path: Path
    sha256: str
    verified: bool | None

    def __str__(self) -> str:
        checked = "as published" if self.verified else "computed; no published hash is known to compare it with"
        return f"{self.path} (SHA-256 {self.sha256}, {checked})"


def download(name: str, progress: Progress | None = None, *, timeout: float = 30.0) -> Download:
    """Downloads a registered checkpoint into the cache folder; an existing one is only checked.

    progress  called with (bytes so far, bytes in total or None)
    """
    item = find_entry(name)
    if item.on_disk:
        return _check_download(item, item.path)
    item.path.parent.mkdir(parents=True, exist_ok=True)
    part = item.path.with_name(item.path.name + ".part")
    reasons = []
    for url in item.urls:
        try:
            _fetch(url, part, progress, timeout)
            break
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            reasons.append(str(getattr(error, "reason", None) or error))
    else:
        raise LeaderError(
            f"'{name}' could not be downloaded ({'; '.join(reasons)}): connect to the network and try again, "
            f"or fetch it from {item.urls[0]} by hand and save it as {item.path}."
        )
    result = _check_download(item, part)
    os.replace(part, item.path)
    return Download(item.path, result.sha256, result.verified)


def _fetch(url: str, part: Path, progress: Progress | None, timeout: float) -> None:
    """Appends the missing rest of `url` to `part`."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "leader"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        answer = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # nothing left to download: the file is complete
            return
        raise
    with answer:
        if answer.headers.get_content_type() == "text/html":
            raise OSError(f"{url} answered with a page instead of the file")
        if answer.status != 206:  # the server restarts from the beginning, so do we
            have = 0
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length else None
        with part.open("ab" if have else "wb") as file:
            while block := answer.read(CHUNK):
                file.write(block)
                have += len(block)
                if progress is not None:
                    progress(have, total)
    if total is not None and have < total:
        raise OSError(f"the connection ended after {have} of {total} bytes, which are kept")


def _check_download(item: CatalogueEntry, path: Path) -> Download:
    check_hash(item, path)
    return Download(path, sha256_once(path), None if item.sha256 is None else True)
