"""Numbers in annotations, and their errors."""

import json
import re

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


def integer(text: str, *, function: str) -> int:
    """Parse an integer like Go's `function` of package strconv: `Atoi`, `ParseInt`.

    Raises:
        ValueError: with its message.
    """
    if _INTEGER.fullmatch(text) is None:
        raise ValueError(f"strconv.{function}: parsing {quoted(text)}: invalid syntax")
    # So many digits are out of range, unless they are zeros; reading them all could take long.
    digits = text.lstrip("+-").lstrip("0")
    number = int(digits or "0") if len(digits) < 20 else 2**64
    number = -number if text.startswith("-") else number
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"strconv.{function}: parsing {quoted(text)}: value out of range")
    return number


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
