"""Reviews that differ from recorded ones in fields, not in bytes: what comes of them is still JSON."""

import copy
import random
from collections.abc import Iterator
from typing import Any

_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**31, 2**63, 2**64, 1.5, 1e308, "", " ", "a", "a/b", "~1/~0", "..", "\0", "\ud7ff"),
    *("\U0001f600" * 3, "x" * 300, "true", "0", "gardener", "*", [], {}, [[]], [None], [{}], {"": ""}, {"name": 5}),
)
_FIELDS = (
    *(
        "name",
        "namespace",
        "labels",
        "annotations",
        "spec",
        "status",
        "metadata",
        "containers",
        "volumes",
        "env",
        "type",
    ),
    *(
        "securityContext",
        "seccompProfile",
        "serviceAccountName",
        "tolerations",
        "topologySpreadConstraints",
        "replicas",
    ),
    *("template", "nodeSelector", "schedulerName", "projected", "sources", "", "a/b", "~", "selector", "matchLabels"),
    *("matchLabelKeys", "minReplicas", "maxReplicas", "key", "effect", "value", "operator"),
)
_OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT", "", None, 5)
_SUBRESOURCES = ("status", "ephemeralcontainers", "resize", "eviction", 7)


def changed(review: Any, chance: random.Random) -> Any:
    """Without objects that stand in several places: what changes one of them would change them all."""
    found = copy.deepcopy(review)
    request = found["request"]
    for field in ("object", "oldObject"):
        if chance.random() < 0.8:
            _change(request, field, chance)
    if chance.random() < 0.05:
        request["operation"] = chance.choice(_OPERATIONS)
    if chance.random() < 0.05:
        request["subResource"] = chance.choice(_SUBRESOURCES)
    if chance.random() < 0.1:
        _change({"review": found}, "review", chance)
    return found


def _change(holder: Any, field: str, chance: random.Random) -> None:
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 5))):
        places = list(_places(holder, field))
        parent, step = chance.choice(places)
        value = parent[step]
        other, other_step = chance.choice(places)
        new = copy.deepcopy(chance.choice((*_VALUES, other[other_step], other[other_step])))
        match chance.randrange(5):
            case 0:
                parent[step] = new
            case 1 if isinstance(value, dict):
                value[chance.choice(_FIELDS)] = new
            case 2 if isinstance(value, list):
                value.insert(chance.randint(0, len(value)), new)
            case 3 if isinstance(value, list) and value:
                value += [copy.deepcopy(each) for _ in range(chance.choice((1, 3))) for each in value]
            case 4 if isinstance(value, dict) and value:
                del value[chance.choice(list(value))]


def _places(parent: Any, step: Any) -> Iterator[tuple[Any, Any]]:
    """All values at and below `parent[step]`, as the object or list that holds them, and where."""
    if isinstance(parent, dict) and step not in parent:
        parent[step] = None
    left = [(parent, step)]
    while left:
        holder, at = left.pop()
        yield holder, at
        value = holder[at]
        if isinstance(value, dict | list):
            left += [(value, each) for each in (value if isinstance(value, dict) else range(len(value)))]
