"""The registered Seed: its content, and the marker that prevents its registration.

Labels and annotations of other clients stay. Labels of a previous configuration go: `metadata.managedFields` lists
those that this program has set.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping

from gardener import keys
from gardener.api.garden import SEEDS
from gardener.api.garden.seed import SEED
from gardener.api.structural import with_defaults
from gardener.garden.seeds import with_reserved_capacity
from kube.differences import merge_patch, own_fields
from kube.objects import Object, annotations, labels, mapping, metadata, spec, string_map, text, uid
from kube.paths import mapping_at
from kube.resources import CONFIG_MAPS

FIELD_MANAGER = "gardenlet"
"""Field manager of this program; same as the original's."""
ROLE_SEED = "seed"
MARKER = "gardenlet-seed-finalised"
MARKER_NAMESPACE = "garden"
_SEED, _UID, _CONFIGURATION = "seed", "uid", "configuration"


# --- the Seed


def new_seed(configured: Object) -> Object:
    """Build a new Seed.

    Args:
        configured: `metadata` and `spec`, as configured.
    """
    meta: Object = {"name": metadata(configured)["name"], "labels": _labels(configured)}
    if noted := annotations(configured):
        meta["annotations"] = noted
    return {**SEEDS.type_meta, "metadata": meta, "spec": _spec(configured)}


def seed_patch(live: Object, configured: Object) -> Object:
    """Return a merge patch; empty if the Seed is as configured. `live` must have its managed fields."""
    wanted = _labels(configured)
    former = {name for name in _own_labels(live) if name not in wanted and keys.EXTENSION_LABELS not in name}
    kept = {name: value for name, value in labels(live).items() if name not in former}
    present = {
        "metadata": {"labels": labels(live), "annotations": annotations(live)},
        "spec": spec(live),
    }
    desired = {
        "metadata": {
            "labels": {**kept, **wanted},
            "annotations": {**annotations(live), **annotations(configured)},
        },
        "spec": _spec(configured),
    }
    return merge_patch(present, desired)


def _labels(configured: Object) -> dict[str, str]:
    return {keys.ROLE: ROLE_SEED, **labels(configured)}


def _spec(configured: Object) -> Object:
    """Configured spec with the defaults of the garden, for comparison."""
    filled: Object = with_defaults(SEED.schema, {"spec": spec(configured)})
    return with_reserved_capacity(spec(filled))


def _own_labels(live: Object) -> Iterator[str]:
    for fields in own_fields(live, FIELD_MANAGER):
        for name in mapping_at(fields, "f:metadata", "f:labels"):
            if name.startswith("f:"):
                yield name.removeprefix("f:")


# --- a deleted Seed


def finalised_marker(seed: Object, configured: Object) -> Object:
    """Build the ConfigMap in the seed cluster that marks the Seed as removed, so that a restart does not restore it."""
    data = {_SEED: text(metadata(seed).get("name")), _UID: uid(seed), _CONFIGURATION: _digest(configured)}
    meta = {"name": MARKER, "namespace": MARKER_NAMESPACE}
    return {**CONFIG_MAPS.type_meta, "metadata": meta, "data": data}


def stays_away(marker: Object | None, configured: Object) -> bool:
    """Whether a missing Seed was removed on purpose, and its configuration is unchanged since then."""
    reported = _marked(marker)
    return reported.get(_SEED) == metadata(configured)["name"] and reported.get(_CONFIGURATION) == _digest(configured)


def why_again(marker: Object | None) -> str:
    """Reason why a missing Seed is registered, for the log."""
    return "its configuration has changed since it was removed" if _marked(marker) else "there is none"


def _marked(marker: Object | None) -> Mapping[str, str]:
    return string_map((marker or {}).get("data"))


def _digest(configured: Object) -> str:
    return hashlib.sha256(json.dumps(mapping(configured), sort_keys=True).encode()).hexdigest()
