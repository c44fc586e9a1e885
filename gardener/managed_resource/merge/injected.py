"""APIService, CustomResourceDefinition, webhook configurations: a certificate that somebody injected stays.

Unless the manifest has its own, or wants none.
"""

from typing import Any

from gardener.managed_resource.merge.options import MergeOptions
from kube.objects import Object
from kube.paths import at, mappings_at, with_value

_API_SERVICE_BUNDLE = ("spec", "caBundle")
_CONVERSION_CLIENT = ("spec", "conversion", "webhook", "clientConfig")
_WEBHOOK_BUNDLE = ("clientConfig", "caBundle")


def merge_api_service(result: Object, live: Object, _options: MergeOptions) -> Object:
    if at(result, "spec", "insecureSkipTLSVerify"):
        return result
    return _with_bundle(result, at(live, *_API_SERVICE_BUNDLE), *_API_SERVICE_BUNDLE)


def merge_custom_resource_definition(result: Object, live: Object, _options: MergeOptions) -> Object:
    if not isinstance(at(result, *_CONVERSION_CLIENT), dict):
        return result
    return _with_bundle(result, at(live, *_CONVERSION_CLIENT, "caBundle"), *_CONVERSION_CLIENT, "caBundle")


def merge_webhook_configuration(result: Object, live: Object, _options: MergeOptions) -> Object:
    webhooks = result.get("webhooks")
    if not isinstance(webhooks, list):
        return result
    bundles = {webhook.get("name"): at(webhook, *_WEBHOOK_BUNDLE) for webhook in mappings_at(live, "webhooks")}
    merged = [
        _with_bundle(webhook, bundles.get(str(webhook.get("name"))), *_WEBHOOK_BUNDLE)
        if isinstance(webhook, dict)
        else webhook
        for webhook in webhooks
    ]
    return {**result, "webhooks": merged}


def _with_bundle(result: Object, bundle: Any, *path: str) -> Object:
    return with_value(result, path, bundle) if bundle and not at(result, *path) else result
