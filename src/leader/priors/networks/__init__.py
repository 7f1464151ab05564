"""The two architectures of published pixel-space diffusion checkpoints, under their own tensor names."""

from leader.priors.networks.adm import ADM, ADMConfig
from leader.priors.networks.ddpm import DDPM, DDPMConfig

__all__ = ["ADM", "DDPM", "ADMConfig", "DDPMConfig"]
