"""What the tests of this room share."""

from pathlib import Path

import pytest
import torch

from tests.priors.test_checkpoints import tiny


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A checkpoint without settings."""
    torch.save(tiny(), tmp_path / "weights.pt")
    return tmp_path / "weights.pt"
