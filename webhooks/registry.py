"""All webhooks, in the order in which an API server calls them."""

from typing import Any

from config.resource_manager.webhooks import Webhooks
from webhooks.descriptor import Webhook
from webhooks.garden import kinds as garden
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

WEBHOOKS: tuple[Webhook[Any], ...] = (
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
    *garden.WEBHOOKS,
    node_agent_authorizer.WEBHOOK,
)


def enabled(webhooks: Webhooks) -> list[Webhook[Any]]:
    return [webhook for webhook in WEBHOOKS if webhook.settings_in(webhooks).enabled]
