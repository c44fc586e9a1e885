"""Kinds into which controllers of Kubernetes, or applications, fill in what the manifest leaves out: it stays.

What an application fills in stays only as long as it is the application's: a field that we wrote, and that the
manifest has no longer, goes. The API server records in `metadata.managedFields` whose it is.
"""

import json

from kube.differences import own_fields
from kube.merge.options import MergeOptions
from kube.objects import Object
from kube.paths import at, mapping_at, mappings_at, with_value

_BOUND_CLAIM = ("spec", "claimRef")
_CHANGEABLE_OF_CLAIMS = frozenset({"resources"})
_OF_TOKENS = ("token", "ca.crt", "namespace")
_CONTENT = ("data", "binaryData", "stringData")


def merge_vertical_pod_autoscaler(result: Object, live: Object, options: MergeOptions) -> Object:
    if not options.preserve_eviction_requirements:
        return result
    return kept_if_omitted(result, live, "spec", "updatePolicy", "evictionRequirements")


def kept_if_omitted(result: Object, live: Object, *path: str) -> Object:
    """The result with the live value at a path where it has none of its own."""
    value = at(live, *path)
    return result if value is None or at(result, *path) is not None else with_value(result, path, value)


def written_by(field_manager: str, live: Object, *steps: str) -> bool:
    """Whether a field is recorded as this manager's; steps as in `fieldsV1`, such as `f:data`."""
    return any(isinstance(at(fields, *steps), dict) for fields in own_fields(live, field_manager))


def kept_if_of_others(result: Object, live: Object, name: str, options: MergeOptions) -> Object:
    """The result with a field of the live object that it does not mention, unless we wrote it."""
    if result.get(name) is not None or name not in live or written_by(options.field_manager, live, f"f:{name}"):
        return result
    return {**result, name: live[name]}


def merge_config_map(result: Object, live: Object, options: MergeOptions) -> Object:
    """A manifest without any content leaves that to others; one with content owns all of it."""
    if any(result.get(name) is not None for name in _CONTENT):
        return result
    for name in _CONTENT:
        result = kept_if_of_others(result, live, name, options)
    return result


def merge_role(result: Object, live: Object, options: MergeOptions) -> Object:
    return kept_if_of_others(result, live, "rules", options)


def merge_role_binding(result: Object, live: Object, options: MergeOptions) -> Object:
    return kept_if_of_others(result, live, "subjects", options)


def merge_endpoint_slice(result: Object, live: Object, options: MergeOptions) -> Object:
    for name in ("endpoints", "ports"):
        result = kept_if_of_others(result, live, name, options)
    return result


def merge_cluster_role(result: Object, live: Object, options: MergeOptions) -> Object:
    """With an aggregation rule, its rules are put together by Kubernetes; the manifest's never count."""
    if result.get("aggregationRule") is None:
        return merge_role(result, live, options)
    rest = {name: value for name, value in result.items() if name != "rules"}
    return {**rest, "rules": live["rules"]} if "rules" in live else rest


def merge_endpoints(result: Object, live: Object, _options: MergeOptions) -> Object:
    """The addresses of a Service with a selector are filled in."""
    return kept_if_omitted(result, live, "subsets")


def merge_lease(result: Object, live: Object, _options: MergeOptions) -> Object:
    """Who holds it, and since when, is written by the holder."""
    held = mapping_at(live, "spec")
    return with_value(result, ("spec",), {**held, **mapping_at(result, "spec")}) if held else result


def merge_persistent_volume(result: Object, live: Object, _options: MergeOptions) -> Object:
    """The claim that it is bound to stays, or its data would be released."""
    result = kept_if_omitted(result, live, *_BOUND_CLAIM)
    wanted, present = mapping_at(result, *_BOUND_CLAIM), mapping_at(live, *_BOUND_CLAIM)
    if wanted and all(wanted.get(name) == present.get(name) for name in ("namespace", "name")):
        # A manifest that names its claim does not know the uid to which it was bound.
        result = with_value(result, _BOUND_CLAIM, {**present, **wanted})
    return result


def merge_persistent_volume_claim(result: Object, live: Object, _options: MergeOptions) -> Object:
    """What binding and admission filled in (`volumeName`, the storage class) can't be taken away."""
    kept = {name: value for name, value in mapping_at(live, "spec").items() if name not in _CHANGEABLE_OF_CLAIMS}
    return with_value(result, ("spec",), {**kept, **mapping_at(result, "spec")}) if kept else result


def merge_secret(result: Object, live: Object, options: MergeOptions) -> Object:
    """One for a ServiceAccount's token is filled in, whatever else the manifest has; others as a ConfigMap."""
    if result.get("type") == "kubernetes.io/service-account-token":
        for name in _OF_TOKENS:
            result = kept_if_omitted(result, live, "data", name)
    return merge_config_map(result, live, options)


def merge_service_account(result: Object, live: Object, options: MergeOptions) -> Object:
    """Who adds secrets to it is not undone. What we added goes with the manifest, as far as that is recorded."""
    for name in ("secrets", "imagePullSecrets"):
        wanted = result.get(name)
        if wanted is not None and not isinstance(wanted, list):
            continue
        entries = {each["name"]: each for each in wanted or () if isinstance(each, dict) and "name" in each}
        kept = [
            entries.pop(each["name"], each)
            for each in mappings_at(live, name)
            if each.get("name") in entries or not _is_ours(live, name, each, options)
        ]
        merged = [*kept, *entries.values()]
        if merged or wanted is not None:
            result = {**result, name: merged}
    return result


def _is_ours(live: Object, name: str, entry: Object, options: MergeOptions) -> bool:
    """Of `imagePullSecrets`, which is one value to the API server, it is not known."""
    item = json.dumps({"name": entry.get("name")}, separators=(",", ":"))
    return written_by(options.field_manager, live, f"f:{name}", f"k:{item}")
