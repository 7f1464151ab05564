"""Checks the host and origin of requests, before anything else.

Another page in the same browser could start jobs here, and a foreign host name that resolves to this machine (DNS rebinding)
could read them. So a request is answered only if its `Host` is one of our names, rejected if its `Origin` is another page, and
forwarding headers are honoured only if a proxy is configured.
"""

import ipaddress
import socket
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from leader.errors import UsageError

Scope = MutableMapping[str, Any]
LOOPBACK = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = ("0.0.0.0", "::")
FORWARDED = (b"forwarded", b"x-forwarded-", b"x-real-ip", b"x-direct-url", b"x-original-", b"x-scheme")
"""Prefixes of the headers with which proxies describe the original request."""
DEFAULT_PORTS = {"http": 80, "https": 443}
UNKNOWN_NAME = "This server does not answer to that name; start it with the name that visitors use."
FOREIGN_PAGE = "This request comes from another page; open this page directly."


@dataclass(frozen=True)
class Reach:
    """The address and names of the server.

    host          the address it listens on
    names         other names that visitors use, without ports
    behind_proxy  whether there is a proxy in front of it whose headers are trusted
    """

    host: str = "127.0.0.1"
    names: tuple[str, ...] = ()
    behind_proxy: bool = False

    def __post_init__(self) -> None:
        for name in self.names:
            if split_host(name) != (name.strip("[]").lower(), None):
                raise UsageError(f"A name of the page must be a host name without port or address; found '{name}'.")

    def knows(self, name: str, own: str | None) -> bool:
        """Whether a host name is one of ours; `own` is the address at which the request arrived."""
        known = {item.strip("[]").lower() for item in (self.host, *self.names)}
        if self.host in (*LOOPBACK, *EVERYWHERE):
            known.update(LOOPBACK)
        if self.host in EVERYWHERE:
            known -= {*EVERYWHERE}
            known.add(socket.gethostname().lower())
            known.update([own] if own is not None and _is_number(own) else [])
        return name in known


def strip_forwarded(scope: Scope, reach: Reach) -> Scope:
    """The request without the headers of proxies, unless there is one."""
    if reach.behind_proxy:
        return scope
    return {**scope, "headers": [item for item in scope["headers"] if not item[0].lower().startswith(FORWARDED)]}


def judge(scope: Scope, reach: Reach) -> tuple[int, str] | None:
    """Status and message of a rejection; None if the request is allowed."""
    server = scope.get("server")
    own = None if server is None else str(server[0])
    hosts = _values(scope, b"host")
    told = _values(scope, b"x-forwarded-host")  # trusted only behind a proxy
    names = [split_host(name) for name in (*hosts, *told)]
    if len(hosts) != 1 or any(name is None or not reach.knows(name[0], own) for name in names):
        return 421, UNKNOWN_NAME
    if any(_split_origin(origin) != _fill_port(names[-1], origin) for origin in _values(scope, b"origin")):
        return 403, FOREIGN_PAGE
    changes = scope["method"] not in ("GET", "HEAD", "OPTIONS")
    if changes and any(site not in ("same-origin", "none") for site in _values(scope, b"sec-fetch-site")):
        return 403, FOREIGN_PAGE
    return None


def split_host(text: str) -> tuple[str, int | None] | None:
    """Name and port of a Host header, in lower case; None if it is invalid."""
    try:
        parts = urlsplit(f"//{text}")
        name, port = parts.hostname, parts.port
    except ValueError:
        return None
    return None if not name or parts.netloc != text or "@" in text else (name.rstrip(".") or name, port)


def _split_origin(origin: str) -> tuple[str, int | None] | None:
    """Name and port of an Origin header; None if it is "null" or invalid."""
    scheme, separator, host = origin.partition("://")
    if scheme not in DEFAULT_PORTS or not separator:
        return None
    return _fill_port(split_host(host), origin)


def _fill_port(host: tuple[str, int | None] | None, origin: str) -> tuple[str, int | None] | None:
    """A host with the default port of its scheme if none is given; ("", None) without a host."""
    if host is None:
        return "", None
    return host[0], host[1] if host[1] is not None else DEFAULT_PORTS.get(origin.partition(":")[0])


def _values(scope: Scope, name: bytes) -> list[str]:
    """The values of a header, each as often as it was sent; in a list of proxies the last value is from the nearest one."""
    found: Iterable[bytes] = (value for key, value in scope["headers"] if key.lower() == name)
    return [value.decode("latin-1").rpartition(",")[2].strip() for value in found]


def _is_number(address: str) -> bool:
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return True
