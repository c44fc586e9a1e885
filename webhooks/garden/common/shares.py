"""Numbers that may be given as percentages."""

from collections.abc import Iterator

from kube.validation import FieldError, invalid


def share_errors(path: str, value: object, *, may_exceed: bool = False) -> Iterator[FieldError]:
    """A number, or a percentage, which may be more than 100 where something is added."""
    if isinstance(value, int) and value < 0:
        yield invalid(path, value, "must be greater than or equal to 0")
    if isinstance(value, str):
        digits = value.removesuffix("%")
        if not value.endswith("%") or not digits.isascii() or not digits.isdigit():
            yield invalid(path, value, "must be a number, or a percentage such as 10%")
        elif not may_exceed and (len(digits) > 3 or int(digits) > 100):
            yield invalid(path, value, "must not be greater than 100%")
