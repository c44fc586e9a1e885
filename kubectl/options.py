"""Parameters that commands share; the same letters as those of kubectl.

click, not typer: typer imports pydantic to read a flag, 0.1 s of CPU for each call, which is more than kubectl takes.
"""

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import click

from kube.clock import parse_duration
from kubectl.errors import UserError
from kubectl.output import Form, Output

E = TypeVar("E", bound=Enum)
F = TypeVar("F", bound=Callable[..., Any])

FILE = click.Path(path_type=Path)


class OneOf(click.Choice[E]):
    """Members of an enumeration, written as their values."""

    def normalize_choice(self, choice: object, ctx: click.Context | None) -> str:  # noqa: ARG002 - as click calls it
        return str(choice.value if isinstance(choice, Enum) else choice)


# --- output and waiting

output = click.option("--output", "-o", "form", type=OneOf(Output), help="Output format.")
form = click.option("--output", "-o", "form", type=OneOf(Form), help="Output format.")


def timeout(default: str) -> Callable[[F], F]:
    return click.option(
        "--timeout",
        metavar="DURATION",
        default=default,
        show_default=True,
        help="Maximum time to wait, such as 90s or 5m.",
    )


def seconds_of(duration: str) -> float:
    try:
        return parse_duration(duration)
    except ValueError as error:
        raise UserError(str(error), hint="write a duration such as 90s, 5m or 1h30m") from error


# --- cluster and namespace

namespace = click.option("--namespace", "-n", metavar="NAME", help="Namespace; default: namespace of the context.")
context = click.option("--context", metavar="NAME", help="Context in the kubeconfig.")
kubeconfig = click.option(
    "--kubeconfig", type=FILE, metavar="FILE", help="Path of the kubeconfig; default: $KUBECONFIG, or ~/.kube/config."
)
user = click.option("--as", "user", metavar="USER", help="User or ServiceAccount to impersonate.")
groups = click.option("--as-group", "groups", multiple=True, metavar="GROUP", help="Group to impersonate; repeatable.")
target = click.option(
    "--target-kubeconfig",
    "target",
    type=FILE,
    metavar="FILE",
    help="Kubeconfig of the target cluster, if objects are applied to another cluster.",
)
cluster = (namespace, context, kubeconfig, user, groups)


def all_of(decorators: tuple[Callable[[F], F], ...]) -> Callable[[F], F]:
    """Combine decorators; the first is the outermost."""

    def decorated(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorated
