"""Process for the pod of an object: started from its files, restarted when they change."""

import hashlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import aiohttp

from gardener.operations import PROGRAM_ENDED
from kube.objects import Key
from localprocesses.assets import percent
from localprocesses.ended import last_error
from localprovider.runner.addresses import TEMPORARY, Here
from localprovider.runner.confinement import confinement
from localprovider.runner.places import Places
from localprovider.runner.probes import Probe, problem
from localprovider.runner.processes import Processes
from localprovider.runner.volumes import File
from process.composition import IDENTITY

ROOT, _DIGEST = "root", "digest"
"""Names in the directory of a pod: the root of its container, and the digest of the running process."""
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "XDG_CACHE_HOME")
"""Variables of this program that processes get; others may be credentials, or lead to clusters of its user."""
_TAKEN = "address already in use"
"""Output of programs whose port is taken by another process."""
_BUILD_SECONDS = 2.0
_LOOK_SECONDS, _PERIOD_SECONDS = 0.5, 5.0
"""Seconds until a process that is not ready is checked again, and one that is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """Description of a process.

    Attributes:
        environment: variables of its container.
        files: files with local paths in them.
        probe: None if it is ready as soon as it runs.
        reads: additional readable files and directories.
    """

    namespace: str
    name: str
    here: Here
    command: Sequence[str]
    files: Sequence[File]
    probe: Probe | None = None
    reads: Sequence[Path] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def process(self) -> str:
        return f"{self.namespace}.{self.name}"

    @property
    def digest(self) -> str:
        """Digest of everything whose change requires a restart."""
        variables = [f"{name}={value}" for name, value in sorted(self.environment.items())]
        whole = hashlib.sha256("\0".join((*variables, *self.command)).encode())
        for each in sorted(self.files, key=lambda file: file.path):
            if each.is_fixed:
                whole.update(f"\0{each.path}\0".encode() + each.content)
        return whole.hexdigest()


@dataclass(frozen=True, slots=True)
class Standing:
    """State of a pod.

    Attributes:
        problem: reason why it is not ready; empty if it is.
        wait: seconds until the next look.
        lacks_port: whether it has ended because its port is taken.
    """

    problem: str
    wait: float
    lacks_port: bool = False


def _unheard(_: Key) -> None:
    pass


@dataclass(slots=True)
class Pods:
    """Processes of pods.

    Attributes:
        ended: called when the process of a pod has ended.
    """

    places: Places
    processes: Processes
    session: aiohttp.ClientSession
    ended: Callable[[Key], None] = _unheard

    async def run(self, pod: Pod) -> Standing:
        """Start or restart a pod as described. Return its state.

        Raises:
            LocalProcessError: the supervisor refused, or there are too many namespaces.
            OutsideError: a name or path is not accepted.
        """
        files, own = self.places.files_of(pod.namespace), f"{pod.namespace}/{pod.name}"
        for each in pod.files:
            files.write(f"{own}/{ROOT}{each.path}", each.content)
        noted = f"{own}/{_DIGEST}"
        is_as_described = files.is_file(noted) and files.read(noted, most=len(pod.digest)) == pod.digest.encode()
        started = await self.processes.running()
        if started.get(pod.process, False) and is_as_described:
            await self._follow(pod)
            return await self._look(pod)
        if not is_as_described:
            self.processes.forget(pod.process)
            files.write(noted, pod.digest.encode())
        elif pod.process in started:
            self.processes.note_end(pod.process)
        temporary = files.make(f"{own}/{ROOT}{TEMPORARY}")
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        environment |= {**pod.environment, "TMPDIR": str(temporary), IDENTITY: pod.process}
        allowed = confinement(pod.command, own=files.path(own), reads=pod.reads)
        if wait := await self.processes.start(pod.process, pod.command, environment=environment, confinement=allowed):
            reported = self.processes.error(pod.process)
            return Standing(f"{PROGRAM_ENDED}: {reported}", wait, _TAKEN in reported.lower())
        await self._follow(pod)
        return Standing(self._with_error(pod, "its process was started just now"), _LOOK_SECONDS)

    def _with_error(self, pod: Pod, reason: str) -> str:
        """Return the reason, or the error with which the previous process has ended: it may be the cause."""
        error = self.processes.error(pod.process)
        return f"{PROGRAM_ENDED}: {error}" if error else reason

    async def build(self, release: str) -> Standing:
        """Build the programs of a release of Kubernetes in a process of its own. Return the state of a pod that waits.

        Raises:
            LocalProcessError: the supervisor refused.
        """
        process, problem = f"build-{release}", f"building Kubernetes {release}, {percent(release)} %"
        if not (await self.processes.running()).get(process, False):
            command = [sys.executable, "-P", "-m", "localprocesses.assets", release]
            if await self.processes.start(process, command):
                reported = last_error(self.processes.log(process))
                problem = f"Kubernetes {release} can't be built, and is tried again: {reported}"
        return Standing(problem, _BUILD_SECONDS)

    async def _follow(self, pod: Pod) -> None:
        await self.processes.follow(pod.process, partial(self.ended, Key(pod.namespace, pod.name)))

    async def _look(self, pod: Pod) -> Standing:
        reason = await problem(self.session, pod.probe)
        if reason:
            return Standing(self._with_error(pod, reason), _LOOK_SECONDS)
        self.processes.note_readiness(pod.process)
        return Standing("", _PERIOD_SECONDS)

    async def stop(self, namespace: str, name: str) -> None:
        """Stop a pod, and wait until its process has ended.

        Raises:
            LocalProcessError: the supervisor refused.
        """
        await self.processes.stop(f"{namespace}.{name}")

    async def forget(self, namespace: str) -> None:
        """Stop the processes of a namespace, and remove its files.

        Raises:
            LocalProcessError: the supervisor refused.
        """
        for each in await self.processes.running():
            if each.startswith(f"{namespace}."):
                await self.processes.stop(each)
        self.places.forget(namespace)
