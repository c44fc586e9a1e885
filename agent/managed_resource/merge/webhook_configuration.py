"""Webhook configurations: certificates that somebody injected stay, unless the manifest has its own."""

from typing import Any

from agent.managed_resource.merge.options import MergeOptions, at, mappings_at, with_value
from kube.objects import Object

_BUNDLE = ("clientConfig", "caBundle")


def merge(result: Object, live: Object, _options: MergeOptions) -> Object:
    webhooks = result.get("webhooks")
    if not isinstance(webhooks, list):
        return result
    bundles = {webhook.get("name"): at(webhook, *_BUNDLE) for webhook in mappings_at(live, "webhooks")}
    return {**result, "webhooks": [_with_bundle(webhook, bundles) for webhook in webhooks]}


def _with_bundle(webhook: Any, bundles: dict[Any, Any]) -> Any:
    if not isinstance(webhook, dict) or at(webhook, *_BUNDLE):
        return webhook
    bundle = bundles.get(webhook.get("name"))
    return with_value(webhook, _BUNDLE, bundle) if bundle else webhook
