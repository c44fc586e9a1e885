"""From flags to a cluster, and from errors to words that help and an exit code.

    run(where, work)    calls `work(session)` and ends the process with what it returns

A kubeconfig on a person's computer may run plugins and name files: it is trusted.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
import yaml

from agent.api import MANAGED_RESOURCES
from kube.client import Client, Form, Selection, Transport
from kube.connection import ConfigurationError, load_kubeconfig
from kube.discovery import Discovery
from kube.errors import Forbidden, KubeError, NotFound, Unauthorized, Unreachable
from kube.objects import Key, Object, key
from kubectl_mr import output
from kubectl_mr.errors import UserError, not_found

_USER_AGENT = "kubectl-mr"
_DEFAULT_NAMESPACE = "default"


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
            return await self.source.client.get(MANAGED_RESOURCES, name, namespace=self.namespace)
        except NotFound:
            await self._demand_kind()
            return None

    async def _missing(self, name: str) -> Object:
        selection = Selection(namespace=self.namespace)
        known = await self.source.client.list(MANAGED_RESOURCES, selection, form=Form.METADATA)
        names = [key(obj).name for obj in known]
        raise not_found(
            "ManagedResource", f"{self.namespace}/{name}", [f"{self.namespace}/{n}" for n in names], where="-A"
        )

    async def _demand_kind(self) -> None:
        try:
            await self.source.client.read(f"/apis/{MANAGED_RESOURCES.api_version}")
        except NotFound:
            raise kind_missing() from None

    def key(self, name: str) -> Key:
        return Key(self.namespace, name)


def kind_missing() -> UserError:
    return UserError(
        "this cluster does not know ManagedResources",
        hint="is it the right --context? If so, install the CustomResourceDefinition; see kubectl mr check",
    )


Work = Callable[[Session], Awaitable[int | None]]


def run(where: Where, work: Work, *, error_code: int = 1) -> None:
    """Do the work and end the process with its exit code; failures end it with `error_code`."""

    async def connected() -> int:
        async with open_session(where) as session:
            return await work(session) or 0

    end(guarded(lambda: asyncio.run(connected()), error_code=error_code))


def run_offline(work: Callable[[], int | None], *, error_code: int = 1) -> None:
    """The same for work that needs no cluster."""
    end(guarded(lambda: work() or 0, error_code=error_code))


def end(code: int) -> None:
    if code:
        raise typer.Exit(code)


def guarded(work: Callable[[], int], *, error_code: int) -> int:
    """The exit code of the work; what a user can do something about is told on stderr."""
    try:
        return work()
    except (UserError, ConfigurationError, KubeError) as error:
        output.failed(_described(error))
        if hint := _hint(error):
            output.begin(hint)
        return error_code
    except KeyboardInterrupt:
        return 130


def _described(error: Exception) -> str:
    return str(error) or type(error).__name__


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
    """The file that has the context, of those that the flag or $KUBECONFIG name.

    Raises:
        UserError: there is none.
    """
    files = [where.kubeconfig] if where.kubeconfig else candidates(os.environ.get("KUBECONFIG", ""))
    present = [file for file in files if file.is_file()]
    if not present:
        tried = ", ".join(str(file) for file in files)
        raise UserError(f"there is no kubeconfig: {tried}", hint="name one by --kubeconfig, or in $KUBECONFIG")
    known: list[str] = []
    for file in present:
        document = _read(file)
        names = {str(entry.get("name")): entry for entry in _entries(document, "contexts")}
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
    users = {str(user.get("name")): user.get("user") or {} for user in _entries(document, "users")}
    if users.get(str(inner.get("user") or ""), {}).get("as"):
        # Going on would mean to act as somebody else than was meant.
        raise UserError(f"the context {name!r} impersonates another user, which is not supported")
    return Context(name, str(inner.get("namespace") or ""))


def _read(file: Path) -> dict[str, Any]:
    try:
        document = yaml.load(file.read_bytes(), yaml.CSafeLoader)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UserError(f"cannot read the kubeconfig {file}: {error}") from error
    return document if isinstance(document, dict) else {}


def _entries(document: dict[str, Any], field: str) -> list[Any]:
    entries = document.get(field)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
