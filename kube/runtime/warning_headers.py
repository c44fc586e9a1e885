"""What an API server warns of beside its answer: headers `Warning` of RFC 7234, section 5.5, with the code 299.

They tell of unknown fields, deprecated versions, and whatever admission has to say. Anybody who is asked on the way may
add some, so they are read within bounds, and hold nothing but what can be printed.
"""

import re
from collections.abc import Iterable

from kube.visible import is_visible

MOST = 32
"""Warnings of one answer. API servers send no more than 4096 characters of them."""
LONGEST = 512
"""Characters of one."""
_LONGEST_HEADER = 16 << 10
_WARNING = re.compile(r'299 [^\s"]+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


def warning_texts(headers: Iterable[str]) -> list[str]:
    """Each once, in their order; what is no warning of this form is passed over."""
    found: dict[str, None] = {}
    for header in headers:
        for quoted in _WARNING.findall(header[:_LONGEST_HEADER]):
            if text := _shown(_ESCAPED.sub(r"\1", quoted)):
                found[text] = None
            if len(found) == MOST:
                return list(found)
    return list(found)


def _shown(text: str) -> str:
    words = "".join(character if is_visible(character) else " " for character in text).split()
    shown = " ".join(words)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
