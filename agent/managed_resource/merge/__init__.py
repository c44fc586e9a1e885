"""The object to write: the manifest, with what belongs to others kept from the live object.

Everything outside metadata and status is the manifest's; a field that it lacks goes away or gets its default. In
metadata the live object stays, save for labels, annotations and owners. Beyond that some kinds have fields that other
controllers or the API server fill in; the modules here, one a kind, say which.

Arguments are never changed. What is returned shares parts with them: only the mappings along a changed path are new.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent.managed_resource import keys
from agent.managed_resource.merge import (
    api_service,
    cron_job,
    custom_resource_definition,
    daemon_set,
    deployment,
    job,
    persistent_volume,
    persistent_volume_claim,
    pod,
    service,
    service_account,
    stateful_set,
    webhook_configuration,
)
from agent.managed_resource.merge.options import MergeError, MergeOptions
from kube.objects import Object, annotations, group_of, is_truthy, labels, metadata

__all__ = ["MergeError", "MergeOptions", "Overwrite", "merge", "merge_ignored", "three_way"]

_KINDS: dict[tuple[str, str], Callable[[Object, Object, MergeOptions], Object]] = {
    ("apps", "Deployment"): deployment.merge,
    ("extensions", "Deployment"): deployment.merge,
    ("apps", "StatefulSet"): stateful_set.merge,
    ("extensions", "StatefulSet"): stateful_set.merge,
    ("apps", "DaemonSet"): daemon_set.merge,
    ("batch", "Job"): job.merge,
    ("batch", "CronJob"): cron_job.merge,
    ("", "Service"): service.merge,
    ("", "ServiceAccount"): service_account.merge,
    ("", "Pod"): pod.merge,
    ("", "PersistentVolume"): persistent_volume.merge,
    ("", "PersistentVolumeClaim"): persistent_volume_claim.merge,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): webhook_configuration.merge,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): webhook_configuration.merge,
    ("apiregistration.k8s.io", "APIService"): api_service.merge,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): custom_resource_definition.merge,
}


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Whether labels and annotations are replaced by the manifest's instead of merged."""

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
) -> Object:
    """The body of the POST (`live` is None) or of the PUT; without managed fields, so the live ones stay.

    Args:
        manifest: with labels injected and in its namespace.
        live: as the API server has it.
        origin: the text of the origin annotation.
        previous: the reference of the object in `status.resources`, if it was listed.
        overwrite: what the ManagedResource says of labels and annotations.
        horizontally_scaled: some autoscaler sets the replicas.
        vertically_scaled: some autoscaler sets requests and limits.

    Raises:
        MergeError: if the kind needs a rule that this manifest doesn't allow for.
    """
    basis = manifest if live is None else live
    result = {name: value for name, value in manifest.items() if name != "status"}
    result["metadata"] = _merged_metadata(manifest, basis, previous or {}, origin, overwrite)
    if basis.get("status"):
        result["status"] = basis["status"]
    rule = _KINDS.get((group_of(manifest.get("apiVersion") or ""), manifest.get("kind") or ""))
    if rule is None:
        return result
    wishes = annotations(manifest)
    options = MergeOptions(
        preserve_replicas=horizontally_scaled or is_truthy(wishes.get(keys.PRESERVE_REPLICAS)),
        preserve_resources=vertically_scaled or is_truthy(wishes.get(keys.PRESERVE_RESOURCES)),
    )
    return rule(result, basis, options)


def _merged_metadata(
    manifest: Object, live: Object, previous: Mapping[str, Any], origin: str, overwrite: Overwrite
) -> Object:
    meta = dict(metadata(live) or metadata(manifest))
    meta.pop("managedFields", None)
    wanted = labels(manifest)
    merged_labels = dict(wanted) if overwrite.labels else three_way(wanted, labels(live), previous.get("labels") or {})
    _set(meta, "labels", merged_labels)
    meta["annotations"] = _merged_annotations(manifest, live, previous, overwrite) | {
        keys.DESCRIPTION: keys.DESCRIPTION_TEXT,
        keys.ORIGIN: origin,
    }
    _set(meta, "ownerReferences", metadata(manifest).get("ownerReferences"))
    return meta


def _merged_annotations(
    manifest: Object, live: Object, previous: Mapping[str, Any], overwrite: Overwrite
) -> dict[str, str]:
    wanted = annotations(manifest)
    if overwrite.annotations:
        return dict(wanted)
    # The garbage collector reads these: one that the manifest no longer has would keep an object alive for ever,
    # and they are not in `previous` if the object comes from another ManagedResource.
    present = {name: value for name, value in annotations(live).items() if not name.startswith(keys.REFERENCE_PREFIX)}
    return three_way(wanted, present, previous.get("annotations") or {})


def _set(meta: Object, name: str, value: Any) -> None:
    if value:
        meta[name] = value
    else:
        meta.pop(name, None)


def three_way(wanted: Mapping[str, str], live: Mapping[str, str], previous: Mapping[str, str]) -> dict[str, str]:
    """The live map overlaid with the wanted one, without what was wanted before and is not any more.

    A value that somebody has changed meanwhile is theirs, and stays.
    """
    gone = {name for name, value in previous.items() if name not in wanted and live.get(name) == value}
    return {name: value for name, value in live.items() if name not in gone} | dict(wanted)


def merge_ignored(manifest: Object, live: Object | None) -> Object | None:
    """What to write for an ignored object, None for nothing; the manifest is the plain one, without injected labels.

    It is created as it stands. Of a live one only the description goes, since that would no longer be true.
    """
    if live is None:
        return manifest
    present = annotations(live)
    if keys.DESCRIPTION not in present:
        return None
    meta = dict(metadata(live))
    meta.pop("managedFields", None)
    _set(meta, "annotations", {name: value for name, value in present.items() if name != keys.DESCRIPTION})
    return {**live, "metadata": meta}
