"""From an object and what became of it to a JSON patch (RFC 6902).

Equal parts are passed over by comparing them as wholes, so that what costs anything is the way to what has changed.
Operations come in the order of the fields' names: equal input gives equal bytes.
"""

from typing import Any

from kube.objects import Object, pointer_step


def difference(before: Any, after: Any) -> list[Object]:
    """The operations that make `after` of `before`; only `add`, `replace`, `remove`."""
    operations: list[Object] = []
    if before != after:
        _compare("", before, after, operations)
    return operations


def _compare(path: str, before: Any, after: Any, operations: list[Object]) -> None:
    """For two values that are not equal."""
    kind = type(before) if type(before) is type(after) else None
    if kind is dict:
        _compare_objects(path, before, after, operations)
    elif kind is list:
        _compare_lists(path, before, after, operations)
    else:
        operations.append({"op": "replace", "path": path, "value": after})


def _compare_objects(path: str, before: Object, after: Object, operations: list[Object]) -> None:
    differing = [name for name, value in after.items() if name not in before or before[name] != value]
    if not before.keys() <= after.keys():
        differing += [name for name in before if name not in after]
    differing.sort()
    for name in differing:
        at = f"{path}/{pointer_step(name)}"
        if name not in after:
            operations.append({"op": "remove", "path": at})
        elif name not in before:
            operations.append({"op": "add", "path": at, "value": after[name]})
        else:
            _compare(at, before[name], after[name], operations)


def _compare_lists(path: str, before: list[Any], after: list[Any], operations: list[Object]) -> None:
    for index, (old, new) in enumerate(zip(before, after, strict=False)):
        if old != new:
            _compare(f"{path}/{index}", old, new, operations)
    surplus, missing = range(len(before) - 1, len(after) - 1, -1), range(len(before), len(after))
    operations += [{"op": "remove", "path": f"{path}/{index}"} for index in surplus]
    operations += [{"op": "add", "path": f"{path}/{index}", "value": after[index]} for index in missing]
