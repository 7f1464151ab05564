"""Reading files of tensors. Nothing in them is executed, and what they claim is compared with what they are."""

from __future__ import annotations

import io
import pickle
import pickletools
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

import torch
from safetensors import safe_open
from torch import Tensor, nn

from leader.errors import LeaderError

ARCHIVE, PICKLE = b"PK\x03\x04", b"\x80"  # how torch files begin; those without an archive cannot be mapped
LARGEST_INDEX = 16 << 20
"""Bytes of the pickle inside a torch archive, which names the tensors: a thousand of them take a tenth of a megabyte."""

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
        if start == ARCHIVE:
            _check_archive(path)
        else:
            _check_legacy(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickle protocols: what cannot be read is refused below
            return torch.load(path, map_location="cpu", weights_only=True, mmap=start == ARCHIVE)
    except LeaderError:
        raise
    except pickle.UnpicklingError as error:
        if start != ARCHIVE and not start.startswith(PICKLE):
            raise _damaged_error(path) from error
        raise LeaderError(
            f"{path} holds more than tensors and could run code when read, so it was refused and nothing was "
            "executed; convert it where you trust it: torch.save(model.state_dict(), 'weights.pt')."
        ) from error
    except Exception as error:  # a reader of strangers' bytes fails in many ways; all mean the same
        raise _damaged_error(path) from error


def read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a .safetensors file, mapped, and its texts."""
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


def _check_archive(path: Path) -> None:
    """Refuses archives that grow when they are read: torch stores its files as they are."""
    with zipfile.ZipFile(path) as archive:
        for item in archive.infolist():
            if item.compress_type != zipfile.ZIP_STORED or (item.filename.endswith(".pkl") and item.file_size > LARGEST_INDEX):
                raise LeaderError(
                    f"{path} is a compressed or oversized archive, which torch does not write: convert it with torch.save."
                )
            if item.filename.endswith(".pkl") and not is_harmless(archive.read(item)):
                raise _endless_error(path)


def _check_legacy(path: Path) -> None:
    """The same for files that are no archives: a few pickles, then the bytes of the tensors."""
    with path.open("rb") as file:
        if not is_harmless(file.read(LARGEST_INDEX), LEGACY_PICKLES):
            raise _endless_error(path)


def _endless_error(path: Path) -> LeaderError:
    return LeaderError(f"{path} names tuples inside tuples without end, which no network needs: use another checkpoint.")


def _damaged_error(path: Path) -> LeaderError:
    return LeaderError(
        f"{path} ({path.stat().st_size} bytes) cannot be read as a checkpoint: it is truncated, damaged or "
        "of another kind; download it again."
    )


def build_on_meta(build: Callable[[], N], origin: str) -> N:
    """A network without memory; `origin` names what describes it in errors."""
    try:
        with torch.device("meta"):
            return build()
    except (ValueError, TypeError, RuntimeError, ArithmeticError, LookupError, AttributeError) as error:
        reason = re.split(r"[.\n]\s", str(error) or type(error).__name__)[0][:100].rstrip(" .")
        raise LeaderError(f"{origin} describes no network that can be built ({reason}): restore the published one.") from error


def find_differing(network: nn.Module, tensors: Mapping[str, Tensor]) -> list[str]:
    """Names of the tensors that network and file do not share, or not in one shape."""
    expected = {name: tensor.shape for name, tensor in network.state_dict().items()}
    return sorted(
        name
        for name in expected.keys() | tensors.keys()
        if name not in expected or name not in tensors or tensors[name].shape != expected[name]
    )


def check_weights(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Refuses weights that are not finite floating-point numbers, or more than their file can hold."""
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


def place_tensors(network: N, tensors: Mapping[str, Tensor], origin: str) -> N:
    """A network of `build_on_meta` with the tensors in place, frozen, in eval mode.

    Tensors are copied where their dtype changes or where the file places them off the bounds of a cache line: there
    kernels take other paths, and the same weights would give other bits from one file than from another.
    """
    network.load_state_dict({name: _align(tensor.float()) for name, tensor in tensors.items()}, assign=True)
    left = [name for name, tensor in (*network.named_parameters(), *network.named_buffers()) if tensor.is_meta]
    if left:
        raise LeaderError(f"{origin} describes a network with parts that no file stores ({left[0]}), which is not supported.")
    return network.eval().requires_grad_(False)


def _align(tensor: Tensor) -> Tensor:
    return tensor if tensor.data_ptr() % CACHE_LINE == 0 else tensor.clone()


LARGEST_TUPLE = 10_000
"""Parts of a tuple, those of the tuples inside it counted as often as they are named; a tensor's own has some twenty."""
MOST_HASHED = 10_000_000
"""The same, over all keys and members that are hashed in one file."""
HASHING = {"SETITEM", "SETITEMS", "DICT", "ADDITEMS", "FROZENSET"}
TUPLES = {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_TUPLE"}
LEGACY_PICKLES = 5
"""Pickles at the start of a torch file that is no archive: magic number, protocol, system, content, keys of storages."""
_MARK = -1


def is_harmless(data: bytes, pickles: int = 1) -> bool:
    """Whether the first pickles in `data` name no tuples without end. What is no pickle is harmless: torch refuses it.

    torch's reader executes nothing, but it hashes the keys of dictionaries, and a tuple of tuples that share their parts
    doubles with every level: a hundred bytes name a key of 2^30 parts. Here the operations are walked through with the sizes of
    tuples in place of values; nothing is built.
    """
    stream = io.BytesIO(data)
    try:
        return all(_walk(_operations(stream)) for _ in range(pickles))
    except Exception:  # cut short, or of unknown operations: the reader of strangers' bytes says so itself
        return True


def _operations(stream: IO[bytes]) -> Iterator[tuple[Any, Any]]:
    for operation, argument, _ in pickletools.genops(stream):
        yield operation, argument


def _walk(operations: Iterator[tuple[Any, Any]]) -> bool:
    """The machine of a pickle with sizes for values: 1 for all but tuples."""
    stack: list[int] = []
    memo: dict[Any, int] = {}
    hashed = 0
    for operation, argument in operations:
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
        taken = _taken(stack, operation.stack_before)
        if name in HASHING:
            hashed += sum(taken)
        size = 1 + sum(taken) if name in TUPLES else 1
        if size > LARGEST_TUPLE or hashed > MOST_HASHED:
            return False
        stack.extend([size] * len(operation.stack_after))
    return True


def _taken(stack: list[int], before: list[Any]) -> list[int]:
    """The sizes that an operation takes from the stack: down to the last mark where it takes a slice, and what lies below."""
    taken: list[int] = []
    for item in reversed(before):
        if item is pickletools.stackslice:
            while stack[-1] != _MARK:
                taken.append(stack.pop())
        elif item is pickletools.markobject:
            stack.pop()
        else:
            taken.append(stack.pop())
    return taken
