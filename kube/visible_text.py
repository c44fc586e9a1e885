r"""Text for people: characters that a terminal would obey instead of showing are replaced by escape codes.

Names, messages and annotations are written by others. An escape sequence in them would move the cursor or set a title,
a carriage return or a line separator would begin a line that looks like one of ours, and characters of direction or of
no width would disguise the text. So all text printed for people goes through `printable`:

    printable("a\x1b[2J\rb")       a\x1b[2J\rb, in one line

JSON goes through `printable_json`, and YAML through `printable` too, as both can express the same value in such codes.
"""

import re

LINES = "\n"
"""Characters to keep in a text of several lines."""
TEXT = "\n\t"
"""Characters to keep in a whole text by others."""

_BLANK = (
    *("\u034f", "\u115f-\u1160", "\u17b4-\u17b5", "\u180b-\u180f", "\u2800", "\u3164"),
    *("\ufe00-\ufe0f", "\uffa0", "\U0001d159", "\U000e0100-\U000e01ef"),
)
"""Characters that Unicode ignores by default, and blank ones, as far as Python considers them printable."""
_is_blank = re.compile(f"[{''.join(_BLANK)}]").search


def is_visible(text: str) -> bool:
    """Whether people can see all characters: no controls and formats, nor letters and marks that are not drawn.

    Of separators, only the blank counts.
    """
    return text.isprintable() and (text.isascii() or not _is_blank(text))


def printable(text: str, *, keep: str = "") -> str:
    """Replace all invisible characters by codes: controls, formats, separators other than the blank."""
    if is_visible(text):
        return text
    return "".join(each if is_visible(each) or each in keep else _code(each) for each in text)


def printable_json(encoded: bytes) -> bytes:
    """Replace invisible characters in JSON, with the same value. Outside of strings it has only line breaks of that
    kind.
    """
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded
    shown = (each if is_visible(each) or each == "\n" else _json_code(each) for each in encoded.decode())
    return "".join(shown).encode()


def _code(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _json_code(character: str) -> str:
    """Code of a character in JSON: four digits, two codes beyond the basic plane."""
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
