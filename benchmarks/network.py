"""The network of the embedded prior on other backends: one body at full resolution, in turns, beside how the package calls it.

    python benchmarks/network.py                       # 256 px, one thread, CPU time
    python benchmarks/network.py --threads 2 --wall    # wall-clock, for an idle machine
    python benchmarks/network.py --compile             # torch.compile too: minutes until the first answer

Rows that are not asked for or whose library is not installed (`pip install onnx onnxruntime openvino`) are dashes. Ratios are
medians over rounds of a round's time over that of the package's float32; the error is the root mean square of the estimate's
difference in [0, 1] units. Beside the package's own integers, int8 is ONNX Runtime's static quantisation, weights by channel,
with ranges from the timed picture itself, which flatters it.
"""

import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import torch
import typer
from torch import Tensor, nn
from torch.nn import functional as F

from leader.priors.int8 import is_exact, load_int8
from leader.priors.mixed import round_to_half
from leader.priors.pyramid import PyramidPrior, embedded_file
from leader.priors.pyramid_net import Body

Run = Callable[[Tensor, Tensor], Tensor]


def call_body(body: Body) -> Run:
    return lambda pixels, sigma: body(pixels, sigma)[0]


def fused(body: Body) -> Run:
    """ReLU applied by the convolution itself."""

    def run(pixels: Tensor, sigma: Tensor) -> Tensor:
        h = _cells(pixels, sigma).contiguous(memory_format=torch.channels_last)
        for layer in body.convs:
            given = (layer.weight, layer.bias, [1, 1], [1, 1], [1, 1], 1)
            h = torch.ops.mkldnn._convolution_pointwise(h, *given, "relu", [], "")
        return F.pixel_shuffle(body.out(h), 2)

    return run


def out_of_place(body: Body, memory_format: torch.memory_format) -> Run:
    """ReLU into new memory, in either order of channels and pixels: how the body was called before."""
    layers = [layer for layer in body.convs if isinstance(layer, nn.Conv2d)]
    weights = [(layer.weight.contiguous(memory_format=memory_format), layer.bias) for layer in layers]

    def run(pixels: Tensor, sigma: Tensor) -> Tensor:
        h = _cells(pixels, sigma).contiguous(memory_format=memory_format)
        for weight, bias in weights:
            h = F.relu(F.conv2d(h, weight, bias, padding=1))
        return F.pixel_shuffle(body.out(h), 2)

    return run


def autocast(body: Body) -> Run:
    def run(pixels: Tensor, sigma: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            estimate: Tensor = body(pixels, sigma)[0].float()
            return estimate

    return run


def compiled(body: Body) -> Run:
    made = torch.compile(body)
    return lambda pixels, sigma: made(pixels, sigma)[0]


def write_onnx(body: Body, size: int) -> bytes:
    """The layers of a body as an ONNX model of cells [1, 13, size/2, size/2]."""
    from onnx import TensorProto, helper, numpy_helper

    nodes, constants, name = [], [], "cells"
    layers = [*body.convs, body.out]
    for number, conv in enumerate(layers):
        for part, values in (("w", conv.weight), ("b", conv.bias)):
            constants.append(numpy_helper.from_array(values.contiguous().numpy(), f"{part}{number}"))
        last = number == len(layers) - 1
        after = "estimate" if last else f"c{number}"
        nodes.append(helper.make_node("Conv", [name, f"w{number}", f"b{number}"], [after], pads=[1, 1, 1, 1]))
        name = after
        if not last:
            nodes.append(helper.make_node("Relu", [name], [f"r{number}"]))
            name = f"r{number}"
    side = size // 2
    ends = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, c, side, side]) for n, c in (("cells", 13), ("estimate", 12))
    ]
    model = helper.make_model(
        helper.make_graph(nodes, "body", ends[:1], ends[1:], constants), opset_imports=[helper.make_opsetid("", 17)]
    )
    model.ir_version = 9
    written: bytes = model.SerializeToString()
    return written


def quantise_onnx(body: Body, pixels: Tensor, sigma: Tensor) -> bytes:
    """The model of `write_onnx` with activations and weights of 8 bits; the ranges of activations are those of one picture."""
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

    class OnePicture(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left = [{"cells": _cells(pixels, sigma).numpy()}]

        def get_next(self) -> dict[str, Any] | None:
            return self.left.pop() if self.left else None

    with TemporaryDirectory() as folder:
        made = f"{folder}/int8.onnx"
        model = onnx.load_from_string(write_onnx(body, pixels.shape[-1]))
        quantize_static(model, made, OnePicture(), per_channel=True, activation_type=QuantType.QUInt8)
        return Path(made).read_bytes()


def onnx_runtime(model: bytes, threads: int) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def run(pixels: Tensor, sigma: Tensor) -> Tensor:
        (answer,) = session.run(None, {"cells": _cells(pixels, sigma).numpy()})
        return F.pixel_shuffle(torch.from_numpy(answer), 2)

    return run


def openvino(model: bytes, threads: int, precision: str) -> Run:
    import openvino as ov

    core = ov.Core()
    settings: dict[str, Any] = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": precision}
    compiled_model = core.compile_model(core.read_model(model, b""), "CPU", settings)

    def run(pixels: Tensor, sigma: Tensor) -> Tensor:
        answer = compiled_model(_cells(pixels, sigma).numpy())[0]
        return F.pixel_shuffle(torch.from_numpy(answer), 2)

    return run


def _cells(pixels: Tensor, sigma: Tensor) -> Tensor:
    cells = F.pixel_unshuffle(pixels, 2)
    return torch.cat([cells, sigma.view(-1, 1, 1, 1).expand(-1, 1, *cells.shape[2:])], 1)


def backends(pixels: Tensor, sigma: Tensor, threads: int, with_compile: bool) -> dict[str, Run | None]:
    """Every row; None where its library is absent."""
    prior = PyramidPrior.load()
    body, half = prior.net.main, round_to_half(prior, torch.bfloat16).net.main  # type: ignore[union-attr]
    with_onnx, with_openvino = (find_spec("onnx") and find_spec(name) for name in ("onnxruntime", "openvino"))
    compiling = compiled if with_compile else lambda _: None
    model = write_onnx(body, pixels.shape[-1]) if find_spec("onnx") else b""
    small = quantise_onnx(body, pixels, sigma) if with_onnx else b""
    return {
        "float32 (the package)": call_body(body),
        "float32, ReLU fused": fused(body),
        "float32, ReLU out of place": out_of_place(body, torch.channels_last),
        "float32, channels first": out_of_place(body, torch.contiguous_format),
        "float32, torch.compile": compiling(body),
        "float32, ONNX Runtime": onnx_runtime(model, threads) if with_onnx else None,
        "float32, OpenVINO": openvino(model, threads, "f32") if with_openvino else None,
        "bfloat16 (the package)": call_body(half),  # type: ignore[arg-type]
        "bfloat16, autocast": autocast(body),
        "bfloat16, torch.compile": compiling(half),  # type: ignore[arg-type]
        "bfloat16, OpenVINO": openvino(model, threads, "bf16") if with_openvino else None,
        "int8 (the package)": call_body(load_int8(prior, embedded_file()).net.main) if is_exact() else None,
        "int8, ONNX Runtime": onnx_runtime(small, threads) if with_onnx else None,
        "int8, OpenVINO": openvino(small, threads, "f32") if with_onnx and with_openvino else None,
    }


@torch.no_grad()
def main(
    size: int = 256,
    threads: int = 1,
    rounds: int = 9,
    with_compile: Annotated[bool, typer.Option("--compile", help="torch.compile too.")] = False,
    wall: Annotated[bool, typer.Option("--wall", help="Wall-clock instead of CPU time.")] = False,
) -> None:
    torch.set_num_threads(threads)
    clock = time.perf_counter if wall else time.process_time
    generator = torch.Generator().manual_seed(0)
    smooth = F.avg_pool2d(torch.rand(1, 3, size, size, generator=generator), 9, 1, 4)
    sigma = torch.tensor([0.3])
    pixels = smooth + 0.3 * torch.randn(smooth.shape, generator=generator)
    rows = backends(pixels, sigma, threads, with_compile)
    answers = {name: run(pixels, sigma) for name, run in rows.items() if run is not None}  # also warms up
    seconds: dict[str, list[float]] = {name: [] for name in answers}
    for _ in range(rounds):
        for name, taken in seconds.items():
            run = rows[name]
            assert run is not None
            begin = clock()
            run(pixels, sigma)
            taken.append(clock() - begin)
    first = next(iter(seconds))
    typer.echo(f"{size} px, {threads} threads, {'wall' if wall else 'CPU'} time, torch {torch.__version__}, {rounds} rounds\n")
    typer.echo("| backend | ms | ratio | error |\n| --- | ---: | ---: | ---: |")
    for name in rows:
        if name not in seconds:
            typer.echo(f"| {name} | - | - | - |")
            continue
        ratio = median(taken / base for taken, base in zip(seconds[name], seconds[first]))
        error = float((answers[name] - answers[first]).square().mean().sqrt())
        typer.echo(f"| {name} | {1000 * median(seconds[name]):.0f} | {ratio:.2f} | {error:.1e} |")


if __name__ == "__main__":
    typer.run(main)
