"""Which characters people can see: neither controls and formats, nor letters and marks that nothing is drawn for."""

import re

_BLANK = (
    *("\u034f", "\u115f-\u1160", "\u17b4-\u17b5", "\u180b-\u180f", "\u2800", "\u3164"),
    *("\ufe00-\ufe0f", "\uffa0", "\U0001d159", "\U000e0100-\U000e01ef"),
)
"""Those that Unicode has ignored by default, and blank ones, as far as Python holds them to be printable."""
_is_blank = re.compile(f"[{''.join(_BLANK)}]").search


def is_visible(text: str) -> bool:
    """Of all its characters; of separators, only the blank counts."""
    return text.isprintable() and (text.isascii() or not _is_blank(text))
