"""A process that stands for the pod of an object: started from its files, started again when they change."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import aiohttp

from kube.objects import Key
from localprovider.runner.addresses import Here
from localprovider.runner.places import Places
from localprovider.runner.probes import Probe, problem
from localprovider.runner.processes import Processes, last_lines
from localprovider.runner.volumes import File

_READ_BY_OWNER = 0o600
_TAKEN = "address already in use"
"""What programs print whose port is another's."""
_LOOK_SECONDS, _PERIOD_SECONDS = 0.5, 5.0
"""Until a process is looked at again that is not ready, and that is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """What is to run.

    Attributes:
        files: with the paths of this computer in them.
        probe: None: it is ready as soon as it runs.
    """

    namespace: str
    name: str
    here: Here
    command: Sequence[str]
    files: Sequence[File]
    probe: Probe | None = None

    @property
    def process(self) -> str:
        return f"{self.namespace}.{self.name}"

    @property
    def digest(self) -> str:
        """Of what a process has to be started again for."""
        whole = hashlib.sha256("\0".join(self.command).encode())
        for each in sorted(self.files, key=lambda file: file.path):
            if each.is_fixed:
                whole.update(f"\0{each.path}\0".encode() + each.content)
        return whole.hexdigest()


@dataclass(frozen=True, slots=True)
class Standing:
    """How a pod is.

    Attributes:
        problem: why it is not ready; empty: it is.
        wait: seconds until to look again.
        lacks_port: whether it has ended because others have its port.
    """

    problem: str
    wait: float
    lacks_port: bool = False


def _unheard(_: Key) -> None:
    pass


@dataclass(slots=True)
class Pods:
    """Attributes: ended: called when the process of a pod has ended."""

    places: Places
    processes: Processes
    session: aiohttp.ClientSession
    ended: Callable[[Key], None] = _unheard

    async def run(self, pod: Pod) -> Standing:
        """Have it run as it is described. Raises LocalProcessError."""
        _write(pod)
        noted = self.places.of_pod(pod.namespace, pod.name) / "digest"
        is_as_described = noted.exists() and noted.read_text() == pod.digest
        is_running = (await self.processes.running()).get(pod.process, False)
        if is_running and is_as_described:
            await self._follow(pod)
            return await self._look(pod)
        if not is_as_described:
            self.processes.forget(pod.process)
            noted.write_text(pod.digest)
        if wait := await self.processes.start(pod.process, pod.command):
            said = last_lines(self.processes.log(pod.process))
            return Standing(f"its process has ended and is started again: {said}", wait, _TAKEN in said.lower())
        await self._follow(pod)
        return Standing("its process was started just now", _LOOK_SECONDS)

    async def _follow(self, pod: Pod) -> None:
        await self.processes.follow(pod.process, partial(self.ended, Key(pod.namespace, pod.name)))

    async def _look(self, pod: Pod) -> Standing:
        reason = await problem(self.session, pod.probe)
        if reason:
            return Standing(reason, _LOOK_SECONDS)
        return Standing("", _PERIOD_SECONDS)

    async def stop(self, namespace: str, name: str) -> None:
        """Return when nothing of it runs. Raises LocalProcessError."""
        await self.processes.stop(f"{namespace}.{name}")

    async def forget(self, namespace: str) -> None:
        """Stop what still runs of a namespace, and remove what it has here. Raises LocalProcessError."""
        for each in await self.processes.running():
            if each.startswith(f"{namespace}."):
                await self.processes.stop(each)
        self.places.forget(namespace)


def _write(pod: Pod) -> None:
    """Its files."""
    for each in pod.files:
        write_private(pod.here.path(each.path), each.content)


def write_private(path: Path, content: bytes) -> None:
    """A file as a whole, if it differs, readable for the owner alone."""
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.touch(mode=_READ_BY_OWNER)
    new.write_bytes(content)
    new.replace(path)
