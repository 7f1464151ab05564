"""`python -m leader.train`: the training run from a shell."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from leader.train.run import TrainConfig, train


def main() -> None:
    """Parse, train, print every record."""
    parser = argparse.ArgumentParser(prog="python -m leader.train", description=__doc__)
    parser.add_argument("--images", type=Path, required=True, help="folder of training photographs")
    parser.add_argument("--state", type=Path, required=True, help="folder for checkpoints, cache and log")
    parser.add_argument("--validation", type=Path, help="folder of held-out photographs")
    parser.add_argument("--start-pyramid", type=Path, help="weights of an earlier pyramid to start from")
    parser.add_argument("--start-ffdnet", type=Path, help="FFDNet's colour weights for the expert")
    parser.add_argument("--parts", nargs="+", default=TrainConfig.parts, help="train these, freeze the others")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after this much training time")
    parser.add_argument("--steps", type=int, default=10**9, help="end after this many steps")
    parser.add_argument("--rate", type=float, default=4e-5)
    parser.add_argument("--expert-rate", type=float, default=2e-5)
    parser.add_argument("--share-rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="threads of torch; 1 is best beside other work")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--autocast", action="store_true")
    parser.add_argument("--compile", action="store_true")
    options = vars(parser.parse_args())
    threads = options.pop("threads")
    if threads is not None:
        torch.set_num_threads(threads)
    train(TrainConfig(**options), say=lambda record: print(json.dumps(record), flush=True))


if __name__ == "__main__":
    main()
