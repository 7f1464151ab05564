"""How many machines a large folder takes: estimates from measured times, and a simulation of stragglers and failures.

    python benchmarks/cluster_size.py            the tables of docs/cluster.md

Times are those of `benchmarks/records/paths-test.jsonl`: what --quality standard took for 128 px pictures of six tasks, one
thread, embedded prior. A pass of the network costs in proportion to the pixels, so times are scaled by them. No GPU was
measured: GPU_SPEED is an assumption, and whatever follows from it is marked.
"""

from __future__ import annotations

import heapq
import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

MEASURED = Path(__file__).parent / "records" / "paths-test.jsonl"
MEASURED_PIXELS = 128 * 128
GPU_SPEED = 100.0
"""Times one core of the machine that was measured: an assumption for a data-centre GPU with several pictures at a time."""
ATTEMPTS = 3
HOUR = 3600.0


@dataclass(frozen=True)
class Scenario:
    """A folder and a cluster.

    pixels       of a picture; times: seconds of pictures of 128 x 128 pixels on a worker of speed 1
    workers      that take one picture at a time; speed: theirs
    hours        that a worker lives on average before it or its machine dies
    restart      seconds until its place is taken
    slow, drag   share of workers that are slow, and how many times longer they take
    """

    name: str
    pictures: int
    pixels: int
    workers: int
    speed: float = 1.0
    hours: float = 24.0
    restart: float = 120.0
    slow: float = 0.05
    drag: float = 2.0


@dataclass(frozen=True)
class Course:
    """How it went, in hours: the whole, the least it could take, from 99 % of the pictures to the last one."""

    hours: float
    ideal: float
    tail: float
    retries: int
    lost: int
    wasted: float


def measured_times(path: Path = MEASURED) -> list[float]:
    """Seconds of every measured picture with the standard quality."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [float(line["s"]) for line in lines if line["key"][0] == "natural"]


def simulate(scenario: Scenario, times: Sequence[float], seed: int = 0) -> Course:
    """Every worker takes the next picture when it is free; one that dies gives its picture back, up to ATTEMPTS times."""
    draw = np.random.default_rng(seed)
    scale = scenario.pixels / MEASURED_PIXELS / scenario.speed
    seconds = draw.choice(np.asarray(times), scenario.pictures) * scale
    drag = np.where(draw.random(scenario.workers) < scenario.slow, scenario.drag, 1.0)
    free = [(0.0, worker) for worker in range(scenario.workers)]
    again: deque[tuple[float, int, int]] = deque()  # when it is known, picture, times its worker died
    following = retries = lost = 0
    wasted = 0.0
    ends: list[float] = []
    while following < scenario.pictures or again:
        now, worker = heapq.heappop(free)
        if again and (again[0][0] <= now or following >= scenario.pictures):
            known, picture, died = again.popleft()
            now = max(now, known)
        else:
            picture, died = following, 0
            following += 1
        takes = float(seconds[picture] * drag[worker])
        life = draw.exponential(scenario.hours * HOUR)
        if life >= takes:
            ends.append(now + takes)
            heapq.heappush(free, (now + takes, worker))
            continue
        wasted += life
        heapq.heappush(free, (now + life + scenario.restart, worker))
        if died + 1 >= ATTEMPTS:
            lost += 1
            ends.append(now + life)
        else:
            retries += 1
            again.append((now + life, picture, died + 1))
    ends.sort()
    share = float(seconds.sum()) * scenario.workers / float((1 / drag).sum())
    most = ends[max(0, int(np.ceil(0.99 * len(ends))) - 1)]
    return Course(
        ends[-1] / HOUR,
        share / scenario.workers / HOUR,
        (ends[-1] - most) / HOUR,
        retries,
        lost,
        wasted / float((seconds.sum()) or 1.0),
    )


SMALL, LARGE = 256 * 256, 12_000_000
SCENARIOS = (
    Scenario("1 million of 256 px, 100 machines of 2 cores", 1_000_000, SMALL, 200),
    Scenario("1 million of 256 px, 8 GPUs (assumed)", 1_000_000, SMALL, 8, GPU_SPEED),
    Scenario("100,000 of 12 megapixels, 500 machines of 2 cores", 100_000, LARGE, 1000),
    Scenario("100,000 of 12 megapixels, the same at a spot price", 100_000, LARGE, 1000, hours=4.0),
    Scenario("100,000 of 12 megapixels, 32 GPUs (assumed)", 100_000, LARGE, 32, GPU_SPEED),
)


def main() -> None:
    times = measured_times()
    low, middle, high = np.quantile(times, [0.05, 0.5, 0.95])
    print(
        f"{len(times)} measured times of 128 px: mean {np.mean(times):.2f} s, median {middle:.2f} s, 5 to 95 %: {low:.2f} to "
        f"{high:.2f} s\n"
    )
    print("| folder and cluster | core hours | hours | least | 99 % to the end | retries | lost | wasted |")
    print("|---|---|---|---|---|---|---|---|")
    for scenario in SCENARIOS:
        course = simulate(scenario, times)
        cores = np.mean(times) * scenario.pixels / MEASURED_PIXELS / scenario.speed * scenario.pictures / HOUR
        unit = "GPU" if scenario.speed > 1 else "core"
        print(
            f"| {scenario.name} | {cores:,.0f} {unit} h | {course.hours:.1f} | {course.ideal:.1f} | "
            f"{60 * course.tail:.0f} min | {course.retries} | {course.lost} | {course.wasted:.2%} |"
        )


if __name__ == "__main__":
    main()
