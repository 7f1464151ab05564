"""Restoration: the result of a run on a picture, and everything about it."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from leader.errors import LeaderError, UsageError
from leader.pictures import Picture, write_picture
from leader.restoration.pose import OfPosed, PosedProblem
from leader.restoration.repeat import Origin, describe_run, write_stamp
from leader.restoration.second_try import Try
from leader.result import Result
from leader.trust import ErrorMap, Verdict
from leader.trust.maps import shares


@dataclass(frozen=True, repr=False, eq=False)
class Restoration(OfPosed):
    """A restored picture.

    picture  with the transparency, bits and colour profile of the original
    posed    the problem that was solved: the picture given, task, noise level, notes
    result   the run, cropped to the picture: images [1, C, H, W] in [-1, 1], trace, ledger, settings
    seconds  wall-clock time of the run
    origin   where prior and picture came from, for repeating the run
    verdict  whether the result is plausible and the measurement was as stated; None if the run was not checked
    tries    all runs in order, if a failed one was repeated (see `second_try`)
    trust    the source of the uncertainty and the factors of other intervals; None if the prior has no referee

    >>> leader.restore(torch.rand(3, 16, 24), "denoise", sigma=0.1, steps=3, check=False).array.shape
    (16, 24, 3)
    """

    picture: Picture
    posed: PosedProblem
    result: Result
    seconds: float
    origin: Origin
    verdict: Verdict | None = None
    tries: tuple[Try, ...] = ()
    trust: ErrorMap | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Choices made on the way, one sentence each."""
        note = None if self.trust is None else self.trust.note
        return self.posed.notes if note is None else (*self.posed.notes, note)

    @property
    def image(self) -> Image.Image:
        """The restored picture in 8 bits, for Pillow."""
        return self.picture.to_pil()

    @property
    def array(self) -> NDArray[np.float32]:
        """The restored pixels [H, W, C] in [0, 1]."""
        return self.picture.pixels

    @property
    def uncertainty(self) -> NDArray[np.float32] | None:
        """Standard deviation per pixel [H, W] for [0, 1] images, channels joined by root mean square, or None.

        That of the error if the prior has a referee, else the model's own posterior spread.
        """
        spread = self.result.posterior_std if self.result.error_std is None else self.result.error_std
        if spread is None:
            return None
        joined: NDArray[np.float32] = (spread[0].square().mean(0).sqrt() / 2).cpu().numpy()
        return joined

    def save(self, path: str | Path, location: bool = False) -> None:
        """Writes the restored picture; the suffix chooses the format.

        Its metadata is that of the given picture, with a note of how it was made; `location` keeps the place where it was
        taken, which is dropped otherwise.
        """
        if not isinstance(path, (str, Path)):
            raise UsageError(f"A picture is saved at a path; found {type(path).__name__}.")
        write_picture(Path(path), self.picture, location, write_stamp(self.posed, self.result, self.origin))

    def save_map(self, path: str | Path) -> None:
        """Writes the trust map as the name's ending says: heat map, faded picture, 16-bit numbers or an array."""
        spread = self.uncertainty
        if spread is None:
            raise LeaderError("This run estimated no uncertainty, so there is no map; choose another estimator than 'none'.")
        from leader.pictures.figures import draw_map

        draw_map(Path(path), spread, self.array)

    def summary(self) -> dict[str, Any]:
        """Everything worth keeping beside the picture, ready for JSON; `repeat.arguments_of` repeats the run from it."""
        spread = self.uncertainty
        return {
            **describe_run(self.posed, self.result, self.origin),
            "size": list(self.picture.size),
            "seconds": round(self.seconds, 3),
            "network": self.result.ledger.total.as_dict(),
            "mean_uncertainty": None if spread is None else float(spread.mean()),
            "trust": None if self.trust is None else {"source": self.trust.source, "level": self.trust.level},
            "known_to_within": None if spread is None else shares(spread),
            "verdict": None if self.verdict is None else self.verdict.as_dict(),
            "tries": [asdict(item) for item in self.tries],
            "trace": [
                {"t": visit.t, "u": visit.u, "U": visit.U, "jump": visit.jump}
                for visits in self.result.trace.values()
                for visit in visits
            ],
        }

    def __repr__(self) -> str:
        width, height = self.picture.size
        calls = self.result.ledger.total.calls
        made = f"{calls} network call{'' if calls == 1 else 's'}"
        return f"<Restoration {self.task}: {width} x {height} pixels, sigma {self.sigma:.4g}, {made}>"

    def _repr_png_(self) -> bytes:
        """How a notebook shows the restored picture."""
        return self.picture._repr_png_()
