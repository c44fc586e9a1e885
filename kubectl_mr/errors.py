"""What a command can't go on with."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """The message says what is wrong, `details` in lines of their own where, `hint` what can be done about it."""

    def __init__(self, message: str, *, details: Iterable[str] = (), hint: str = "") -> None:
        self.lines = (message, *details)
        super().__init__("\n  ".join(self.lines))
        self.hint = hint


def not_found(kind: str, name: str, known: Iterable[str], *, where: str) -> UserError:
    """Something that does not exist; names that are nearly the same are told."""
    close = get_close_matches(name, list(known), n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else f"look at all of them: kubectl mr get {where}"
    return UserError(f"{kind} {name} not found", hint=hint)
