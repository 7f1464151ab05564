"""The errors a user can cause: one sentence each, saying what was found, what was expected and what to do."""

import difflib
from collections.abc import Iterable, Mapping


class LeaderError(ValueError):
    """A request that cannot be fulfilled. The command line prints its text and exits with 1.

    >>> leader.Problem(torch.rand(3, 8, 8), leader.operators.Denoising((3, 8, 8)))
    Traceback (most recent call last):
    leader.errors.LeaderError: The measurement [3, 8, 8] lacks the leading batch axis; use y[None].
    """


class UsageError(LeaderError):
    """A request that is not understood, such as one with an unknown name or option. The command line exits with 2.

    >>> leader.Sampler(method="projdif")
    Traceback (most recent call last):
    leader.errors.UsageError: Unknown method 'projdif': did you mean 'projdiff'?
    """


def no_memory(what: str = "this picture") -> LeaderError:
    """The error for a picture that the memory cannot hold, wherever that is noticed."""
    return LeaderError(f"There is not enough memory for {what}; restore a smaller part of it.")


def unknown_name(kind: str, found: object, valid: Iterable[str], titles: Mapping[str, str] | None = None) -> UsageError:
    """The error for a name that is not registered, with the nearest valid one suggested.

    titles  other words people use for valid names, such as {"super-resolution": "sr"}: they are matched too
    """
    names = sorted(valid)
    words = {name.lower(): name for name in names} | {word.lower(): name for word, name in (titles or {}).items()}
    near = difflib.get_close_matches(str(found).lower(), words, n=1, cutoff=0.6)
    hint = f"did you mean '{words[near[0]]}'?" if near else f"use one of {', '.join(names)}."
    return UsageError(f"Unknown {kind} '{found}': {hint}")
