"""The object to write: the manifest, with fields of other writers kept from the live object.

Everything outside metadata and status is from the manifest; a field that it lacks is removed or gets its default. The
live metadata stay, except for labels, annotations and owners. Some kinds also have fields that other controllers or the
API server fill in; they are listed in `kube.merge`.

Arguments are never changed. The result shares parts with them: only the mappings along a changed path are new.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gardener import keys
from gardener.managed_resource.ignored_fields import Pointer, with_live_fields
from kube.merge import MergeError, MergeOptions, with_kept_fields
from kube.objects import Object, annotations, group_of, is_truthy, labels, metadata
from kube.paths import at, mappings_at

__all__ = ["MergeError", "MergeOptions", "Overwrite", "merge", "merge_ignored", "three_way"]

_ADOPTERS = frozenset(
    {
        ("", "ReplicationController"),
        ("apps", "DaemonSet"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("batch", "Job"),
    }
)
"""Controllers that adopt objects that match their selectors."""
_STATE = (
    "deployment.kubernetes.io/",
    "deprecated.daemonset.template.generation",
    "endpoints.kubernetes.io/",
    "kubernetes.io/service-account.uid",
    "node.alpha.kubernetes.io/",
    "pv.kubernetes.io/",
    "volume.beta.kubernetes.io/",
    "volume.kubernetes.io/",
)
"""Prefixes of labels and annotations that controllers of Kubernetes recreate if they are missing."""


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Whether labels and annotations are replaced by the manifest's instead of merged, except those of Kubernetes."""

    labels: bool = False
    annotations: bool = False


def merge(
    manifest: Object,
    live: Object | None,
    *,
    origin: str,
    previous: Mapping[str, Any] | None = None,
    overwrite: Overwrite = Overwrite(),
    horizontally_scaled: bool = False,
    vertically_scaled: bool = False,
    ignored: Sequence[Pointer] = (),
) -> Object:
    """The body of the POST (`live` is None) or of the PUT; without managed fields, so the live ones stay.

    Args:
        manifest: with labels injected and in its namespace.
        live: as read from the API server.
        origin: the text of the origin annotation.
        previous: the reference of the object in `status.resources`, if it was listed.
        overwrite: setting of the ManagedResource for labels and annotations.
        horizontally_scaled: some autoscaler sets the replicas.
        vertically_scaled: some autoscaler sets requests and limits.
        ignored: fields that are set at creation only, in addition to those of the kind or the manifest.

    Raises:
        MergeError: the kind needs a rule that this manifest doesn't allow for.
    """
    basis = manifest if live is None else live
    result = {name: value for name, value in manifest.items() if name != "status"}
    result["metadata"] = _merged_metadata(manifest, basis, previous or {}, origin, overwrite)
    claimant = annotations(live or {}).get(keys.CLAIMED_BY)
    # A claim of others stays even if the manifest has one; the own one is fulfilled.
    _set(result["metadata"]["annotations"], keys.CLAIMED_BY, None if claimant == origin else claimant)
    if basis.get("status"):
        result["status"] = basis["status"]
    options = merge_options(manifest, horizontally_scaled=horizontally_scaled, vertically_scaled=vertically_scaled)
    result = with_kept_fields(result, basis, options)
    return result if live is None else with_live_fields(result, live, ignored)


def merge_options(manifest: Object, *, horizontally_scaled: bool, vertically_scaled: bool) -> MergeOptions:
    """Options for a kind. Args: see `merge`."""
    requested = annotations(manifest)
    return MergeOptions(
        field_manager=keys.FIELD_MANAGER,
        preserve_replicas=horizontally_scaled or is_truthy(requested.get(keys.PRESERVE_REPLICAS)),
        preserve_resources=vertically_scaled or is_truthy(requested.get(keys.PRESERVE_RESOURCES)),
    )


def _merged_metadata(
    manifest: Object, live: Object, previous: Mapping[str, Any], origin: str, overwrite: Overwrite
) -> Object:
    meta = dict(metadata(live) or metadata(manifest))
    meta.pop("managedFields", None)
    _set(meta, "labels", _merged_labels(manifest, live, previous, overwrite))
    meta["annotations"] = _merged_annotations(manifest, live, previous, overwrite) | {
        keys.DESCRIPTION: keys.DESCRIPTION_TEXT,
        keys.ORIGIN: origin,
    }
    _set(meta, "ownerReferences", _owners(manifest, live))
    return meta


def _of_kubernetes(live: Mapping[str, str]) -> dict[str, str]:
    """Labels or annotations that hold the state of controllers of Kubernetes."""
    return {name: value for name, value in live.items() if name.startswith(_STATE)}


def _owners(manifest: Object, live: Object) -> Any:
    """Owners of the manifest, and a controller of Kubernetes that has adopted the object."""
    wanted = metadata(manifest).get("ownerReferences") or []
    adopters = [owner for owner in mappings_at(live, "metadata", "ownerReferences") if _is_adopter(owner)]
    if not adopters or not isinstance(wanted, list) or any(at(owner, "controller") for owner in wanted):
        return wanted
    return [*wanted, *adopters]


def _is_adopter(owner: Object) -> bool:
    group = group_of(str(owner.get("apiVersion") or ""))
    return bool(owner.get("controller")) and (group, str(owner.get("kind"))) in _ADOPTERS


def _merged_labels(manifest: Object, live: Object, previous: Mapping[str, Any], overwrite: Overwrite) -> dict[str, str]:
    wanted = labels(manifest)
    if overwrite.labels:
        return _of_kubernetes(labels(live)) | dict(wanted)
    return three_way(wanted, labels(live), previous.get("labels") or {})


def _merged_annotations(
    manifest: Object, live: Object, previous: Mapping[str, Any], overwrite: Overwrite
) -> dict[str, str]:
    wanted = annotations(manifest)
    if overwrite.annotations:
        return _of_kubernetes(annotations(live)) | dict(wanted)
    # The garbage collector reads these: one that the manifest no longer has would keep an object alive forever,
    # and they are not in `previous` if the object comes from another ManagedResource.
    present = {name: value for name, value in annotations(live).items() if not name.startswith(keys.REFERENCE_PREFIX)}
    return three_way(wanted, present, previous.get("annotations") or {})


def _set(meta: Object, name: str, value: Any) -> None:
    if value:
        meta[name] = value
    else:
        meta.pop(name, None)


def three_way(wanted: Mapping[str, str], live: Mapping[str, str], previous: Mapping[str, str]) -> dict[str, str]:
    """The live map overlaid with the wanted one, without entries that were wanted before and are not any more.

    A value that another writer has changed meanwhile stays.
    """
    gone = {name for name, value in previous.items() if name not in wanted and live.get(name) == value}
    return {name: value for name, value in live.items() if name not in gone} | dict(wanted)


def merge_ignored(
    manifest: Object, live: Object | None, *, untrue: Collection[str] = (keys.DESCRIPTION,)
) -> Object | None:
    """The body to write for an ignored object, None for nothing; the manifest is without injected labels.

    It is created unchanged. A live one only loses annotations that would no longer be true: those in `untrue`.
    """
    if live is None:
        return manifest
    present = annotations(live)
    if present.keys().isdisjoint(untrue):
        return None
    meta = dict(metadata(live))
    meta.pop("managedFields", None)
    _set(meta, "annotations", {name: value for name, value in present.items() if name not in untrue})
    return {**live, "metadata": meta}
