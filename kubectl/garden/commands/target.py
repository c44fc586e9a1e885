"""`kubectl gardener target`: the garden, a Project, a Seed or a Shoot as the cluster of kubectl in the current shell.

Nothing but files of this command changes: it prints `export KUBECONFIG=...`, and the shell evaluates that. The file of
a garden or Project has no credentials: it is a context with a namespace, before the user's kubeconfig. That of a Shoot
or Seed has new, short-lived ones. Both are in a directory of the user's alone, and name the garden in an extension of
the context, so that `kubectl gardener` goes on working with it.
"""

import hashlib
import os
import shlex
import stat
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from gardener.api.garden import MANAGED_SEEDS, SEEDS, SHOOTS
from gardener.garden.domains import NAMESPACE
from kube.clock import format_time
from kube.objects import Key, Object, mapping, mappings, text
from kube.paths import at
from kube.runtime.kubeconfig import parse_kubeconfig, read_kubeconfig
from kubectl import output
from kubectl.errors import UserError
from kubectl.garden.commands.kubeconfig import ADMIN, EXPIRATION, requested
from kubectl.garden.selection import completed, namespace_of, project
from kubectl.reader import Reader
from kubectl.session import TARGET, Session, on_cluster

_KUBECONFIG = "KUBECONFIG"
_OF_CLUSTERS = ".cluster.yaml"
_KEPT = 86_400
"""Seconds for which a file with credentials is kept: none is valid longer."""
_CONTEXT = "kubectl-gardener"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """Content of the extension; see `kubectl.session.Context`."""

    kubeconfig: str
    context: str
    namespace: str = ""
    project: str = ""
    seed: str = ""
    shoot: str = ""


@click.command
@click.option("--garden", is_flag=True, help="Target the garden.")
@project
@click.option("--seed", metavar="NAME", default="", help="Target a managed Seed.", shell_complete=completed(SEEDS))
@click.option("--shoot", metavar="NAME", default="", help="Target a Shoot.", shell_complete=completed(SHOOTS))
@ADMIN
@EXPIRATION
@on_cluster(target=False, garden=True)
async def command(
    session: Session, *, garden: bool, project: str, seed: str, shoot: str, admin: bool, expiration: str
) -> None:
    """Shows the target; with flags, prints a command that sets another one for the shell, to be used like
    eval "$(kubectl gardener target --project dev --shoot rose)". A Shoot without a Project is in the present namespace.
    """
    if sum(map(bool, (garden, seed, project or shoot))) > 1:
        raise click.BadParameter("one of --garden, --seed, or --project with or without --shoot", param_hint="--garden")
    origin = session.origin
    base = {"kubeconfig": str(origin.kubeconfig.absolute()), "context": origin.context}
    if seed:
        chosen = _Target(**base, namespace=NAMESPACE, seed=seed)
        await _target_cluster(session, chosen, await _shoot_of(session, seed), admin=admin, expiration=expiration)
    elif shoot:
        namespace = await namespace_of(session, project)
        chosen = _Target(**base, namespace=namespace, project=project, shoot=shoot)
        own = Key(namespace, shoot)
        await _target_cluster(session, chosen, own, admin=admin, expiration=expiration)
    elif project:
        _target_garden(_Target(**base, namespace=await namespace_of(session, project), project=project))
    elif garden:
        _target_garden(_Target(**base))
    else:
        _show(session)


def _show(session: Session) -> None:
    origin, target = session.origin, session.origin.target
    found = {"garden": f"{origin.context} in {origin.kubeconfig}", "namespace": session.namespace}
    found |= {name: text(target.get(name)) for name in ("project", "seed", "shoot")}
    output.show([f"{name}: {value}"] for name, value in found.items() if value)


async def _shoot_of(session: Session, seed: str) -> Key:
    """Shoot on which a Seed runs. Raises UserError."""
    reader = Reader(session.source.client)
    await reader.demand(SEEDS, Key("", seed))
    managed = await reader.find(MANAGED_SEEDS, Key(NAMESPACE, seed))
    name = text(at(managed or {}, "spec", "shoot", "name"))
    if not name:
        message = f"no ManagedSeed {NAMESPACE}/{seed} is readable, so the cluster of Seed {seed} is unknown"
        raise UserError(message, hint="if the Seed is registered by its operator, get a kubeconfig from there")
    return Key(NAMESPACE, name)


# --- files


def _target_garden(chosen: _Target) -> None:
    """Select the context of the garden, with another namespace."""
    document = read_kubeconfig(Path(chosen.kubeconfig), trusted=True)
    entries = {text(each.get("name")): mapping(each.get("context")) for each in mappings(document.get("contexts"))}
    context = {**entries.get(chosen.context, {}), **({"namespace": chosen.namespace} if chosen.namespace else {})}
    content = _kubeconfig([{"name": _CONTEXT, "context": _extended(context, chosen)}], current=_CONTEXT)
    path = _write(content, chosen, ".yaml")
    _select(f"{path}{os.pathsep}{chosen.kubeconfig}", chosen)


async def _target_cluster(session: Session, chosen: _Target, own: Key, *, admin: bool, expiration: str) -> None:
    made = await requested(session, own, admin=admin, expiration=expiration)
    document = parse_kubeconfig(made.content, origin=f"the one of Shoot {own}")
    contexts = [
        {**each, "context": _extended(mapping(each.get("context")), chosen)}
        for each in mappings(document.get("contexts"))
    ]
    _select(str(_write({**document, "contexts": contexts}, chosen, _OF_CLUSTERS)), chosen)
    output.begin(f"{'all rights' if admin else 'read access'}, until {format_time(made.expires)}")


def _kubeconfig(contexts: list[Object], *, current: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Config", "contexts": contexts, "current-context": current}


def _extended(context: Object, chosen: _Target) -> Object:
    found = {name: value for name, value in asdict(chosen).items() if value}
    others = [each for each in mappings(context.get("extensions")) if each.get("name") != TARGET]
    return {**context, "extensions": [*others, {"name": TARGET, "extension": found}]}


def _write(content: Mapping[str, Any], chosen: _Target, suffix: str) -> Path:
    """Write a file that only the user can read; the same target has the same file. Raises UserError."""
    directory = _directory()
    _remove_old(directory)
    digest = hashlib.sha256(repr(chosen).encode()).hexdigest()[:16]
    path = directory / f"{digest}{suffix}"
    descriptor, name = tempfile.mkstemp(dir=directory)  # with mode 0600
    with os.fdopen(descriptor, "w") as stream:
        stream.write(output.as_yaml([dict(content)]))
    Path(name).replace(path)
    return path


def _directory() -> Path:
    """Directory of the user's alone. Raises UserError: another user made it."""
    parent = os.environ.get("XDG_RUNTIME_DIR")
    path = Path(parent, _CONTEXT) if parent else Path(tempfile.gettempdir(), f"{_CONTEXT}-{os.getuid()}")
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{path} can't be created: {error.strerror}", hint="set XDG_RUNTIME_DIR to a directory of yours"
        ) from error
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise UserError(f"{path} is not a directory of yours alone", hint="remove it, or set its mode to 0700")
    return path


def _remove_old(directory: Path) -> None:
    for path in directory.glob(f"*{_OF_CLUSTERS}"):
        if time.time() - path.stat().st_mtime > _KEPT:
            path.unlink(missing_ok=True)


def _select(kubeconfig: str, chosen: _Target) -> None:
    output.write(f"export {_KUBECONFIG}={shlex.quote(kubeconfig)}\n")
    names = {"Project": chosen.project, "Seed": chosen.seed, "Shoot": chosen.shoot}
    what = ", ".join(f"{kind} {name}" for kind, name in names.items() if name) or "the garden"
    output.done(f"targets {what}")
