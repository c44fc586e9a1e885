"""The state of a Shoot: from live objects and previously saved data, and its parts for each restored object.

It has keys and certificates that must not change, states of extensions, and the existing machines.
"""

import base64
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.gardenlet.common.shoot_states.rules.parts import entries, of_entries
from components.secrets import persisted
from components.secrets.labels import GARDENLET, IDENTITY, NAME
from gardener.api.extensions import WORKERS
from kube.objects import Object, key, labels, mapping, mappings, metadata, spec, string_map, text

_MACHINE_STATE = "machine-state"
"""Name and type of the entry with the machines."""
_OF_ADOPTABLE = ("annotations", "labels", "name", "namespace")
_TIMES = ("creationTimestamp", "generation", "managedFields", "ownerReferences", "resourceVersion", "uid")


def state(
    *, secrets: Iterable[Object], extensions: Iterable[Object], data: Mapping[str, Object], machines: Object | None
) -> Object:
    """Build the `spec` of a ShootState.

    Args:
        secrets: those that move to another seed.
        extensions: extension objects, of all kinds.
        data: objects that these refer to, by kind and name as `<kind>/<name>`.
        machines: by deployment; None or empty if there are none.
    """
    gardener = persisted.entries(secrets)
    if machines:
        gardener.append({"name": _MACHINE_STATE, "type": _MACHINE_STATE, "data": _packed(machines)})
    found: Object = {"gardener": gardener, "extensions": [], "resources": []}
    for each in sorted(extensions, key=lambda each: (each["kind"], key(each))):
        if (entry := _extension(each)) is not None:
            found["extensions"].append(entry)
    found["resources"] = [data[name] for name in sorted(data)]
    return found


def references(extension: Object) -> list[tuple[str, Object]]:
    """Names and references of the objects that an extension saves with its state."""
    listed = mappings(mapping(extension.get("status")).get("resources"))
    return [(text(each.get("name")), mapping(each.get("resourceRef"))) for each in listed]


def referenced(obj: Object) -> Object:
    """Saved form of an object to which the state of an extension refers."""
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": key(obj).name, "data": _bare(obj)}


def saved_object(state: Object, kind: str, name: str) -> Object | None:
    """Entry of the object in the `spec` of a ShootState, if it was saved."""
    found = mappings(state.get("resources"))
    return next((each for each in found if (each.get("kind"), each.get("name")) == (kind, name)), None)


def machines(deployments: Sequence[Object], sets: Sequence[Object], all_machines: Sequence[Object]) -> Object:
    """Machines of each deployment, so that a restoration adopts them instead of creating new ones."""
    return {
        key(each).name: {
            "replicas": spec(each).get("replicas", 0),
            "machineSets": [_adoptable(found) for found in sets if _owner(found) == key(each).name],
            "machines": [_adoptable(found) for found in all_machines if labels(found).get("name") == key(each).name],
        }
        for each in deployments
    }


def _adoptable(obj: Object) -> Object:
    """Object of a machine as an extension creates it again: without status, owner and finalizers."""
    meta = {name: value for name, value in metadata(obj).items() if name in _OF_ADOPTABLE}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": meta}


def _owner(obj: Object) -> str:
    return next((text(each.get("name")) for each in mappings(metadata(obj).get("ownerReferences"))), "")


def _extension(obj: Object) -> Object | None:
    status = mapping(obj.get("status"))
    kept = {name: status[name] for name in ("state", "resources") if status.get(name)}
    if not kept:
        return None
    purpose = text(spec(obj).get("purpose"))
    return {"kind": obj["kind"], "name": key(obj).name, **({"purpose": purpose} if purpose else {}), **kept}


def _packed(found: Object) -> Object:
    packed = gzip.compress(json.dumps({"machineDeployments": found}).encode(), mtime=0)
    return {"state": base64.b64encode(packed).decode()}


def _bare(obj: Object) -> Object:
    meta = {name: value for name, value in metadata(obj).items() if name not in _TIMES}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": meta}


# --- previously saved state


def merged(saved: Object, living: Object) -> Object:
    """Merge two `spec`s; entries of live objects take precedence over saved ones."""
    found = dict(entries(saved))
    for identity, each in entries(living):
        if identity[0] == "extensions" or each.get("data") is not None or identity not in found:
            found[identity] = each
    return of_entries(sorted(found.items(), key=lambda each: each[0]))


def without_gone(saved: Object, living: Object) -> Object:
    """Saved `spec` with all keys, but only those extensions that have a state now."""
    there = {identity for identity, _ in entries(living)}
    return of_entries(each for each in entries(saved) if each[0][0] == "gardener" or each[0] in there)


def without_machines(state: Object) -> Object:
    return of_entries(each for each in entries(state) if each[1].get("type") != _MACHINE_STATE)


def holds(state: Object, saved: Object) -> bool:
    """Whether the state has an entry for each saved one."""
    return {identity for identity, _ in entries(saved)} <= {identity for identity, _ in entries(state)}


def lost_secrets(saved: Object, living: Object) -> list[str]:
    """Names of configs with keys in the state, but not in the seed any more."""
    return sorted(_configs(saved) - _configs(living))


def has_keys(state: Object) -> bool:
    return bool(_configs(state))


def _configs(state: Object) -> set[str]:
    """Names of configs of the gardenlet; extensions may delete their Secrets at any time."""
    secrets = (each for each in mappings(state.get("gardener")) if each.get("type") == persisted.SECRET)
    found = [(text(each.get("name")), string_map(each.get("labels"))) for each in secrets]
    return {given.get(NAME) or name for name, given in found if given.get(IDENTITY, GARDENLET) == GARDENLET}


# --- restoration


@dataclass(frozen=True, slots=True)
class Left:
    """State of one object that an extension on another Seed has left.

    Attributes:
        status: status fields to set before the extension continues.
        objects: objects to which these refer, without a namespace.
    """

    status: Object
    objects: tuple[Object, ...] = ()


NOTHING = Left({})


def left_for(state: Object, manifest: Object) -> Left:
    """Find the state of the extension object `manifest` in the `spec` of a ShootState.

    That of a Worker is the machines, in the form in which they are saved.
    """
    wanted = manifest["kind"], key(manifest).name, text(spec(manifest).get("purpose"))
    of_extensions = mappings(state.get("extensions"))
    found = next((each for each in of_extensions if _name_of(each) == wanted), {})
    status = {field: found[field] for field in ("state", "resources") if found.get(field)}
    if manifest["kind"] == WORKERS.kind and (packed := _machine_state(state)):
        status["state"] = packed
    return Left(status, tuple(_referred(state, status)))


def _name_of(entry: Object) -> tuple[str, str, str]:
    return text(entry.get("kind")), text(entry.get("name")), text(entry.get("purpose"))


def _machine_state(state: Object) -> Object:
    found = (each for each in mappings(state.get("gardener")) if each.get("type") == _MACHINE_STATE)
    return mapping(next(found, {}).get("data"))


def _referred(state: Object, status: Object) -> Iterator[Object]:
    wanted = {(text(each.get("kind")), text(each.get("name"))) for _, each in references({"status": status})}
    for each in mappings(state.get("resources")):
        if (text(each.get("kind")), text(each.get("name"))) in wanted:
            yield mapping(each.get("data"))
