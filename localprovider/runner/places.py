"""Where processes of Shoots have their files, data and ports. What is here outlives the program.

<directory>/<namespace>/ports.json      ports of its Services
<directory>/<namespace>/<pod>/root      files of the container
<directory>/<namespace>/<etcd>/data     of an etcd
<directory>/<namespace>/seed            of the programs of a Shoot that is a seed
"""

import json
from collections.abc import Mapping
from pathlib import Path

from localprocesses.confined import Confined
from localprocesses.local import LocalProcessError
from localprocesses.ports import free_port

MOST_SHOOTS = 100
"""On a seed; each has up to nine processes."""
_LARGEST_FILE = 1 << 20
_PORTS, SEED = "ports.json", "seed"


class Places:
    """Args:
    directory: made when it is needed, readable for its owner alone.
    most: namespaces that may have something here.
    """

    def __init__(self, directory: Path, *, most: int = MOST_SHOOTS) -> None:
        self._files, self._most = Confined(directory), most

    def of_pod(self, namespace: str, name: str) -> Path:
        """Raises LocalProcessError: there are too many namespaces; OutsideError."""
        return self.files_of(namespace).make(f"{namespace}/{name}")

    def files_of(self, namespace: str) -> Confined:
        """In which those of a namespace begin with its name. Raises LocalProcessError: there are too many."""
        having = self.namespaces()
        if namespace not in having and len(having) >= self._most:
            raise LocalProcessError(
                f"processes of {self._most} Shoots are the most that run for a seed here: delete a Shoot that is not "
                "needed"
            )
        return self._files

    def seed(self, namespace: str) -> Path:
        return self._files.path(f"{namespace}/{SEED}")

    def is_seed(self, namespace: str) -> bool:
        """Whether the Shoot is, or was, a seed."""
        return self._files.has(f"{namespace}/{SEED}")

    def namespaces(self) -> list[str]:
        """That have any."""
        try:
            return self._files.names()
        except FileNotFoundError:
            return []

    def forget_pod(self, namespace: str, name: str) -> None:
        """With its data."""
        self._files.remove(f"{namespace}/{name}")

    def forget(self, namespace: str) -> None:
        self._files.remove(namespace)

    def ports(self, namespace: str) -> dict[str, int]:
        """By name of Service, or of another server."""
        try:
            written: dict[str, int] = json.loads(self._files.read(f"{namespace}/{_PORTS}", most=_LARGEST_FILE))
        except FileNotFoundError:
            return {}
        return written

    def port(self, namespace: str, name: str) -> int:
        """One that it has from now on. Raises LocalProcessError."""
        taken = self.ports(namespace)
        if name not in taken:
            self._note(namespace, taken | {name: free_port()})
        return self.ports(namespace)[name]

    def forget_ports(self, namespace: str, *names: str) -> None:
        """Whoever has them needs others."""
        self._note(namespace, {name: port for name, port in self.ports(namespace).items() if name not in names})

    def _note(self, namespace: str, ports: Mapping[str, int]) -> None:
        self.files_of(namespace).write(f"{namespace}/{_PORTS}", json.dumps(dict(ports), sort_keys=True).encode())
