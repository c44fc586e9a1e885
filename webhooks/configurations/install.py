"""Install webhook configurations in a cluster, without writes that change nothing.

An instance owns the two names that it can generate, and nothing else: another instance in the same cluster (a seed that
is itself a shoot has one of each mode) has its own names. Configurations that are no longer generated are removed,
unless the label shows another owner.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kube.errors import AlreadyExists, Conflict, NotFound
from kube.objects import Object, annotations, labels, metadata, uid
from kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from kube.runtime.client import Client
from webhooks.configurations.objects import INJECT_CA_FROM, name_of
from webhooks.rules.registration import Instance

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Done:
    """Action on an object: `created`, `changed`, `removed`, `unchanged`, or the reason why it was left alone."""

    resource: Resource
    name: str
    what: str

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.name}: {self.what}"


async def install(client: Client, instance: Instance, wanted: Sequence[Object]) -> list[Done]:
    """Reconcile the configurations of an instance with the desired ones."""
    by_kind = {obj["kind"]: obj for obj in wanted}
    done = []
    for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        what = await _settle(client, resource, instance, by_kind.get(resource.kind))
        if what:
            done.append(Done(resource, name_of(instance), what))
    return done


async def _settle(client: Client, resource: Resource, instance: Instance, wanted: Object | None) -> str:
    for attempt in range(_ATTEMPTS):
        try:
            return await _once(client, resource, instance, wanted)
        except (Conflict, AlreadyExists, NotFound):
            # Another replica, or a keeper of the CA, was faster.
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


async def _once(client: Client, resource: Resource, instance: Instance, wanted: Object | None) -> str:
    name = name_of(instance)
    live = await client.find(resource, name)
    if live is None:
        if wanted is None:
            return ""
        await client.create(resource, wanted)
        return "created"
    if wanted is None:
        if labels(live).get("app") != instance.app:
            return f'kept, since it lacks the label "app: {instance.app}"; remove it by hand if it is unused'
        await client.delete(resource, name, uid=uid(live), resource_version=metadata(live)["resourceVersion"])
        return "removed"
    patch = difference(wanted, live)
    if not patch:
        return "unchanged"
    patch.setdefault("metadata", {})["resourceVersion"] = metadata(live)["resourceVersion"]
    await client.patch(resource, name, patch)
    return "changed"


def difference(wanted: Object, live: Object) -> Object:
    """Return the merge patch from a live configuration to the desired one; empty if there is no difference.

    Labels and annotations of others stay, and so do certificates if the desired configuration has none: another program
    manages them.
    """
    patch: Object = {}
    meta: Object = {}
    if missing := {k: v for k, v in labels(wanted).items() if labels(live).get(k) != v}:
        meta["labels"] = missing
    source, present = annotations(wanted).get(INJECT_CA_FROM), annotations(live).get(INJECT_CA_FROM)
    if source != present:
        meta["annotations"] = {INJECT_CA_FROM: source}
    if meta:
        patch["metadata"] = meta
    webhooks = _with_kept_certificates(wanted["webhooks"], live.get("webhooks") or [])
    is_mutating = wanted["kind"] == MUTATING_WEBHOOKS.kind
    if [_complete(webhook, is_mutating) for webhook in webhooks] != (live.get("webhooks") or []):
        patch["webhooks"] = webhooks
    return patch


def _with_kept_certificates(wanted: Sequence[Object], live: Sequence[Object]) -> list[Object]:
    kept = {webhook["name"]: (webhook.get("clientConfig") or {}).get("caBundle") for webhook in live}
    webhooks = []
    for webhook in wanted:
        client_config = webhook["clientConfig"]
        if "caBundle" not in client_config and kept.get(webhook["name"]):
            client_config = {**client_config, "caBundle": kept[webhook["name"]]}
        webhooks.append({**webhook, "clientConfig": client_config})
    return webhooks


def _complete(webhook: Object, is_mutating: bool) -> Object:
    """Return a webhook as the API server stores it, with defaults."""
    complete: dict[str, Any] = {**webhook}
    complete["rules"] = [{"scope": "*", **rule} for rule in webhook["rules"]]
    client_config = webhook["clientConfig"]
    if "service" in client_config:
        complete["clientConfig"] = {**client_config, "service": {"port": 443, **client_config["service"]}}
    if is_mutating:
        complete.setdefault("reinvocationPolicy", "Never")
    return complete
