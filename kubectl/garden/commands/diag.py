"""`kubectl gardener diag`: an archive about a Shoot for support. See `kubectl.garden.support` for what it has."""

import io
import os
import tarfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from gardener.api.extensions import CLUSTERS
from gardener.api.garden import PROJECTS, SEEDS, SHOOTS
from gardener.distribution import version
from gardener.garden.shoots import seeds_of
from kube.clock import format_time
from kube.errors import Forbidden, KubeError
from kube.objects import Key, Object, spec, text
from kube.paths import at
from kube.resources import EVENTS, SECRETS, Resource
from kube.runtime.client import Client, Selection
from kube.runtime.server_version import server_version
from kubectl import options, output
from kubectl.errors import UserError
from kubectl.garden import support
from kubectl.garden.commands import asking
from kubectl.garden.gardenlet import gardenlet_of
from kubectl.garden.reading import explained
from kubectl.garden.selection import completed
from kubectl.garden.why import held
from kubectl.garden.why.finding import ordered
from kubectl.reader import Reader
from kubectl.session import Session, on_cluster
from kubectl.style import size

_IN_SEED = [each for each in held.KINDS if each != SECRETS]
_EVENTS_OF_SEED = "default"
"""Namespace of Events about objects without one."""


@click.command
@click.argument("name", metavar="SHOOT", help="Name of the Shoot.", shell_complete=completed(SHOOTS))
@click.option(
    "--file",
    "-f",
    type=options.FILE,
    metavar="FILE",
    help="File to write, which must not exist; default: SHOOT-TIME.tar.gz in the current directory.",
)
@asking.seed
@asking.gardenlet
@on_cluster(target=False, garden=True)
async def command(session: Session, *, name: str, file: Path | None, url: str | None) -> None:
    """Has the Shoot, its Project and Seed, their Events, findings of why, and versions; with access to the seed, also
    the Cluster, extension objects, Events there, and the flow. Fields are those of a list; Secrets are not read, and
    likely credentials in messages are removed. What you may not read is left out. Look at it before you send it.
    """
    now = datetime.now(UTC)
    files = await _Collector(session, session.key(name), url, now).files()
    path = file or Path(f"{name}-{now:%Y%m%dT%H%M%SZ}.tar.gz")
    written = archive(files, directory=f"{name}-diag", now=now)
    write(path, written)
    output.show([[str(path)]])
    output.done(f"{len(files)} files, {size(len(written))}; look at them before you send them: tar -xOzf {path}")


class _Collector:
    def __init__(self, session: Session, own: Key, url: str | None, now: datetime) -> None:
        self._session = session
        self._own = own
        self._url = url
        self._now = now
        self._garden = Reader(session.source.client)
        self._seed = Reader(session.target.client)
        self._unknown: list[str] = []

    async def files(self) -> dict[str, Any]:
        """Contents by file name. Raises UserError: there is no such Shoot."""
        shoot = await self._garden.demand(SHOOTS, self._own)
        client = self._session.source.client
        found: dict[str, Any] = {"shoot": support.reduced(shoot, support.SHOOT)}
        found["project"] = await self._project()
        found["seeds"] = [await self._seed_named(each) for each in seeds_of(shoot)]
        found["events"] = await self._events(client, self._own.namespace, SHOOTS, self._own.name)
        for seed in seeds_of(shoot):
            found["events"] += await self._events(client, _EVENTS_OF_SEED, SEEDS, seed)
        findings = ordered(await explained(self._garden, SHOOTS, self._own, self._now))
        found["why"] = [support.reduced(each.data(), support.FINDING) for each in findings]
        has_seed = self._session.target is not self._session.source
        if has_seed:
            found |= await self._in_seed(text(at(shoot, "status", "technicalID")))
        if has_seed or self._url:
            found["flow"] = await self._flow()
        found["versions"] = await self._versions(shoot)
        unread = [*self._garden.unread, *self._seed.unread, *self._unknown]
        found["unknown"] = list(dict.fromkeys(map(support.safe_text, unread)))
        for each in found["unknown"]:
            output.warn(f"not included: {each}")
        return found

    async def _project(self) -> Object | None:
        projects = await self._garden.those(PROJECTS, lambda each: spec(each).get("namespace") == self._own.namespace)
        return support.reduced(projects[0], support.PROJECT) if projects else None

    async def _seed_named(self, name: str) -> Object | None:
        found = await self._garden.find(SEEDS, Key("", name))
        return None if found is None else support.reduced(found, support.SEED)

    async def _events(self, client: Client, namespace: str, resource: Resource | None, name: str) -> list[Object]:
        fields = "" if resource is None else f"involvedObject.kind={resource.kind},involvedObject.name={name}"
        found: list[Object] = []
        try:
            async for page in client.pages(EVENTS, Selection(namespace, field_selector=fields)):
                found = support.newest([*found, *page])
        except Forbidden:
            self._unknown.append(f"Events in namespace {namespace}")
        return [support.reduced(each, support.EVENT) for each in found]

    async def _in_seed(self, namespace: str) -> dict[str, Any]:
        if not namespace:
            return {}
        cluster = await self._seed.find(CLUSTERS, Key("", namespace))
        objects = [
            support.reduced(each, support.IN_SEED)
            for resource in _IN_SEED
            for each in await self._seed.those(resource, lambda _: True, namespace=namespace)
        ]
        return {
            "cluster": None if cluster is None else support.reduced(cluster, support.CLUSTER),
            "seed-objects": objects,
            "seed-events": await self._events(self._session.target.client, namespace, None, ""),
        }

    async def _flow(self) -> Object | None:
        try:
            async with gardenlet_of(self._session, self._url, SHOOTS, self._own) as gardenlet:
                found = await gardenlet.flows(SHOOTS, self._own)
        except (UserError, KubeError) as error:
            self._unknown.append(f"the flow: {error}")
            return None
        reduced: Object = support.reduced(found, support.FLOWS)
        return reduced

    async def _versions(self, shoot: Object) -> dict[str, str]:
        found = {
            "time": format_time(self._now),
            "plugin": version(),
            "garden": await self._version(self._session.source.client),
            "shoot": text(at(shoot, "spec", "kubernetes", "version")),
            "gardenlet": text(at(shoot, "status", "gardener", "version")),
        }
        if self._session.target is not self._session.source:
            found["seed"] = await self._version(self._session.target.client)
        return found

    async def _version(self, client: Client) -> str:
        try:
            return await server_version(client)
        except KubeError as error:
            self._unknown.append(f"the version of an API server: {error}")
            return ""


def archive(files: Mapping[str, Any], *, directory: str, now: datetime) -> bytes:
    """Compressed archive of JSON files in a directory."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            encoded = support.file(content)
            entry = tarfile.TarInfo(f"{directory}/{name}.json")
            entry.size, entry.mode, entry.mtime = len(encoded), 0o600, int(now.timestamp())
            tar.addfile(entry, io.BytesIO(encoded))
    return buffer.getvalue()


def write(path: Path, content: bytes) -> None:
    """Create a file that only its owner can read. Raises UserError: it exists, or cannot be written."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(content)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}", hint="name another file by --file") from error
