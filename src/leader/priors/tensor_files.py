"""Reads files of tensors. Nothing in them is executed, and their claimed sizes are checked."""

import io
import pickle
import pickletools
import re
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import safe_open
from torch import Tensor, nn

from leader.errors import LeaderError

ARCHIVE, PICKLE = b"PK\x03\x04", b"\x80"  # the first bytes of torch files; those without an archive cannot be mapped
LARGEST_INDEX = 16 << 20
"""Largest pickle inside a torch archive in bytes; it names the tensors, and a thousand take a tenth of a megabyte."""

CACHE_LINE = 64
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

N = TypeVar("N", bound=nn.Module)


def read_checkpoint(path: Path) -> Any:
    """The content of a checkpoint file: lists and dicts of tensors and plain values, mapped, not copied."""
    if path.suffix == ".safetensors":
        return read_safetensors(path)[0]
    _check_regular(path)
    start = b""
    try:
        with path.open("rb") as file:
            start = file.read(len(ARCHIVE))
        if not (_is_harmless_archive(path) if start == ARCHIVE else _is_harmless_file(path)):
            raise LeaderError(f"{path} has excessively nested tuples, which no network needs: use another checkpoint.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about pickle protocols: unreadable files are rejected below
            return torch.load(path, map_location="cpu", weights_only=True, mmap=start == ARCHIVE)
    except LeaderError:
        raise
    except pickle.UnpicklingError as error:
        if start != ARCHIVE and not start.startswith(PICKLE):
            raise _damaged_error(path) from error
        raise LeaderError(
            f"{path} holds more than tensors and could run code when read, so it was rejected and nothing was "
            "executed; convert it where you trust it: torch.save(model.state_dict(), 'weights.pt')."
        ) from error
    except Exception as error:  # untrusted bytes can fail in many ways, which all mean the same
        raise _damaged_error(path) from error


def read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a .safetensors file, mapped, and its metadata."""
    _check_regular(path)
    try:
        with safe_open(path, framework="pt") as content:
            names = content.keys()
            return {name: content.get_tensor(name) for name in names}, content.metadata() or {}
    except Exception as error:  # see `read_checkpoint`
        raise _damaged_error(path) from error


def _check_regular(path: Path) -> None:
    if not path.exists():
        raise LeaderError(f"{path} does not exist: give the path of a checkpoint.")
    if not path.is_file():
        raise LeaderError(f"{path} is not a regular file: give the path of a checkpoint.")


def _is_harmless_archive(path: Path) -> bool:
    """Rejects archives that grow when they are read, since torch stores its files uncompressed; else, as `is_harmless`."""
    with zipfile.ZipFile(path) as archive:
        pickles = [item for item in archive.infolist() if item.filename.endswith(".pkl")]
        if any(item.compress_type != zipfile.ZIP_STORED for item in archive.infolist()) or any(
            item.file_size > LARGEST_INDEX for item in pickles
        ):
            raise LeaderError(
                f"{path} is a compressed or oversized archive, which torch does not write: convert it with torch.save."
            )
        return all(is_harmless(archive.read(item)) for item in pickles)


def _is_harmless_file(path: Path) -> bool:
    """The same for files that are not archives: a few pickles, then the bytes of the tensors."""
    with path.open("rb") as file:
        return is_harmless(file.read(LARGEST_INDEX), LEGACY_PICKLES)


def _damaged_error(path: Path) -> LeaderError:
    return LeaderError(
        f"{path} ({path.stat().st_size} bytes) cannot be read as a checkpoint: it is truncated, damaged or "
        "of another kind; download it again."
    )


def check_weights(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Rejects weights that are not finite floating-point numbers, or larger than their file."""
    for name, tensor in tensors.items():
        if tensor.dtype not in DTYPES or tensor.layout != torch.strided or tensor.device.type != "cpu":
            kind = str(tensor.dtype).removeprefix("torch.")
            raise LeaderError(
                f"{path.name} holds {name} as {kind}, where plain floating-point weights were expected: convert it first."
            )
    claimed = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    if claimed > path.stat().st_size:
        raise LeaderError(
            f"The tensors of {path.name} claim {claimed:,} bytes of a file of {path.stat().st_size:,}: it is damaged or "
            "made to fill the memory; use another checkpoint."
        )
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise LeaderError(
                f"{path.name} holds values that are not finite (first in {name}): its training diverged or the "
                "file is damaged; use another checkpoint."
            )


def check_network(build: Callable[[], N], tensors: Mapping[str, Tensor], file: Path, origin: str) -> N:
    """The network that `origin` describes, without memory, if the tensors of `file` are its own and sound."""
    try:
        with torch.device("meta"):
            network = build()
    except (ValueError, TypeError, RuntimeError, ArithmeticError, LookupError, AttributeError) as error:
        reason = re.split(r"[.\n]\s", str(error) or type(error).__name__)[0][:100].rstrip(" .")
        raise LeaderError(
            f"{origin} describes a network that cannot be built ({reason}): restore the published one."
        ) from error
    expected = {name: tensor.shape for name, tensor in network.state_dict().items()}
    found = {name: tensor.shape for name, tensor in tensors.items()}
    wrong = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    if wrong:
        raise LeaderError(
            f"{file} does not hold the tensors of the network that {origin} describes ({len(wrong)} differ, such as "
            f"{wrong[0][:80]}): it is incomplete or of another architecture; restore the matching pair."
        )
    check_weights(tensors, file)
    return network


def load_network(build: Callable[[], N], tensors: Mapping[str, Tensor], file: Path, origin: str) -> N:
    """The network of `check_network` with its tensors in place, frozen, in eval mode.

    Tensors are copied if their dtype changes or if they are not aligned to a cache line in the file: kernels then take
    different paths, and the same weights would give different bits from different files.
    """
    network = check_network(build, tensors, file, origin)
    floats = {name: tensor.float() for name, tensor in tensors.items()}
    placed = {name: tensor if tensor.data_ptr() % CACHE_LINE == 0 else tensor.clone() for name, tensor in floats.items()}
    network.load_state_dict(placed, assign=True)
    left = [name for name, tensor in (*network.named_parameters(), *network.named_buffers()) if tensor.is_meta]
    if left:
        raise LeaderError(f"{origin} describes a network with parts that no file stores ({left[0]}), which is not supported.")
    return network.eval().requires_grad_(False)


LARGEST_TUPLE = 10_000
"""Largest number of parts of a tuple, nested tuples counted as often as they occur; a tensor's own has about twenty."""
MOST_HASHED = 10_000_000
"""The same, over all keys and members hashed in one file."""
HASHING = {"SETITEM", "SETITEMS", "DICT", "ADDITEMS", "FROZENSET"}
TUPLES = {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_TUPLE"}
LEGACY_PICKLES = 5
"""Pickles at the start of a torch file that is not an archive: magic number, protocol, system, content, storage keys."""
_MARK = -1


def is_harmless(data: bytes, pickles: int = 1) -> bool:
    """Whether the first pickles in `data` have no excessively nested tuples. Anything but a pickle is harmless: torch rejects
    it.

    torch's reader executes nothing, but it hashes the keys of dictionaries, and a tuple of tuples that share their parts
    doubles with every level: a hundred bytes describe a key of 2^30 parts. This function simulates the operations with the
    sizes of tuples instead of values; nothing is built.
    """
    stream = io.BytesIO(data)
    try:
        return all(_walk(pickletools.genops(stream)) for _ in range(pickles))
    except Exception:  # truncated, or unknown operations: torch's reader reports it
        return True


def _walk(operations: Iterable[tuple[Any, Any, Any]]) -> bool:
    """The pickle machine with sizes instead of values: 1 for everything but tuples."""
    stack: list[int] = []
    memo: dict[Any, int] = {}
    hashed = 0
    for operation, argument, _ in operations:
        name = operation.name
        if name == "MARK":
            stack.append(_MARK)
            continue
        if name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            memo[len(memo) if name == "MEMOIZE" else argument] = stack[-1]
            continue
        if name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(memo.get(argument, 1))
            continue
        taken: list[int] = []
        for item in reversed(operation.stack_before):
            if item is pickletools.stackslice:  # what is above the last mark
                while stack[-1] != _MARK:
                    taken.append(stack.pop())
            elif item is pickletools.markobject:
                stack.pop()
            else:
                taken.append(stack.pop())
        if name in HASHING:
            hashed += sum(taken)
        size = 1 + sum(taken) if name in TUPLES else 1
        if size > LARGEST_TUPLE or hashed > MOST_HASHED:
            return False
        stack.extend([size] * len(operation.stack_after))
    return True
