"""Numbers that may be given as percentages."""


def share_problem(value: object, *, may_exceed: bool = False) -> str:
    """What is wrong with what should be a number, or a percentage; empty: nothing.

    Args: may_exceed: it may be more than 100 %, where something is added.
    """
    if isinstance(value, int) and value < 0:
        return "must be greater than or equal to 0"
    if isinstance(value, str):
        digits = value.removesuffix("%")
        if not value.endswith("%") or not digits.isascii() or not digits.isdigit():
            return "must be a number, or a percentage such as 10%"
        if not may_exceed and (len(digits) > 3 or int(digits) > 100):
            return "must not be greater than 100%"
    return ""
