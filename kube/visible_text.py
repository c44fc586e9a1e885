r"""Text for people: what a terminal would obey instead of showing it is shown as an escape code.

Names, messages and annotations are written by others. An escape sequence in them would move the cursor or set a title,
a carriage return or a line separator would begin a line that looks like one of ours, and characters of direction or of
no width would show something else than what is there. So whatever is printed for people goes through `printable`:

    printable("a\x1b[2J\rb")       a\x1b[2J\rb, in one line

JSON goes through `printable_json`, and YAML through `printable` too, as both can say the same value in such codes.
"""

import re

LINES = "\n"
"""To keep in what has several lines."""
TEXT = "\n\t"
"""To keep in a whole text by others."""

_BLANK = (
    *("\u034f", "\u115f-\u1160", "\u17b4-\u17b5", "\u180b-\u180f", "\u2800", "\u3164"),
    *("\ufe00-\ufe0f", "\uffa0", "\U0001d159", "\U000e0100-\U000e01ef"),
)
"""Characters that Unicode ignores by default, and blank ones, as far as Python holds them to be printable."""
_is_blank = re.compile(f"[{''.join(_BLANK)}]").search


def is_visible(text: str) -> bool:
    """Whether people can see all characters: no controls and formats, nor letters and marks that nothing is drawn for.

    Of separators, only the blank counts.
    """
    return text.isprintable() and (text.isascii() or not _is_blank(text))


def printable(text: str, *, keep: str = "") -> str:
    """The text, with codes for all that can't be seen: controls, formats, separators other than the blank."""
    if is_visible(text):
        return text
    return "".join(each if is_visible(each) or each in keep else _code(each) for each in text)


def printable_json(encoded: bytes) -> bytes:
    """JSON with the same value. Outside of strings it has no such characters but line breaks."""
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded
    shown = (each if is_visible(each) or each == "\n" else _json_code(each) for each in encoded.decode())
    return "".join(shown).encode()


def _code(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _json_code(character: str) -> str:
    """JSON has codes of four digits alone, two of them for what is above."""
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
