"""Turn flags into a cluster, and errors into helpful messages and an exit code.

    @on_cluster()       makes a function for click of one that gets a session; its result is the exit code
    run(where, work)    does the same once, for a command that may also work without a cluster

A kubeconfig of the local user may run plugins and name files: it is trusted.
"""

import asyncio
import contextlib
import functools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kube.errors import Forbidden, KubeError, Unauthorized, Unreachable
from kube.objects import Key, mapping, mappings, text
from kube.runtime.client import Client
from kube.runtime.connection import load_kubeconfig
from kube.runtime.kubeconfig import ConfigurationError, read_kubeconfig
from kubectl import options, output
from kubectl.errors import UserError
from kubectl.transport import PlainTransport

if TYPE_CHECKING:
    from kube.runtime.discovery import Discovery

A = TypeVar("A")
R = TypeVar("R")

_DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Cluster and namespace given by the flags."""

    program: str = ""
    """Name of the plugin, for the audit logs of the clusters."""
    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    target: Path | None = None
    """Kubeconfig of the cluster that the objects are applied to, if it is another one."""
    user: str | None = None
    """User to impersonate, in both clusters."""
    groups: Sequence[str] = ()
    is_garden: bool = False
    """Whether the cluster is the garden of the target, if the context is one of `kubectl gardener target`."""


@dataclass(frozen=True)
class Cluster:
    client: Client

    @functools.cached_property
    def discovery(self) -> "Discovery":
        from kube.runtime.discovery import Discovery  # only here: `get` needs none

        return Discovery(self.client)


@dataclass(frozen=True, slots=True)
class Origin:
    """Kubeconfig and context of the source cluster, and the target that led there, if any."""

    kubeconfig: Path
    context: str
    target: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Session:
    source: Cluster
    target: Cluster
    namespace: str
    origin: Origin
    where: Where

    def key(self, name: str) -> Key:
        return Key(self.namespace, name)


async def gathered(work: Callable[[A], Awaitable[R]], of: Iterable[A], *, at_once: int) -> list[R]:
    """Results of the work on each item, in their order, with a limit of concurrency."""
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


def on_cluster(
    *, target: bool = True, garden: bool = False, error_code: int = 1
) -> Callable[[Callable[..., Awaitable[int | None]]], Callable[..., None]]:
    """Turn a function that gets a session into one for click, with the options that name the cluster.

    Args:
        target: whether the cluster that the objects are applied to may be another one.
        garden: see `Where.is_garden`.
        error_code: the exit code of failures.
    """
    flags = options.all_of((*options.cluster, options.target) if target else options.cluster)

    def decorated(work: Callable[..., Awaitable[int | None]]) -> Callable[..., None]:
        @functools.wraps(work)
        def command(**given: Any) -> None:
            where = Where(
                program=click.get_current_context().obj,
                **{field.name: given.pop(field.name) for field in fields(Where) if field.name in given},
                is_garden=garden,
            )
            run(where, functools.partial(work, **given), error_code=error_code)

        return flags(command)

    return decorated


def run_offline(work: Callable[[], int | None]) -> None:
    """Do work that needs no cluster, and end the process with its exit code."""
    end(guarded(lambda: work() or 0, error_code=1))


def end(code: int) -> None:
    if code:
        raise click.exceptions.Exit(code)


def guarded(work: Callable[[], int], *, error_code: int) -> int:
    """Exit code of the work; errors that a user can correct are printed to stderr."""
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
            return "request this permission, or use another --context"
        case Unreachable():
            return "is the API server reachable from here? Try: kubectl cluster-info"
    return ""


@contextlib.asynccontextmanager
async def open_session(where: Where) -> AsyncIterator[Session]:
    if where.groups and not where.user:
        raise UserError("--as-group needs a user", hint="name one by --as")
    file, context = chosen_kubeconfig(where)
    target = context.target
    if target and (where.is_garden or not is_cluster(target)):
        file, context = _garden_of(where, target)
    async with contextlib.AsyncExitStack() as stack:
        source = await open_cluster(stack, where, file, context.name)
        applied = source if where.target is None else await open_cluster(stack, where, where.target)
        namespace = where.namespace or context.namespace or _DEFAULT_NAMESPACE
        yield Session(source, applied, namespace, Origin(file, context.name, target), where)


async def open_cluster(
    stack: contextlib.AsyncExitStack, where: Where, file: Path, context: str | None = None
) -> Cluster:
    """Cluster of a kubeconfig, as the user in `where`."""
    connection = load_kubeconfig(file, context=context, trusted=True)
    transport = await stack.enter_async_context(PlainTransport(connection))
    client = Client(transport, user_agent=where.program)
    if where.user:
        client = client.impersonating(where.user, where.groups)
    return Cluster(client)


# --- kubeconfigs


@dataclass(frozen=True, slots=True)
class Context:
    name: str
    namespace: str
    target: Mapping[str, Any]
    """Extension that `kubectl gardener target` writes: kubeconfig and context of the garden, and the target."""


TARGET = "target.gardener.cloud"
"""Name of the extension."""


def is_cluster(target: Mapping[str, Any]) -> bool:
    """Whether a target is a cluster of its own, not the garden."""
    return bool(target.get("shoot") or target.get("seed"))


def _garden_of(where: Where, target: Mapping[str, Any]) -> tuple[Path, Context]:
    """Kubeconfig and context of the garden of a target, with the namespace of the target."""
    garden = Where(kubeconfig=Path(text(target.get("kubeconfig"))), context=text(target.get("context")))
    file, context = chosen_kubeconfig(replace(garden, user=where.user))
    return file, replace(context, namespace=text(target.get("namespace")) or context.namespace)


def chosen_kubeconfig(where: Where) -> tuple[Path, Context]:
    """File with the context, among those of the flag or $KUBECONFIG; and the context. Raises UserError if none."""
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
            return file, _context(document, name, names[name], has_user=bool(where.user))
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


def _context(document: Any, name: str, entry: Any, *, has_user: bool) -> Context:
    inner = entry.get("context") or {}
    users = {str(user.get("name")): user.get("user") or {} for user in mappings(document.get("users"))}
    if users.get(str(inner.get("user") or ""), {}).get("as") and not has_user:
        # Going on would mean to act as another user than intended.
        raise UserError(
            f"the context {name!r} impersonates another user, which is not supported", hint="impersonate by --as"
        )
    extensions = {each.get("name"): mapping(each.get("extension")) for each in mappings(inner.get("extensions"))}
    return Context(name, str(inner.get("namespace") or ""), extensions.get(TARGET, {}))


def _read(file: Path) -> Mapping[str, Any]:
    try:
        return read_kubeconfig(file, trusted=True) if file.stat().st_size else {}
    except (OSError, ConfigurationError) as error:
        raise UserError(str(error)) from error
