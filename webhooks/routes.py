"""Which webhook has which path, and which setting switches it on: the table of all that can be served."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from config.schema import ResourceManagerConfiguration
from webhooks import combined
from webhooks.admission import Handler
from webhooks.configurations.entries import Mode
from webhooks.facts import Facts
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
from webhooks.handlers.extension_validation.kinds import KINDS
from webhooks.handlers.extension_validation.rules import Kind
from webhooks.review import Reviewer
from webhooks.server import Disabled, Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A path that can be served."""

    path: str
    webhook: str
    setting: str
    """The field of the configuration that switches it on."""
    enabled: bool
    endpoint: Callable[[], Endpoint]
    """Makes what answers; for enabled ones only, since the others' facts are not gathered."""


def routes(config: ResourceManagerConfiguration, facts: Facts) -> list[Route]:
    """All of them, enabled or not."""
    blocks = config.webhooks

    def route(module: Any, setting: str, settings: Any, *, handler: Callable[[], Handler] | None = None) -> Route:
        """Of a module that has `NAME`, `PATH`, and mostly `handler(settings, facts)`."""
        make = handler or partial(module.handler, settings, facts)
        return Route(
            path=module.PATH,
            webhook=module.NAME,
            setting=f"webhooks.{setting}.enabled",
            enabled=settings.enabled,
            endpoint=lambda: Reviewer(module.NAME, make(), path=module.PATH),
        )

    protection = blocks.crd_deletion_protection
    authorizer = blocks.node_agent_authorizer
    return [
        route(endpoint_slice_hints, "endpointSliceHints", blocks.endpoint_slice_hints),
        route(high_availability_config, "highAvailabilityConfig", blocks.high_availability_config),
        route(kubernetes_service_host, "kubernetesServiceHost", blocks.kubernetes_service_host),
        route(
            pod_kube_apiserver_load_balancing,
            "podKubeAPIServerLoadBalancing",
            blocks.pod_kube_apiserver_load_balancing,
        ),
        route(pod_scheduler_name, "podSchedulerName", blocks.pod_scheduler_name),
        route(pod_topology_spread_constraints, "podTopologySpreadConstraints", blocks.pod_topology_spread_constraints),
        route(projected_token_mount, "projectedTokenMount", blocks.projected_token_mount),
        route(seccomp_profile, "seccompProfile", blocks.seccomp_profile),
        route(system_components_config, "systemComponentsConfig", blocks.system_components_config),
        route(token_invalidator, "tokenInvalidator", blocks.token_invalidator),
        route(vpa_in_place_updates, "vpaInPlaceUpdates", blocks.vpa_in_place_updates),
        route(
            crd_deletion_protection,
            "crdDeletionProtection",
            protection,
            handler=partial(crd_deletion_protection.handler, protection, facts.source.client),
        ),
        *(
            Route(
                path=kind.path,
                webhook=extension_validation.NAME,
                setting="webhooks.extensionValidation.enabled",
                enabled=blocks.extension_validation.enabled,
                endpoint=partial(_validation, kind),
            )
            for kind in KINDS
        ),
        *(
            Route(
                path=path,
                webhook=combined.NAME,
                setting="webhooks, where all that change pods are off",
                enabled=combined.is_enabled(config),
                endpoint=partial(_combined, config, mode, facts),
            )
            for mode, path in combined.PATHS.items()
        ),
        Route(
            path=node_agent_authorizer.PATH,
            webhook=node_agent_authorizer.NAME,
            setting="webhooks.nodeAgentAuthorizer.enabled",
            enabled=authorizer.enabled,
            endpoint=partial(node_agent_authorizer.authorizer, authorizer, facts.source, facts.target),
        ),
    ]


def _combined(config: ResourceManagerConfiguration, mode: Mode, facts: Facts) -> Endpoint:
    return Reviewer(combined.NAME, combined.handler(config, mode, facts), path=combined.PATHS[mode])


def _validation(kind: Kind[Any]) -> Endpoint:
    return Reviewer(extension_validation.NAME, kind.handler(), path=kind.path)


def enabled(routes: Iterable[Route]) -> dict[str, Endpoint]:
    return {route.path: route.endpoint() for route in routes if route.enabled}


def disabled(routes: Iterable[Route]) -> list[Disabled]:
    return [
        Disabled(path=route.path, webhook=route.webhook, setting=route.setting) for route in routes if not route.enabled
    ]
