"""Paths of the webhooks, and the settings that enable them, from the registry; and the combined webhook."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from config.resource_manager.schema import ResourceManagerConfiguration
from webhooks import combined
from webhooks.registry import declared
from webhooks.review import Endpoint, Reviewer
from webhooks.rules.registration import Mode
from webhooks.server import Disabled
from webhooks.state import SharedListers

if TYPE_CHECKING:
    from config.webhooks.schema import GardenWebhooksConfiguration


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    path: str
    webhook: str
    setting: str
    """Field of the configuration that enables it."""
    enabled: bool
    public: bool = False
    """Whether API servers show no certificate to it."""
    endpoint: Callable[[], Endpoint]
    """Creates the endpoint; only for enabled routes, so that nothing is watched for the others."""


def routes(config: "ResourceManagerConfiguration | GardenWebhooksConfiguration", state: SharedListers) -> list[Route]:
    """Return all routes, enabled or not."""
    found = []
    for webhook in declared(config.webhooks):
        settings = webhook.settings_in(config.webhooks)
        route = Route(
            path=webhook.path,
            webhook=webhook.name,
            setting=f"{webhook.key_in(config.webhooks)}.enabled",
            enabled=settings.enabled,
            public=webhook.public,
            endpoint=partial(webhook.endpoint, settings, state),
        )
        found.append(route)
    if not isinstance(config, ResourceManagerConfiguration):
        return found
    for mode, path in combined.PATHS.items():
        route = Route(
            path=path,
            webhook=combined.NAME,
            setting="webhooks, where all that change pods are off",
            enabled=combined.is_enabled(config),
            endpoint=partial(_combined, config, mode, state),
        )
        found.append(route)
    return found


def _combined(config: ResourceManagerConfiguration, mode: Mode, state: SharedListers) -> Endpoint:
    return Reviewer(combined.NAME, combined.handler(config, mode, state), path=combined.PATHS[mode])


def enabled(routes: Iterable[Route]) -> dict[str, Endpoint]:
    return {route.path: route.endpoint() for route in routes if route.enabled}


def disabled(routes: Iterable[Route]) -> list[Disabled]:
    return [
        Disabled(path=route.path, webhook=route.webhook, setting=route.setting) for route in routes if not route.enabled
    ]


def public(routes: Iterable[Route]) -> list[str]:
    return [route.path for route in routes if route.public]
