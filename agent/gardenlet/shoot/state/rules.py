"""When the state of a Shoot is saved, and what of it: pure.

The state is that of living objects: keys and certificates that have to stay the same, what extensions have noted, and
the machines that run.
"""

import base64
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from agent.gardenlet.secrets_manager.rules import persisted
from gardener.garden.shoots import last_operation, operation_of
from gardener.keys import TIMESTAMP
from gardener.operations import CREATE, MIGRATE, RESTORE
from kube.clock import time_or_none
from kube.objects import Object, annotations, is_deleting, key, labels, mapping, mappings, metadata, spec, text

LONGEST = 1 << 20
"""Bytes of a whole state, as JSON: a database takes objects of little more."""
_TIMES = ("creationTimestamp", "generation", "managedFields", "ownerReferences", "resourceVersion", "uid")


class TooLarge(Exception):
    """The state is not saved; the text has the sizes of its parts."""


def is_savable(shoot: Object) -> bool:
    """Not before it was created; and not while it moves, since then its state is saved with care for what was."""
    last = last_operation(shoot)
    is_created = bool(last) and (last.get("type") != CREATE or last.get("state") == "Succeeded")
    return is_created and not is_deleting(shoot) and operation_of(shoot) not in {MIGRATE, RESTORE}


def due_in(state: Object | None, period: float, *, now: datetime) -> float:
    """Seconds until it is to be saved again; 0: now. Args: state: a ShootState."""
    saved = time_or_none(annotations(state or {}).get(TIMESTAMP))
    if saved is None or saved > now:
        return 0.0
    return max((saved + timedelta(seconds=period) - now).total_seconds(), 0.0)


def state(
    *, secrets: Iterable[Object], extensions: Iterable[Object], data: Mapping[str, Object], machines: Object | None
) -> Object:
    """The `spec` of a ShootState.

    Args:
        secrets: that stay the same on another seed.
        extensions: extension objects, of all kinds.
        data: objects that these refer to, by kind and name as `<kind>/<name>`.
        machines: by deployment; None: the Shoot has no workers.

    Raises: TooLarge.
    """
    gardener = persisted.entries(secrets)
    if machines is not None:
        gardener.append({"name": "machine-state", "type": "machine-state", "data": _packed(machines)})
    found: Object = {"gardener": gardener, "extensions": [], "resources": []}
    for each in sorted(extensions, key=lambda each: (each["kind"], key(each))):
        if (entry := _extension(each)) is not None:
            found["extensions"].append(entry)
    found["resources"] = [data[name] for name in sorted(data)]
    sizes = {name: len(json.dumps(value)) for name, value in found.items()}
    if sum(sizes.values()) > LONGEST:
        said = ", ".join(f"{name} {size} bytes" for name, size in sizes.items())
        remedy = "have extensions keep less in their status"
        raise TooLarge(f"the state is not saved: it is larger than {LONGEST} bytes ({said}); {remedy}")
    return found


def references(extension: Object) -> list[tuple[str, Object]]:
    """Names and references of the objects that an extension wants to have with its state."""
    listed = mappings(mapping(extension.get("status")).get("resources"))
    return [(text(each.get("name")), mapping(each.get("resourceRef"))) for each in listed]


def referenced(obj: Object) -> Object:
    """How an object is kept that the state of an extension refers to."""
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": key(obj).name, "data": _bare(obj)}


def machines(deployments: Sequence[Object], sets: Sequence[Object], all_machines: Sequence[Object]) -> Object:
    """The machines of each deployment, so that these are taken over and no new ones made."""
    return {
        key(each).name: {
            "replicas": spec(each).get("replicas", 0),
            "machineSets": [_bare(found) for found in sets if _owner(found) == key(each).name],
            "machines": [_bare(found) for found in all_machines if labels(found).get("name") == key(each).name],
        }
        for each in deployments
    }


def _owner(obj: Object) -> str:
    return next((text(each.get("name")) for each in mappings(metadata(obj).get("ownerReferences"))), "")


def _extension(obj: Object) -> Object | None:
    status = mapping(obj.get("status"))
    kept = {name: status[name] for name in ("state", "resources") if status.get(name)}
    if not kept:
        return None
    purpose = text(spec(obj).get("purpose"))
    return {"kind": obj["kind"], "name": key(obj).name, **({"purpose": purpose} if purpose else {}), **kept}


def _packed(found: Object) -> Object | None:
    if not found:
        return None
    packed = gzip.compress(json.dumps({"machineDeployments": found}).encode(), mtime=0)
    return {"state": base64.b64encode(packed).decode()}


def _bare(obj: Object) -> Object:
    meta = {name: value for name, value in metadata(obj).items() if name not in _TIMES}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": meta}
