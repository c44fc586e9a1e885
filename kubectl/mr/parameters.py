"""Parameters that commands about ManagedResources share, beyond those of all plugins."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from gardener.api.kinds import MANAGED_RESOURCES
from kubectl.options import FILE, OneOf
from kubectl.output import Form

F = TypeVar("F", bound=Callable[..., Any])


def complete_name(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of ManagedResources, for the shell; empty if they are not available at once."""
    from kubectl.completion import names_of

    return names_of(MANAGED_RESOURCES, ctx, incomplete)


# --- selection of ManagedResources

name = click.argument("name", help="Name of the ManagedResource.", shell_complete=complete_name)
names = click.argument(
    "names", nargs=-1, metavar="[NAME]...", help="Names of the ManagedResources.", shell_complete=complete_name
)
all_here = click.option("--all", "all_here", is_flag=True, help="Select all ManagedResources of the namespace.")


def all_namespaces(parameter: str) -> Callable[[F], F]:
    return click.option("--all-namespaces", "-A", parameter, is_flag=True, help="Select all namespaces.")


# --- manifests

paths = click.option(
    "--filename",
    "-f",
    "paths",
    type=FILE,
    multiple=True,
    metavar="DIR|FILE",
    help="Manifests to read; repeatable; - for standard input.",
)


def required_paths(metavar: str) -> Callable[[F], F]:
    return click.option(
        "--filename",
        "-f",
        "paths",
        type=FILE,
        multiple=True,
        required=True,
        metavar=metavar,
        help="Manifests to read; repeatable.",
    )


kustomizations = click.option(
    "--kustomize",
    "-k",
    "kustomizations",
    type=FILE,
    multiple=True,
    metavar="DIR",
    help="Kustomization to build manifests from; repeatable.",
)
form_of_objects = click.option(
    "--output", "-o", "form", type=OneOf(Form), default=Form.YAML.value, show_default=True, help="Output format."
)
wait = click.option(
    "--wait/--no-wait", default=True, show_default=True, help="Wait until the ManagedResources are ready."
)
