"""Where processes of Shoots have their files, data and ports. What is here outlives the program.

<directory>/<namespace>/ports.json      ports of its Services
<directory>/<namespace>/<pod>/root      files of the container
<directory>/<namespace>/<etcd>/data     of an etcd
<directory>/<namespace>/seed            of the programs of a Shoot that is a seed
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from localprocesses.ports import free_port


class Places:
    """Args: directory: made when it is needed, readable for its owner alone."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def of_pod(self, namespace: str, name: str) -> Path:
        path = self._directory / namespace / name
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    def seed(self, namespace: str) -> Path:
        """It is there if the Shoot is a seed."""
        return self._directory / namespace / "seed"

    def namespaces(self) -> list[str]:
        """That have any."""
        return sorted(each.name for each in self._directory.iterdir()) if self._directory.is_dir() else []

    def forget_pod(self, namespace: str, name: str) -> None:
        """With its data."""
        shutil.rmtree(self._directory / namespace / name, ignore_errors=True)

    def forget(self, namespace: str) -> None:
        shutil.rmtree(self._directory / namespace, ignore_errors=True)

    def ports(self, namespace: str) -> dict[str, int]:
        """By name of Service, or of another server."""
        try:
            written: dict[str, int] = json.loads(self._ports_file(namespace).read_text())
        except FileNotFoundError:
            return {}
        return written

    def port(self, namespace: str, name: str) -> int:
        """One that it has from now on."""
        taken = self.ports(namespace)
        if name not in taken:
            self._note(namespace, taken | {name: free_port()})
        return self.ports(namespace)[name]

    def forget_ports(self, namespace: str, *names: str) -> None:
        """Whoever has them needs others."""
        self._note(namespace, {name: port for name, port in self.ports(namespace).items() if name not in names})

    def _note(self, namespace: str, ports: Mapping[str, int]) -> None:
        file = self._ports_file(namespace)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        new.write_text(json.dumps(dict(ports), sort_keys=True))
        new.replace(file)

    def _ports_file(self, namespace: str) -> Path:
        return self._directory / namespace / "ports.json"
