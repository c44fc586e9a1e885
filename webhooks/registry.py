"""All webhooks, in the order in which an API server calls them: those of the resource manager, or those of a garden.

The configuration determines which; the others are not imported, since they are large.
"""

from typing import TYPE_CHECKING, Any

from config.resource_manager.webhooks import Webhooks
from webhooks.descriptor import Webhook
from webhooks.handlers import (
    crd_deletion_protection,
    endpoint_slice_hints,
    extension_validation,
    high_availability_config,
    kubernetes_service_host,
    node_agent_authorizer,
    pod_kube_apiserver_load_balancing,
    pod_scheduler_name,
    pod_topology_spread_constraints,
    projected_token_mount,
    seccomp_profile,
    system_components_config,
    token_invalidator,
    vpa_in_place_updates,
)

if TYPE_CHECKING:
    from webhooks.descriptor import Section

RESOURCE_MANAGER: tuple[Webhook[Any], ...] = (
    token_invalidator.WEBHOOK,
    projected_token_mount.WEBHOOK,
    high_availability_config.WEBHOOK,
    pod_scheduler_name.WEBHOOK,
    seccomp_profile.WEBHOOK,
    kubernetes_service_host.WEBHOOK,
    pod_kube_apiserver_load_balancing.WEBHOOK,
    system_components_config.WEBHOOK,
    endpoint_slice_hints.WEBHOOK,
    pod_topology_spread_constraints.WEBHOOK,
    vpa_in_place_updates.WEBHOOK,
    crd_deletion_protection.WEBHOOK,
    *extension_validation.WEBHOOKS,
    node_agent_authorizer.WEBHOOK,
)


def declared(webhooks: "Section") -> tuple[Webhook[Any], ...]:
    if isinstance(webhooks, Webhooks):
        return RESOURCE_MANAGER
    from webhooks.garden.registry import WEBHOOKS

    return WEBHOOKS


def enabled(webhooks: "Section") -> list[Webhook[Any]]:
    return [webhook for webhook in declared(webhooks) if webhook.settings_in(webhooks).enabled]
