"""The admission server, and tools for it.

    python -m webhooks --config FILE          serve
    python -m webhooks configurations …       print or install the webhook configurations
    python -m webhooks certificates …         create and renew the certificates
    python -m webhooks garden validate …      check manifests of the garden API, offline

The tools have parsers of their own, in their packages.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Never

from config import resource_manager, webhooks
from gardener.distribution import version
from process.program import Program, run

if TYPE_CHECKING:
    from config.resource_manager.schema import ResourceManagerConfiguration
    from config.webhooks.schema import GardenWebhooksConfiguration
    from process.program import Compose


def _resource_manager() -> "Compose[ResourceManagerConfiguration]":
    from webhooks import app

    return app.resource_manager


def _garden_webhooks() -> "Compose[GardenWebhooksConfiguration]":
    from webhooks import app

    return app.garden


GARDEN_WEBHOOKS = Program(
    name="garden-webhooks",
    summary="Serves the webhooks that default and validate the garden API.",
    component=webhooks.COMPONENT,
    elects=False,
    compose=_garden_webhooks,
)
PROGRAMS: tuple[Program[Any], ...] = (
    Program(
        name="resource-manager-webhooks",
        summary="Serves admission webhooks for API servers.",
        component=resource_manager.COMPONENT,
        elects=False,
        compose=_resource_manager,
    ),
    GARDEN_WEBHOOKS,
)


def _configurations(arguments: Sequence[str]) -> int:
    from webhooks.configurations import command

    return command.main(arguments)


def _certificates(arguments: Sequence[str]) -> int:
    from webhooks.certificates import command

    return command.main(arguments)


def _garden(arguments: Sequence[str]) -> int:
    from webhooks.garden import command

    return command.main(arguments)


@dataclass(frozen=True, slots=True)
class Command:
    summary: str
    main: Callable[[Sequence[str]], int]
    """Imports its package when called: the server does not need it."""


COMMANDS = {
    "configurations": Command("print or install the webhook configurations", _configurations),
    "certificates": Command("create and renew the certificates", _certificates),
    "garden": Command("check manifests of the garden API offline (validate)", _garden),
}


def start() -> Never:
    arguments = sys.argv[1:]
    if arguments and arguments[0] in COMMANDS:
        sys.exit(COMMANDS[arguments[0]].main(arguments[1:]))
    run(PROGRAMS, version=version(), commands={name: command.summary for name, command in COMMANDS.items()})
