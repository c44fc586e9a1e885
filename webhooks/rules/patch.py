"""JSON patch (RFC 6902) between two versions of an object.

Equal parts are compared as wholes and skipped, so that only the paths to changes cost time. Operations are in the order
of the fields' names: equal input gives equal bytes.
"""

from typing import Any

from kube.objects import Object
from kube.paths import pointer_step

MAX_OPERATIONS = 10_000
"""Maximum; an EndpointSlice has at most a thousand endpoints, and a pod a few containers."""


class TooManyChanges(ValueError):
    def __init__(self) -> None:
        super().__init__(f"the patch would have more than {MAX_OPERATIONS} operations")


def difference(before: Any, after: Any) -> list[Object]:
    """Return the operations from `before` to `after`; only `add`, `replace`, `remove`.

    Raises:
        TooManyChanges: there are more than `MAX_OPERATIONS`.
    """
    operations: list[Object] = []
    if before != after:
        _compare("", before, after, operations)
    if len(operations) > MAX_OPERATIONS:
        raise TooManyChanges
    return operations


def _compare(path: str, before: Any, after: Any, operations: list[Object]) -> None:
    """Append the operations between two values that are not equal."""
    if len(operations) > MAX_OPERATIONS:
        raise TooManyChanges
    kind = type(before)
    if kind is not type(after) or (kind is not dict and kind is not list):
        operations.append({"op": "replace", "path": path, "value": after})
    elif kind is list:
        _compare_lists(path, before, after, operations)
    else:
        _compare_objects(path, before, after, operations)


def _compare_objects(path: str, before: Object, after: Object, operations: list[Object]) -> None:
    differing = [name for name, value in after.items() if name not in before or before[name] != value]
    removed = before.keys() - after.keys()
    if removed:
        differing += removed
    differing.sort()
    for name in differing:
        where = f"{path}/{pointer_step(name)}"
        if name not in before:
            operations.append({"op": "add", "path": where, "value": after[name]})
        elif name in removed:
            operations.append({"op": "remove", "path": where})
        else:
            _compare(where, before[name], after[name], operations)


def _compare_lists(path: str, before: list[Any], after: list[Any], operations: list[Object]) -> None:
    common = min(len(before), len(after))
    for index in range(common):
        if before[index] != after[index]:
            _compare(f"{path}/{index}", before[index], after[index], operations)
    if len(before) > common:
        surplus = reversed(range(common, len(before)))
        operations += [{"op": "remove", "path": f"{path}/{index}"} for index in surplus]
    elif len(after) > common:
        missing = range(common, len(after))
        operations += [{"op": "add", "path": f"{path}/{index}", "value": after[index]} for index in missing]
