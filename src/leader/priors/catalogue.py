"""Published checkpoints by name: their source, their licence, and the settings not implied by their tensors."""

import os
from dataclasses import dataclass
from pathlib import Path

from leader.errors import LeaderError, unknown_name
from leader.files import sha256_once
from leader.priors.detection import Config
from leader.priors.networks import ADMConfig, DDPMConfig

DRIVE = "https://drive.usercontent.google.com/download?export=download&confirm=t&id="


@dataclass(frozen=True)
class CatalogueEntry:
    """A published checkpoint.

    filename  the name it is published and cached under
    urls      download addresses, tried in order
    page      the page that publishes it
    licence   the known licence of the weights
    config    the network, complete
    size      side of the images it was trained on
    schedule  its noise schedule, as in a side-car file
    bytes     size of the file, or None if unknown; the tensors alone take 4 bytes per parameter
    sha256    of the file, or None if no hash is published
    """

    name: str
    title: str
    filename: str
    urls: tuple[str, ...]
    page: str
    licence: str
    config: Config
    parameters: int
    size: int = 256
    schedule: str = "linear"
    bytes: int | None = None
    sha256: str | None = None

    @property
    def options(self) -> dict[str, object]:
        """The content of a side-car file for this checkpoint."""
        options: dict[str, object] = {"size": self.size, "schedule": self.schedule}
        if isinstance(self.config, ADMConfig):
            order = "new" if self.config.new_attention_order else "legacy"
            heads: dict[str, object] = (
                {"head_channels": self.config.head_channels} if self.config.heads is None else {"heads": self.config.heads}
            )
            options |= heads | {"attention_order": order}
        return options

    @property
    def path(self) -> Path:
        """The path of the cached file, whether or not it exists."""
        return cache_folder() / self.filename

    @property
    def on_disk(self) -> bool:
        return self.path.is_file()


_LEVELS = (1, 1, 2, 2, 4, 4)
_GUIDED = ADMConfig(256, _LEVELS, 2, (3, 4, 5), out_channels=6, head_channels=64)

ENTRIES: dict[str, CatalogueEntry] = {
    entry.name: entry
    for entry in (
        CatalogueEntry(
            name="imagenet-256",
            title="ImageNet 256 x 256, unconditional (guided diffusion)",
            filename="256x256_diffusion_uncond.pt",
            urls=("https://openaipublic.blob.core.windows.net/diffusion/jul-2021/256x256_diffusion_uncond.pt",),
            page="https://github.com/openai/guided-diffusion",
            licence="MIT",
            config=_GUIDED,
            parameters=552_814_086,
            bytes=2_211_383_297,
            sha256="a37c32fffd316cd494cf3f35b339936debdc1576dad13fe57c42399a5dbc78b1",
        ),
        CatalogueEntry(
            name="celebahq-256",
            title="CelebA-HQ 256 x 256, DDPM (used by SDEdit, DDRM, DDNM)",
            filename="celeba_hq.ckpt",
            urls=(
                DRIVE + "1wSoA5fm_d6JBZk4RZ1SzWLMgev4WqH21",
                "https://huggingface.co/gwang-kim/DiffusionCLIP-CelebA_HQ/resolve/main/celeba_hq.ckpt",
            ),
            page="https://github.com/wyhuai/DDNM",
            licence="not stated; the images are for non-commercial research",
            config=DDPMConfig(128, _LEVELS, 2, (4,)),
            parameters=113_673_219,
        ),
        CatalogueEntry(
            name="celebahq-256-repaint",
            title="CelebA-HQ 256 x 256, ADM (RePaint)",
            filename="celeba256_250000.pt",
            urls=(DRIVE + "1norNWWGYP3EZ_o05DmoW1ryKuKMmhlCX",),
            page="https://github.com/andreas128/RePaint",
            licence="CC BY-NC-SA 4.0 (repository); the images are for non-commercial research",
            config=_GUIDED,
            parameters=552_814_086,
        ),
        CatalogueEntry(
            name="ffhq-256",
            title="FFHQ 256 x 256, ADM, 10M images (DPS)",
            filename="ffhq_10m.pt",
            urls=(DRIVE + "1BGwhRWUoguF-D8wlZ65tf227gp3cDUDh",),
            page="https://github.com/DPS2022/diffusion-posterior-sampling",
            licence="not stated; the images are CC BY-NC-SA 4.0",
            config=ADMConfig(128, _LEVELS, 1, (4,), out_channels=6, head_channels=64),
            parameters=93_563_910,
        ),
    )
}


def check_hash(entry: CatalogueEntry, path: Path) -> None:
    """Rejects a file whose SHA-256 differs from the published one, if there is one."""
    if entry.sha256 is not None and (found := sha256_once(path)) != entry.sha256:
        raise LeaderError(
            f"{path} has the SHA-256 {found} where {entry.sha256} was expected: it is damaged or a different "
            "file; delete it and download it again."
        )


def is_published(entry: CatalogueEntry, path: Path) -> bool:
    """Whether a file of the entry's shapes is the published one, wherever it is: by its SHA-256 or, if none is known, by
    equality with the copy in the cache folder or by its published name.
    """
    if entry.sha256 is not None:
        return sha256_once(path) == entry.sha256
    if path.name == entry.filename:
        return True
    there = entry.on_disk and path.stat().st_size == entry.path.stat().st_size
    return there and sha256_once(path) == sha256_once(entry.path)


def cache_folder() -> Path:
    """The folder of downloaded checkpoints: the environment variable LEADER_CACHE, or ~/.cache/leader."""
    chosen = os.environ.get("LEADER_CACHE")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "leader"


def find_entry(name: str) -> CatalogueEntry:
    if name not in ENTRIES:
        raise unknown_name("prior", name, ENTRIES)
    return ENTRIES[name]


def list_entries() -> list[dict[str, object]]:
    """One row per registered checkpoint, for people: name, title, bytes, licence, source, sha256, on disk."""
    shown = ("name", "title", "parameters", "licence")
    return [
        {name: getattr(item, name) for name in shown}
        | {"bytes": item.bytes or 4 * item.parameters, "source": item.page, "sha256": item.sha256 or "unknown"}
        | {"on_disk": item.on_disk, "path": str(item.path)}
        for item in ENTRIES.values()
    ]
