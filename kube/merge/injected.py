"""APIService, CustomResourceDefinition, webhook configurations: keep values that applications inject.

That is a certificate, unless the manifest has its own or wants none; and, where the manifest omits them, the rules of a
webhook, all webhooks, the conversion of a definition, and owners: an operator installs these objects and fills them in
when it runs.
"""

import json
from typing import Any

from kube.merge.filled_in import kept_if_of_others, kept_if_omitted, written_by
from kube.merge.options import MergeOptions
from kube.objects import Object
from kube.paths import at, mappings_at, with_value

_API_SERVICE_BUNDLE = ("spec", "caBundle")
_CONVERSION_CLIENT = ("spec", "conversion", "webhook", "clientConfig")
_WEBHOOK_BUNDLE = ("clientConfig", "caBundle")


def merge_api_service(result: Object, live: Object, _options: MergeOptions) -> Object:
    if at(result, "spec", "insecureSkipTLSVerify"):
        return result
    return _with_bundle(result, at(live, *_API_SERVICE_BUNDLE), *_API_SERVICE_BUNDLE)


def merge_custom_resource_definition(result: Object, live: Object, options: MergeOptions) -> Object:
    result = _with_owners(result, live, options)
    strategy = ("f:spec", "f:conversion", "f:strategy")  # not the mapping around it, which came with its default
    if at(result, "spec", "conversion") is None and not written_by(options.field_manager, live, *strategy):
        return kept_if_omitted(result, live, "spec", "conversion")
    if not isinstance(at(result, *_CONVERSION_CLIENT), dict):
        return result
    return _with_bundle(result, at(live, *_CONVERSION_CLIENT, "caBundle"), *_CONVERSION_CLIENT, "caBundle")


def merge_webhook_configuration(result: Object, live: Object, options: MergeOptions) -> Object:
    result = kept_if_of_others(_with_owners(result, live, options), live, "webhooks", options)
    webhooks = result.get("webhooks")
    if not isinstance(webhooks, list):
        return result
    present = {str(webhook.get("name")): webhook for webhook in mappings_at(live, "webhooks")}
    merged = [
        _merged_webhook(webhook, present.get(str(webhook.get("name"))) or {}, live, options)
        if isinstance(webhook, dict)
        else webhook
        for webhook in webhooks
    ]
    return {**result, "webhooks": merged}


def _merged_webhook(webhook: Object, present: Object, live: Object, options: MergeOptions) -> Object:
    webhook = _with_bundle(webhook, at(present, *_WEBHOOK_BUNDLE), *_WEBHOOK_BUNDLE)
    if "rules" in webhook or "rules" not in present:
        return webhook
    item = json.dumps({"name": present.get("name")}, separators=(",", ":"))
    if written_by(options.field_manager, live, "f:webhooks", f"k:{item}", "f:rules"):
        return webhook
    return {**webhook, "rules": present["rules"]}


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


def _with_bundle(result: Object, bundle: Any, *path: str) -> Object:
    return with_value(result, path, bundle) if bundle and not at(result, *path) else result
