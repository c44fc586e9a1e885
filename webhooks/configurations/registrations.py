"""Entries of the webhook configurations of an instance, from the descriptors of enabled webhooks.

Two kinds of instances differ in their selectors. A *runtime* instance serves the cluster that it runs in, and handles
all namespaces except those of the system. A *target* instance serves another cluster, and handles only system
components there.

Pods of the component itself are excluded wherever one of our webhooks could match them: with the failure policy `Fail`
their start would depend on themselves. The exception is the load balancing of API servers: its namespaces contain pods
of other instances, which need it, and never those of the instance that serves them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kube.objects import Object
from kube.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from webhooks.configurations.objects import Address, Trust, configuration
from webhooks.registry import enabled
from webhooks.rules.registration import PODS, Instance, Mode, Registration, where

if TYPE_CHECKING:
    from webhooks.descriptor import Section

COMBINED_PATHS = {Mode.RUNTIME: "/webhooks/pods", Mode.TARGET: "/webhooks/pods/target"}
"""Paths from which the handler derives the selectors to apply, without knowing the mode of the server."""


def configurations(
    webhooks: "Section", instance: Instance, *, address: Address, trust: Trust, combined: bool = False
) -> list[Object]:
    """Objects for the enabled webhooks; none without entries."""
    entries = (
        (MUTATING_WEBHOOKS, mutating(webhooks, instance, combined=combined)),
        (VALIDATING_WEBHOOKS, validating(webhooks, instance)),
    )
    return [configuration(kind, instance, found, address, trust) for kind, found in entries if found]


def mutating(webhooks: "Section", instance: Instance, *, combined: bool = False) -> list[Registration]:
    """Entries of the enabled mutating webhooks, in the order in which an API server calls them.

    If `combined`, a single entry replaces all entries for pods, at the position of their first.
    """
    entries = _mutating(webhooks, instance)
    of_pods = [entry for entry in entries if entry.is_for_pods]
    if not combined or not of_pods:
        return entries
    at = entries.index(of_pods[0])
    others = [entry for entry in entries[at:] if not entry.is_for_pods]
    return [*entries[:at], _combined(of_pods, instance), *_left_out(of_pods, instance), *others]


def pods(webhooks: "Section", instance: Instance) -> list[Registration]:
    """Entries for pods, in their order: those that the combined handler has to apply."""
    return [entry for entry in mutating(webhooks, instance) if entry.is_for_pods]


def _combined(entries: Sequence[Registration], instance: Instance) -> Registration:
    """Single entry in place of these: matches all that one of them matches, and is as strict as the strictest."""
    namespaces, objects = entries[0].namespaces, entries[0].objects
    for entry in entries[1:]:
        namespaces, objects = namespaces.shared(entry.namespaces), objects.shared(entry.objects)
    return Registration(
        name="pods",
        webhook="pods",
        path=COMBINED_PATHS[instance.mode],
        rules=(PODS,),
        namespaces=namespaces,
        objects=instance.not_ours() & objects,
        failure_policy="Fail" if any(entry.failure_policy == "Fail" for entry in entries) else "Ignore",
        timeout_seconds=max(entry.timeout_seconds for entry in entries),
    )


def _left_out(entries: Iterable[Registration], instance: Instance) -> list[Registration]:
    """Entries for pods that are named like our own, but are not: the combined entry must not match these."""
    same_name = where("app", "In", instance.app)
    return [
        replace(entry, objects=same_name & entry.objects)
        for entry in entries
        if entry.objects.shared(instance.not_ours()) != instance.not_ours()
    ]


def _mutating(webhooks: "Section", instance: Instance) -> list[Registration]:
    return [
        entry for webhook in enabled(webhooks) if not webhook.validating for entry in webhook.registrations(instance)
    ]


def validating(webhooks: "Section", instance: Instance) -> list[Registration]:
    """Entries of the enabled validating webhooks; they protect source clusters, so a target instance has none."""
    if instance.mode is Mode.TARGET:
        return []
    return [entry for webhook in enabled(webhooks) if webhook.validating for entry in webhook.registrations(instance)]


def not_registered(webhooks: "Section", instance: Instance) -> Iterable[str]:
    """Configuration keys of enabled webhooks that such an instance does not serve."""
    if instance.mode is Mode.RUNTIME:
        return ()
    return dict.fromkeys(webhook.key_in(webhooks) for webhook in enabled(webhooks) if webhook.validating)
