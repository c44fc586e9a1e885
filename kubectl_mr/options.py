"""The flags that commands share; the same letters as those of kubectl."""

from pathlib import Path
from typing import Annotated

import typer

from kubectl_mr.output import Form, Output

_CLUSTER = "Cluster"

KubeconfigFlag = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="Path of the kubeconfig; default: $KUBECONFIG, or ~/.kube/config.",
        rich_help_panel=_CLUSTER,
    ),
]
ContextFlag = Annotated[
    str | None, typer.Option("--context", metavar="NAME", help="Context of the kubeconfig.", rich_help_panel=_CLUSTER)
]
NamespaceFlag = Annotated[
    str | None,
    typer.Option(
        "--namespace", "-n", metavar="NAME", help="Namespace; default: that of the context.", rich_help_panel=_CLUSTER
    ),
]
AllNamespacesFlag = Annotated[bool, typer.Option("--all-namespaces", "-A", help="All namespaces.")]
TargetFlag = Annotated[
    Path | None,
    typer.Option(
        "--target-kubeconfig",
        metavar="FILE",
        help="Kubeconfig of the cluster that the objects are applied to, if it is another one.",
        rich_help_panel=_CLUSTER,
    ),
]
OutputFlag = Annotated[Output | None, typer.Option("--output", "-o", help="Another form of output.")]
FormFlag = Annotated[Form | None, typer.Option("--output", "-o", help="Another form of output.")]
TimeoutFlag = Annotated[
    str, typer.Option("--timeout", metavar="DURATION", help="For how long to wait, such as 90s or 5m.")
]


def complete_name(ctx: typer.Context, incomplete: str) -> list[str]:
    """The names of ManagedResources, for the shell; nothing if they can't be had at once."""
    from kubectl_mr.completion import names_of_managed_resources

    return names_of_managed_resources(ctx.params, incomplete)


Name = Annotated[str, typer.Argument(metavar="NAME", help="The ManagedResource.", autocompletion=complete_name)]
Names = Annotated[
    list[str], typer.Argument(metavar="NAME...", help="The ManagedResources.", autocompletion=complete_name)
]
