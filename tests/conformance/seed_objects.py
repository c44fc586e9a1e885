"""The objects of a seed, as a gardenlet of v1.104.3 wrote them for a Seed of type `local`, and how ours differ.

Recorded names end in `<hash>`, and certificates, addresses and uids are placeholders. Both sides are brought to the
same form: hashes of contents become `<hash>`, what the API server counts goes, references of the garbage collector are
known by what they refer to.
"""

import base64
import gzip
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from devcluster.cluster import Cluster
from gardener.keys import REFERENCE_PREFIX
from kit.world import Place
from kube.objects import Object, group_of, metadata
from kube.resources import BUILT_IN_GROUPS

_FILE = Path(__file__).parent / "gardenlet/seed-objects.json.gz"
_HASH = re.compile(r"-(?:<hash(?:-\d+)?>|[0-9a-f]{8})$")
_PLACEHOLDER = re.compile(r"<(?:certificate|uid|cluster-ip|lb-ip|host|key|sha256)\b")
_COUNTED = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")
MISSING = "-"
"""What a side has that does not have a field."""

Path_ = tuple[str, ...]
Stored = Callable[[Object], Object]


class Name(NamedTuple):
    kind: str
    name: str


def _load() -> Object:
    loaded: Object = json.loads(gzip.decompress(_FILE.read_bytes()))
    return loaded


def recorded_objects() -> dict[Name, Object]:
    """Those that the gardenlet wrote itself, as they were stored; not Secrets, Leases and NetworkPolicies."""
    return by_name(_load()["objects"])


def recorded_as_stored(*, ca_bundle: str) -> Iterator[Object]:
    """The same, so that an API server takes them: what it gives out itself is left to it."""
    for each in _load()["objects"]:
        obj = valid(each, ca_bundle=ca_bundle)
        for name in ("clusterIP", "clusterIPs"):
            if obj["kind"] == "Service":
                obj["spec"].pop(name, None)
        yield obj


def recorded_managed_resources() -> dict[str, Object]:
    """By name; those of which more than names is compared have their Secrets and objects."""
    return {each["name"]: each for each in _load()["managedResources"]}


def valid(obj: Object, *, ca_bundle: str) -> Object:
    """A recorded object that an API server accepts: names without placeholders, certificates (PEM), and data as they are sent."""
    text = re.sub(r"<hash(?:-(\d+))?>", lambda found: f"{found[1] or 0:0>8}", json.dumps(obj))
    filled: Object = json.loads(text)
    for webhook in filled.get("webhooks") or []:
        if "caBundle" in webhook["clientConfig"]:
            webhook["clientConfig"]["caBundle"] = base64.b64encode(ca_bundle.encode()).decode()
    if filled["kind"] == "Secret":
        filled["data"] = {name: base64.b64encode(text.encode()).decode() for name, text in filled["data"].items()}
    return {name: value for name, value in filled.items() if name != "status"}


def stored_by(cluster: Cluster, namespace: str, *, as_they_are: Collection[str]) -> Stored:
    """How an API server would store an object; as it is if only a definition states. Args: as_they_are: kinds, too."""
    place = Place(cluster, namespace)

    def of(obj: Object) -> Object:
        if obj["kind"] in as_they_are or group_of(obj["apiVersion"]) not in BUILT_IN_GROUPS:
            return obj
        meta = metadata(obj)
        if "namespace" not in meta:
            return place.dry_run(obj)
        answer = place.dry_run({**obj, "metadata": {**meta, "namespace": namespace}})
        return {**answer, "metadata": {**answer["metadata"], "namespace": meta["namespace"]}}

    return of


def by_name(objects: Iterable[Object]) -> dict[Name, Object]:
    return {Name(obj["kind"], unhashed(obj["metadata"]["name"])): normal(obj) for obj in objects}


def unhashed(name: str) -> str:
    return _HASH.sub("-<hash>", name)


def normal(obj: Object) -> Object:
    """A copy in the common form."""
    result: Object = _normal({name: value for name, value in obj.items() if name != "status"})
    for name in _COUNTED:
        result["metadata"].pop(name, None)
    return result


def _normal(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _normal(inner) if name != "annotations" else _without_hashes(inner)
            for name, inner in value.items()
            if not (name == "annotations" and not inner)
        }
    if isinstance(value, list):
        return [_normal(inner) for inner in value]
    return unhashed(value) if isinstance(value, str) else value


def _without_hashes(notes: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for name, text in notes.items():
        is_reference = name.startswith(REFERENCE_PREFIX)
        found[f"{_HASH.sub('', name)} {unhashed(text)}" if is_reference else name] = unhashed(text)
    return found


def differences(ours: Any, recorded: Any, path: Path_ = ()) -> Iterator[tuple[str, Any, Any]]:
    """Paths, with what either side has there; a placeholder is as anything."""
    if isinstance(ours, dict) and isinstance(recorded, dict):
        for name in sorted({*ours, *recorded}):
            yield from differences(ours.get(name, MISSING), recorded.get(name, MISSING), (*path, name))
    elif isinstance(ours, list) and isinstance(recorded, list):
        for position in range(max(len(ours), len(recorded))):
            ours_, theirs = (each[position] if position < len(each) else MISSING for each in (ours, recorded))
            yield from differences(ours_, theirs, (*path, str(position)))
    elif ours != recorded and not (isinstance(recorded, str) and _PLACEHOLDER.search(recorded)):
        yield "/".join(path), ours, recorded


def found_differences(ours: Mapping[Name, Object], recorded: Mapping[Name, Object]) -> dict[Name, set[str]]:
    """By object, the paths at which ours differ."""
    assert not ours.keys() - recorded.keys()
    found = {name: {path for path, *_ in differences(obj, recorded[name])} for name, obj in ours.items()}
    return {name: paths for name, paths in found.items() if paths}
