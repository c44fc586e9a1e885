"""Files, data and ports of the processes of Shoots. They outlive the program.

<directory>/<namespace>/ports.json      ports of its Services
<directory>/<namespace>/<pod>/root      files of the container
<directory>/<namespace>/<etcd>/data     data of an etcd
<directory>/<namespace>/seed            files of the programs of a Shoot that is a seed
"""

import json
from collections.abc import Mapping
from pathlib import Path

from localprocesses.confined import Confined
from localprocesses.local import LocalProcessError
from localprocesses.ports import free_port

MOST_SHOOTS = 100
"""Maximum number of Shoots on a seed; each has up to nine processes."""
_LARGEST_FILE = 1 << 20
_PORTS, SEED = "ports.json", "seed"


class Places:
    """Places of the processes of a seed.

    Args:
        directory: created when needed, readable only for its owner.
        most: maximum number of namespaces in it.
    """

    def __init__(self, directory: Path, *, most: int = MOST_SHOOTS) -> None:
        self._files, self._most = Confined(directory), most

    def of_pod(self, namespace: str, name: str) -> Path:
        """Return the directory of a pod, created if it is missing.

        Raises:
            LocalProcessError: there are too many namespaces.
            OutsideError: a name is not accepted.
        """
        return self.files_of(namespace).make(f"{namespace}/{name}")

    def files_of(self, namespace: str) -> Confined:
        """Return the files, in which paths of a namespace begin with its name.

        Raises:
            LocalProcessError: there are too many namespaces.
        """
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
        """Return the namespaces with local files."""
        try:
            return self._files.names()
        except FileNotFoundError:
            return []

    def forget_pod(self, namespace: str, name: str) -> None:
        """Remove the directory of a pod, with its data."""
        self._files.remove(f"{namespace}/{name}")

    def forget(self, namespace: str) -> None:
        self._files.remove(namespace)

    def ports(self, namespace: str) -> dict[str, int]:
        """Return ports by name of the Service, or of another server."""
        try:
            written: dict[str, int] = json.loads(self._files.read(f"{namespace}/{_PORTS}", most=_LARGEST_FILE))
        except FileNotFoundError:
            return {}
        return written

    def port(self, namespace: str, name: str) -> int:
        """Return the port of a server, assigned on first use.

        Raises:
            LocalProcessError: there are too many namespaces.
        """
        taken = self.ports(namespace)
        if name not in taken:
            self._note(namespace, taken | {name: free_port()})
        return self.ports(namespace)[name]

    def forget_ports(self, namespace: str, *names: str) -> None:
        """Drop assigned ports, so that their servers get new ones."""
        self._note(namespace, {name: port for name, port in self.ports(namespace).items() if name not in names})

    def _note(self, namespace: str, ports: Mapping[str, int]) -> None:
        self.files_of(namespace).write(f"{namespace}/{_PORTS}", json.dumps(dict(ports), sort_keys=True).encode())
