"""Shoots selected on a command line: by name, by labels, or all of a namespace, a Project, or the garden."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar

import click

from gardener.api.garden import PROJECTS, SHOOTS
from kube.errors import KindNotServed
from kube.objects import Key, key, spec, text
from kube.resources import Resource
from kube.runtime.client import Form, Selection
from kubectl import options
from kubectl.errors import UserError
from kubectl.reader import Reader, unknown_kind
from kubectl.session import Session

F = TypeVar("F", bound=Callable[..., Any])

_OF_PROJECT = "garden-"
"""Prefix of namespaces of Projects, unless they choose another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """Flags; each field is a parameter of the commands with `flags`."""

    names: Sequence[str]
    selector: str
    all_here: bool
    everywhere: bool
    project: str

    @classmethod
    def of(cls, given: dict[str, Any]) -> Self:
        """Take the flags out of the parameters of a command."""
        return cls(**{each.name: given.pop(each.name) for each in fields(cls)})

    async def keys(self, session: Session) -> list[Key]:
        """Keys of the selected Shoots.

        Raises:
            click.BadParameter: nothing is selected, or names and more.
            UserError: there is no such Project.
        """
        has_more = bool(self.selector) or self.all_here
        if bool(self.names) == has_more or (self.everywhere and (self.names or self.project)):
            raise click.BadParameter(
                "either names, or --all or -l LABELS, with -A or --project for others than the namespace",
                param_hint="NAME",
            )
        namespace = await namespace_of(session, self.project)
        if self.names:
            return [Key(namespace, name) for name in dict.fromkeys(self.names)]
        return [found async for found in _listed(session, "" if self.everywhere else namespace, self.selector)]


async def _listed(session: Session, namespace: str, selector: str) -> AsyncIterator[Key]:
    try:
        pages = session.source.client.pages(SHOOTS, Selection(namespace, selector), form=Form.METADATA)
        async for page in pages:
            for each in page:
                yield key(each)
    except KindNotServed:
        raise unknown_kind(SHOOTS) from None


async def namespace_of(session: Session, project: str) -> str:
    """Namespace of a Project; of the session if none is named. Raises UserError."""
    if not project:
        return session.namespace
    found = await Reader(session.source.client).demand(PROJECTS, Key("", project))
    namespace = text(spec(found).get("namespace"))
    if not namespace:
        hint = f"see why: kubectl gardener why project {project}"
        raise UserError(f"Project {project} has no namespace yet", hint=hint)
    return namespace


# --- options and completion


def completed(resource: Resource) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Completion by the names of the objects of a kind."""

    def names(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
        from kubectl.completion import names_of

        project = ctx.params.get("project")
        here = {**ctx.params, "namespace": f"{_OF_PROJECT}{project}"} if project else ctx.params
        return names_of(resource, ctx, incomplete, flags=here)

    return names


project = click.option(
    "--project",
    metavar="NAME",
    default="",
    help="Project, instead of its namespace.",
    shell_complete=completed(PROJECTS),
)
selector = click.option("--selector", "-l", metavar="LABELS", default="", help="Select Shoots with these labels.")
flags = options.all_of(
    (
        click.argument(
            "names", nargs=-1, metavar="[SHOOT]...", help="Names of Shoots.", shell_complete=completed(SHOOTS)
        ),
        selector,
        click.option("--all", "all_here", is_flag=True, help="Select all Shoots of the namespace."),
        click.option("--all-namespaces", "-A", "everywhere", is_flag=True, help="Select in all namespaces."),
        project,
    )
)
