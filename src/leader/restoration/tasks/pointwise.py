"""Tasks without options: denoising and colourisation."""

from __future__ import annotations

from dataclasses import replace

from leader.errors import LeaderError
from leader.forensics import Examination
from leader.messages import Note
from leader.pictures.picture import Picture
from leader.restoration.tasks.base import Measured, Request, Shape, Task, Values

INVENTED_COLOURS = Note("invented colours", "The colours are invented: the picture has none.")


class Denoising(Task):
    name = "denoise"
    title = "denoising"
    description = "Removes noise and nothing else."
    example = "leader restore noisy.png clean.png --task denoise"
    page = ("noisy", "It is noisy")
    coarse_colour = True
    weak_noise = 1.5 / 255  # nobody sees it, and on validation photographs taking away less cost more detail than it gained


class Colourisation(Task):
    name = "colourise"
    title = "colourisation"
    description = "Gives colours to a grey picture: the mean of the three channels is what was measured."
    example = "leader restore grey.png colour.png --task colourise"
    page = ("grey", "It has no colour")

    def check(self, request: Request) -> None:
        if not request.degrading:
            request.notes.append(INVENTED_COLOURS)
        if request.degrading and request.picture.pixels.shape[2] == 1:
            raise LeaderError("The picture is grey already; give one with colours, or restore it with the task 'colourise'.")

    def shape(self, picture: Picture, values: Values) -> Shape:
        return 3, picture.pixels.shape[0], picture.pixels.shape[1]

    def measured(self, examination: Examination, values: Values) -> Measured:
        grey = examination.picture.pixels.mean(2, keepdims=True)
        return replace(super().measured(examination, values), pixels=grey)
