"""Errors that end a command."""

from collections.abc import Iterable


class UserError(Exception):
    """Error for the user: the message states the problem, `details` the places, one per line, `hint` the remedy."""

    def __init__(self, message: str, *, details: Iterable[str] = (), hint: str = "") -> None:
        self.lines = (message, *details)
        super().__init__("\n  ".join(self.lines))
        self.hint = hint


def not_found(kind: str, name: str, known: Iterable[str], *, where: str, remedy: str) -> UserError:
    """Error about a missing object; the message suggests similar names.

    Only names are compared: the common namespace would make all of them similar.

    Args:
        kind: of the missing object.
        name: of the missing object.
        known: existing names.
        where: prefix of each name.
        remedy: hint if no name is similar.
    """
    return UserError(f"{kind} {where}{name} not found", hint=suggested(name, known, where=where) or remedy)


def suggested(name: str, known: Iterable[str], *, where: str = "") -> str:
    """Hint that names similar ones of the known names, with a prefix; empty if there are none."""
    from difflib import get_close_matches  # only here: few calls end so

    close = get_close_matches(name, list(known), n=3)
    return f"did you mean {' or '.join(where + found for found in close)}?" if close else ""
