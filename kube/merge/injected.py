"""APIService, CustomResourceDefinition, webhook configurations: keep values that controllers inject.

An operator installs these objects and fills them in when it runs, or a controller of the cluster does. Kept are:

- fields that the manifest omits, and that others wrote: the webhooks, fields of a webhook, the conversion, owners;
- a CA bundle, unless the manifest has a certificate of its own: placeholders such as `Cg==` count as none. The live
  bundle also wins over a certificate if the object requests injection (`REQUESTS`), or a known injector wrote it;
- other fields that `INJECTORS` are known to change.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import Any

from kube.merge.filled_in import kept_if_of_others, kept_if_omitted, writers, written_by
from kube.merge.options import MergeOptions
from kube.objects import Object, annotations, text
from kube.paths import at, mappings_at, with_value

REQUESTS = frozenset(
    {
        # cert-manager.io/docs/concepts/ca-injector; the second group until version 0.11
        "cert-manager.io/inject-ca-from",
        "cert-manager.io/inject-ca-from-secret",
        "cert-manager.io/inject-apiserver-ca",
        "certmanager.k8s.io/inject-ca-from",
        "certmanager.k8s.io/inject-apiserver-ca",
        # github.com/openshift/service-ca-operator
        "service.beta.openshift.io/inject-cabundle",
        "service.alpha.openshift.io/inject-cabundle",
    }
)
"""Annotations that request a CA bundle."""
INJECTORS = {
    "caBundle": frozenset(
        {
            "cainjector",  # cert-manager: name of the binary, or of its server-side apply
            "cert-manager-cainjector",
            "service-ca-operator",  # github.com/openshift/service-ca-operator
            "kube-webhook-certgen",  # github.com/kubernetes/ingress-nginx, images/kube-webhook-certgen
            "pilot-discovery",  # github.com/istio/istio, pkg/webhooks
        }
    ),
    # Raised from Ignore once istiod is ready: github.com/istio/istio/issues/44285
    "failurePolicy": frozenset({"pilot-discovery"}),
    # AKS excludes its own namespaces: github.com/Azure/AKS/issues/1771
    "namespaceSelector": frozenset({"admissionsenforcer"}),
}
"""Field managers by the field that they write."""
_EXCLUDED_BY_AKS = frozenset({"control-plane", "kubernetes.azure.com/managedby"})
_API_SERVICE_BUNDLE = ("spec", "caBundle")
_CONVERSION_CLIENT = ("spec", "conversion", "webhook", "clientConfig")
_WEBHOOK_BUNDLE = ("clientConfig", "caBundle")
_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----")
_SEQUENCES = (b"\x30\x81", b"\x30\x82")
"""First bytes of a DER sequence of 128 to 65535 bytes, as every certificate is."""


def merge_api_service(result: Object, live: Object, options: MergeOptions) -> Object:
    if at(result, "spec", "insecureSkipTLSVerify"):
        return result
    return _with_bundle(result, live, _API_SERVICE_BUNDLE, options)


def merge_custom_resource_definition(result: Object, live: Object, options: MergeOptions) -> Object:
    result = _with_owners(result, live, options)
    strategy = ("f:spec", "f:conversion", "f:strategy")  # not the mapping around it, which came with its default
    if at(result, "spec", "conversion") is None and not written_by(options.field_manager, live, *strategy):
        return kept_if_omitted(result, live, "spec", "conversion")
    if not isinstance(at(result, *_CONVERSION_CLIENT), dict):
        return result
    return _with_bundle(result, live, (*_CONVERSION_CLIENT, "caBundle"), options)


def merge_webhook_configuration(result: Object, live: Object, options: MergeOptions) -> Object:
    result = kept_if_of_others(_with_owners(result, live, options), live, "webhooks", options)
    webhooks = result.get("webhooks")
    if not isinstance(webhooks, list):
        return result
    present = {str(webhook.get("name")): webhook for webhook in mappings_at(live, "webhooks")}
    merged = [
        _merged_webhook(webhook, found, result, live, options)
        if isinstance(webhook, dict) and (found := present.get(str(webhook.get("name"))))
        else webhook
        for webhook in webhooks
    ]
    return {**result, "webhooks": merged}


def _merged_webhook(webhook: Object, present: Object, result: Object, live: Object, options: MergeOptions) -> Object:
    steps = ("f:webhooks", f"k:{json.dumps({'name': present.get('name')}, separators=(',', ':'))}")
    if _keeps_bundle(at(webhook, *_WEBHOOK_BUNDLE), result, live, (*steps, "f:clientConfig", "f:caBundle"), options):
        webhook = _with_value_of(present, webhook, _WEBHOOK_BUNDLE)
    kept: Object = {}
    for name, value in present.items():
        of_field = writers(live, *steps, f"f:{name}")
        if name not in webhook:
            if of_field and not written_by(options.field_manager, live, *steps, f"f:{name}"):
                kept[name] = value
        elif of_field & INJECTORS.get(name, frozenset()):
            kept[name] = value if name == "failurePolicy" else _with_exclusions(webhook[name], value)
    return {**webhook, **kept}


def _with_exclusions(wanted: Any, present: Any) -> Any:
    """Return the selector of the manifest with the expressions that AKS has added to the live one."""
    given = mappings_at(wanted, "matchExpressions") if isinstance(wanted, dict) else []
    found = mappings_at(present, "matchExpressions") if isinstance(present, dict) else []
    kept = [each for each in found if each in given or each.get("key") in _EXCLUDED_BY_AKS]
    expressions = [*kept, *(each for each in given if each not in kept)]
    return {**(wanted or {}), "matchExpressions": expressions} if expressions else wanted


def _with_owners(result: Object, live: Object, options: MergeOptions) -> Object:
    if "ownerReferences" in result["metadata"]:
        return result
    step = ("f:metadata", "f:ownerReferences")
    owners = [
        owner
        for owner in mappings_at(live, "metadata", "ownerReferences")
        if not written_by(options.field_manager, live, *step, f'k:{{"uid":"{owner.get("uid")}"}}')
    ]
    return with_value(result, ("metadata", "ownerReferences"), owners) if owners else result


# --- CA bundles


def _with_bundle(result: Object, live: Object, path: tuple[str, ...], options: MergeOptions) -> Object:
    steps = tuple(f"f:{name}" for name in path)
    return (
        _with_value_of(live, result, path) if _keeps_bundle(at(result, *path), result, live, steps, options) else result
    )


def _with_value_of(source: Object, target: Object, path: tuple[str, ...]) -> Object:
    value = at(source, *path)
    return with_value(target, path, value) if value else target


def _keeps_bundle(wanted: Any, result: Object, live: Object, steps: tuple[str, ...], options: MergeOptions) -> bool:
    """Whether the live bundle stays; `steps` lead to it in `fieldsV1`."""
    if not _is_bundle(wanted):
        return True
    if REQUESTS.isdisjoint(annotations(result)):
        return bool(writers(live, *steps) & INJECTORS["caBundle"])
    return not written_by(options.field_manager, live, *steps)


def _is_bundle(value: Any) -> bool:
    """Whether a `caBundle` has a certificate, by its form: no placeholder passes, and nothing is parsed."""
    return any(der.startswith(_SEQUENCES) for der in _certificates(text(value)))


def _certificates(bundle: str) -> Iterator[bytes]:
    try:
        for found in _PEM.finditer(base64.b64decode(bundle)):
            yield base64.b64decode(found[1])
    except (binascii.Error, ValueError):
        return
