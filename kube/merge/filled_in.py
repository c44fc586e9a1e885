"""Kinds whose omitted fields are filled in by controllers of Kubernetes, or by applications: these values stay.

A value of an application stays only as long as the application owns it: a field that we wrote, and that is no longer in
the manifest, is removed. The API server records the owner in `metadata.managedFields`.
"""

import json

from kube.differences import own_fields
from kube.merge.options import MergeOptions
from kube.objects import Object, annotations, labels, text
from kube.paths import at, mapping_at, mappings_at, with_value

_BOUND_CLAIM = ("spec", "claimRef")
_CHANGEABLE_OF_CLAIMS = frozenset({"resources"})
_OF_TOKENS = ("token", "ca.crt", "namespace")
_CONTENT = ("data", "binaryData", "stringData")
_INJECTED_KEYS = {
    # github.com/openshift/service-ca-operator
    "service.beta.openshift.io/inject-cabundle": "service-ca.crt",
    "service.alpha.openshift.io/inject-cabundle": "service-ca.crt",
    # docs.openshift.com, "Injecting the custom PKI": a label
    "config.openshift.io/inject-trusted-cabundle": "ca-bundle.crt",
}
"""Annotations and labels of ConfigMaps that request a bundle -> its key."""


def merge_vertical_pod_autoscaler(result: Object, live: Object, options: MergeOptions) -> Object:
    if not options.preserve_eviction_requirements:
        return result
    return kept_if_omitted(result, live, "spec", "updatePolicy", "evictionRequirements")


def kept_if_omitted(result: Object, live: Object, *path: str) -> Object:
    """Copy the live value at a path where the result has none."""
    value = at(live, *path)
    return result if value is None or at(result, *path) is not None else with_value(result, path, value)


def written_by(field_manager: str, live: Object, *steps: str) -> bool:
    """Whether a field is recorded as this manager's; steps as in `fieldsV1`, such as `f:data`."""
    return any(isinstance(at(fields, *steps), dict) for fields in own_fields(live, field_manager))


def writers(live: Object, *steps: str) -> set[str]:
    """Names of the managers of a field; steps as for `written_by`."""
    entries = mappings_at(live, "metadata", "managedFields")
    return {text(each.get("manager")) for each in entries if isinstance(at(each, "fieldsV1", *steps), dict)}


def kept_if_of_others(result: Object, live: Object, name: str, options: MergeOptions) -> Object:
    """Copy a field of the live object that the result omits, unless we wrote it."""
    if result.get(name) is not None or name not in live or written_by(options.field_manager, live, f"f:{name}"):
        return result
    return {**result, name: live[name]}


def merge_config_map(result: Object, live: Object, options: MergeOptions) -> Object:
    """Leave the content to others if the manifest has none; otherwise the manifest owns all of it but injected keys."""
    for request in _INJECTED_KEYS.keys() & (annotations(result).keys() | labels(result).keys()):
        key = _INJECTED_KEYS[request]
        if (bundle := at(live, "data", key)) and not at(result, "data", key):
            result = with_value(result, ("data", key), bundle)
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
    """Rules of a role with an aggregation rule come from Kubernetes, never from the manifest."""
    if result.get("aggregationRule") is None:
        return merge_role(result, live, options)
    rest = {name: value for name, value in result.items() if name != "rules"}
    return {**rest, "rules": live["rules"]} if "rules" in live else rest


def merge_endpoints(result: Object, live: Object, _options: MergeOptions) -> Object:
    """Keep the addresses, which Kubernetes fills in for a Service with a selector."""
    return kept_if_omitted(result, live, "subsets")


def merge_lease(result: Object, live: Object, _options: MergeOptions) -> Object:
    """Keep the holder and its times, which the holder writes."""
    held = mapping_at(live, "spec")
    return with_value(result, ("spec",), {**held, **mapping_at(result, "spec")}) if held else result


def merge_persistent_volume(result: Object, live: Object, _options: MergeOptions) -> Object:
    """Keep the bound claim, or its data would be released."""
    result = kept_if_omitted(result, live, *_BOUND_CLAIM)
    wanted, present = mapping_at(result, *_BOUND_CLAIM), mapping_at(live, *_BOUND_CLAIM)
    if wanted and all(wanted.get(name) == present.get(name) for name in ("namespace", "name")):
        # A manifest that names its claim lacks the uid to which it was bound.
        result = with_value(result, _BOUND_CLAIM, {**present, **wanted})
    return result


def merge_persistent_volume_claim(result: Object, live: Object, _options: MergeOptions) -> Object:
    """Keep the fields that binding and admission filled in (`volumeName`, the storage class): they are immutable."""
    kept = {name: value for name, value in mapping_at(live, "spec").items() if name not in _CHANGEABLE_OF_CLAIMS}
    return with_value(result, ("spec",), {**kept, **mapping_at(result, "spec")}) if kept else result


def merge_secret(result: Object, live: Object, options: MergeOptions) -> Object:
    """Keep a ServiceAccount's token, even if the manifest has other data; other content as for a ConfigMap."""
    if result.get("type") == "kubernetes.io/service-account-token":
        for name in _OF_TOKENS:
            result = kept_if_omitted(result, live, "data", name)
    return merge_config_map(result, live, options)


def merge_service_account(result: Object, live: Object, options: MergeOptions) -> Object:
    """Keep secrets that others added. Those that we added go with the manifest, as far as that is recorded."""
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
    """Whether we added the entry. Unknown for `imagePullSecrets`, which is one value to the API server."""
    item = json.dumps({"name": entry.get("name")}, separators=(",", ":"))
    return written_by(options.field_manager, live, f"f:{name}", f"k:{item}")
