"""From flags to a cluster, and from errors to words that help and an exit code.

    @on_cluster()       makes a command of a function that gets a session; its result is the exit code
    run(where, work)    does the same once, for a command that may also do without a cluster

A kubeconfig on a person's computer may run plugins and name files: it is trusted.
"""

import asyncio
import contextlib
import functools
import inspect
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import typer

from gardener.kinds import MANAGED_RESOURCES
from kube.client import Client, Form, Selection, Transport
from kube.connection import load_kubeconfig
from kube.discovery import Discovery
from kube.errors import Forbidden, KindNotServed, KubeError, Unauthorized, Unreachable
from kube.kubeconfig import ConfigurationError, read_kubeconfig
from kube.objects import Key, Object, key, mappings
from kubectl_mr import options, output
from kubectl_mr.errors import UserError, not_found

A = TypeVar("A")
R = TypeVar("R")

_USER_AGENT = "kubectl-mr"
_DEFAULT_NAMESPACE = "default"
PAGE = 250
"""How many ManagedResources are listed at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Which cluster and namespace the flags name."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    target: Path | None = None
    """Of the cluster that the objects are applied to, if it is another one."""


@dataclass(frozen=True, slots=True)
class Cluster:
    client: Client
    discovery: Discovery


@dataclass(frozen=True, slots=True)
class Session:
    source: Cluster
    target: Cluster
    namespace: str

    async def managed_resource(self, name: str) -> Object:
        """Raises UserError that tells similar names."""
        return await self.find(name) or await self._missing(name)

    async def find(self, name: str) -> Object | None:
        try:
            return await self.source.client.find(MANAGED_RESOURCES, name, namespace=self.namespace)
        except KindNotServed:
            raise KindMissing from None

    async def _missing(self, name: str) -> Object:
        selection = Selection(namespace=self.namespace)
        known = await self.source.client.list(MANAGED_RESOURCES, selection, form=Form.METADATA)
        names = [key(obj).name for obj in known]
        raise not_found(
            "ManagedResource", f"{self.namespace}/{name}", [f"{self.namespace}/{n}" for n in names], where="-A"
        )

    async def pages(self, namespace: str, *, selector: str = "") -> AsyncIterator[list[Object]]:
        """ManagedResources, so that thousands cost no more memory than a page. Raises KindMissing."""
        selection = Selection(namespace=namespace, label_selector=selector)
        try:
            async for page in self.source.client.pages(MANAGED_RESOURCES, selection, limit=PAGE):
                yield page
        except KindNotServed:
            raise KindMissing from None

    def key(self, name: str) -> Key:
        return Key(self.namespace, name)


class KindMissing(UserError):
    def __init__(self) -> None:
        super().__init__(
            "this cluster does not know ManagedResources",
            hint="is it the right --context? If so, install the CustomResourceDefinition; see kubectl mr check",
        )


async def gathered(work: Callable[[A], Awaitable[R]], of: Iterable[A], *, at_once: int) -> list[R]:
    """The results of the work on each, in their order, on so many at once."""
    slots = asyncio.Semaphore(at_once)

    async def one(each: A) -> R:
        async with slots:
            return await work(each)

    return await asyncio.gather(*(one(each) for each in of))


Work = Callable[[Session], Awaitable[int | None]]


def run(where: Where, work: Work, *, error_code: int = 1) -> None:
    """Do the work and end the process with its exit code; failures end it with `error_code`."""

    async def connected() -> int:
        async with open_session(where) as session:
            return await work(session) or 0

    end(guarded(lambda: asyncio.run(connected()), error_code=error_code))


def _flag(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


_FLAGS = (
    _flag("namespace", options.NamespaceFlag),
    _flag("context", options.ContextFlag),
    _flag("kubeconfig", options.KubeconfigFlag),
    _flag("target", options.TargetFlag),
)


def on_cluster(
    *, target: bool = True, error_code: int = 1
) -> Callable[[Callable[..., Awaitable[int | None]]], Callable[..., None]]:
    """Makes a command of what gets a session: the flags that name the cluster are added to those of its own.

    Args:
        target: whether the cluster that the objects are applied to may be another one.
        error_code: the exit code of failures.
    """
    flags = _FLAGS if target else _FLAGS[:-1]

    def decorated(work: Callable[..., Awaitable[int | None]]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            where = Where(**{flag.name: given.pop(flag.name) for flag in flags})
            run(where, functools.partial(work, **given), error_code=error_code)

        _, *own = inspect.signature(work).parameters.values()
        # From these typer makes the command line.
        command.__doc__ = work.__doc__
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *flags)}
        cast("Any", command).__signature__ = inspect.Signature([*own, *flags])
        return command

    return decorated


def run_offline(work: Callable[[], int | None]) -> None:
    """The same for work that needs no cluster."""
    end(guarded(lambda: work() or 0, error_code=1))


def end(code: int) -> None:
    if code:
        raise typer.Exit(code)


def guarded(work: Callable[[], int], *, error_code: int) -> int:
    """The exit code of the work; what a user can do something about is told on stderr."""
    try:
        return work()
    except (UserError, ConfigurationError, KubeError) as error:
        output.failed(*_described(error))
        if hint := _hint(error):
            output.begin(hint)
        return error_code
    except KeyboardInterrupt:
        return 130


def _described(error: Exception) -> Sequence[str]:
    return error.lines if isinstance(error, UserError) else [str(error) or type(error).__name__]


def _hint(error: Exception) -> str:
    match error:
        case UserError():
            return error.hint
        case Unauthorized():
            return "the cluster does not accept the credentials of the kubeconfig; they may have expired"
        case Forbidden():
            return "ask for this permission, or use another --context"
        case Unreachable():
            return "is the API server reachable from here? Try: kubectl cluster-info"
    return ""


@contextlib.asynccontextmanager
async def open_session(where: Where) -> AsyncIterator[Session]:
    file, context = chosen_kubeconfig(where)
    async with contextlib.AsyncExitStack() as stack:
        source = await _cluster(stack, file, context.name)
        target = source if where.target is None else await _cluster(stack, where.target, None)
        yield Session(source, target, where.namespace or context.namespace or _DEFAULT_NAMESPACE)


async def _cluster(stack: contextlib.AsyncExitStack, file: Path, context: str | None) -> Cluster:
    connection = load_kubeconfig(file, context=context, trusted=True)
    transport = await stack.enter_async_context(Transport(connection))
    client = Client(transport, user_agent=_USER_AGENT)
    return Cluster(client, Discovery(client))


# --- kubeconfigs


@dataclass(frozen=True, slots=True)
class Context:
    name: str
    namespace: str


def chosen_kubeconfig(where: Where) -> tuple[Path, Context]:
    """The file that has the context, of those that the flag or $KUBECONFIG name. Raises UserError: there is none."""
    files = [where.kubeconfig] if where.kubeconfig else candidates(os.environ.get("KUBECONFIG", ""))
    present = [file for file in files if file.is_file()]
    if not present:
        tried = ", ".join(str(file) for file in files)
        raise UserError(f"there is no kubeconfig: {tried}", hint="name one by --kubeconfig, or in $KUBECONFIG")
    known: list[str] = []
    for file in present:
        document = _read(file)
        names = {str(entry.get("name")): entry for entry in mappings(document.get("contexts"))}
        known += names
        name = where.context or str(document.get("current-context") or "")
        if name in names:
            return file, _context(document, name, names[name])
    if where.context:
        raise UserError(
            f"no context {where.context!r} in the kubeconfig", hint=f"there are: {', '.join(known) or 'none'}"
        )
    raise UserError(
        "the kubeconfig has no current context", hint=f"name one by --context: {', '.join(known) or 'none'}"
    )


def candidates(variable: str) -> list[Path]:
    files = [Path(part) for part in variable.split(os.pathsep) if part]
    return files or [Path.home() / ".kube" / "config"]


def _context(document: Any, name: str, entry: Any) -> Context:
    inner = entry.get("context") or {}
    users = {str(user.get("name")): user.get("user") or {} for user in mappings(document.get("users"))}
    if users.get(str(inner.get("user") or ""), {}).get("as"):
        # Going on would mean to act as somebody else than was meant.
        raise UserError(f"the context {name!r} impersonates another user, which is not supported")
    return Context(name, str(inner.get("namespace") or ""))


def _read(file: Path) -> Mapping[str, Any]:
    try:
        return read_kubeconfig(file, trusted=True) if file.stat().st_size else {}
    except (OSError, ConfigurationError) as error:
        raise UserError(str(error)) from error
