"""What a command can't go on with."""

from collections.abc import Iterable


class UserError(Exception):
    """The message says what is wrong, `details` in lines of their own where, `hint` what can be done about it."""

    def __init__(self, message: str, *, details: Iterable[str] = (), hint: str = "") -> None:
        self.lines = (message, *details)
        super().__init__("\n  ".join(self.lines))
        self.hint = hint


def not_found(kind: str, name: str, known: Iterable[str], *, where: str, remedy: str) -> UserError:
    """Something that does not exist; the message suggests similar names.

    Names are compared alone: what all share, their namespace, would make all of them similar.

    Args:
        kind: of what is missing.
        name: of what is missing.
        known: the names that exist.
        where: what goes before each name.
        remedy: what to do if no name is similar.
    """
    from difflib import get_close_matches  # only here: few calls end so

    close = get_close_matches(name, list(known), n=3)
    hint = f"did you mean {' or '.join(where + found for found in close)}?" if close else remedy
    return UserError(f"{kind} {where}{name} not found", hint=hint)
