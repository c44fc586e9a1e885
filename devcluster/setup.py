"""Parts of a cluster that `up` starts: the control plane, a garden, and seeds.

They are noted in the directory of the cluster, so that a later `up` repairs all of them, and `status` misses them.
"""

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from devcluster.cluster import Cluster
from devcluster.garden.box import GardenBox
from devcluster.garden.seed import SHAPE_WITH_SHOOTS, SeedBox, is_ready, is_serving, offer_versions
from devcluster.program import Program
from localprocesses.components import APISERVER
from localprocesses.ended import reason
from localprocesses.local import wait_until
from localprocesses.state import directory, locked_with_notice, names_below, start_lock

_FILE = "up.json"
_READY_SECONDS = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Options of `up`.

    Attributes:
        release: that of Kubernetes; None for the default.
        seeds: options of `_ensure_seed`, by name of the Seed.
    """

    release: str | None = None
    nodes: int = 0
    garden: bool = False
    demo_data: bool = False
    authorizes: bool = True
    seeds: dict[str, dict[str, bool]] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str) -> Self:
        """Setup of the cluster of this name, if it was started."""
        try:
            found: dict[str, Any] = json.loads((directory(name) / _FILE).read_text())
        except (FileNotFoundError, ValueError):
            return cls()
        return cls(**found)

    def with_more(self, other: "Setup") -> "Setup":
        return Setup(
            release=other.release or self.release,
            nodes=max(self.nodes, other.nodes),
            garden=self.garden or other.garden,
            demo_data=self.demo_data or other.demo_data,
            authorizes=self.authorizes and other.authorizes,
            seeds=self.seeds | other.seeds,
        )

    def note(self, cluster: Cluster) -> None:
        (cluster.state / _FILE).write_text(json.dumps(dataclasses.asdict(self)))

    def ensure(self, cluster: Cluster) -> None:
        """Start the parts of a running cluster that do not run.

        Raises:
            LocalProcessError: a part does not become ready.
        """
        garden = GardenBox(cluster)
        if self.garden and not garden.is_installed(authorizes=self.authorizes):
            garden.install(authorizes=self.authorizes)
        if self.demo_data or self.seeds:
            garden.add_demo_data()
        if self.seeds:
            garden.start_controllers()
        for name, options in self.seeds.items():
            self._ensure_seed(cluster, name, **options)

    @staticmethod
    def _ensure_seed(garden: Cluster, name: str, *, in_garden: bool, shoots: bool) -> None:
        shape = SHAPE_WITH_SHOOTS if shoots else None
        cluster = garden if in_garden else garden.below(name, nodes=1, shape=shape).start()
        if is_serving(cluster, shoots=shoots):
            if shoots:
                offer_versions(garden)
            wait_until(lambda: is_ready(garden, name), what=f"the Seed {name} to be ready", within=_READY_SECONDS)
        else:
            SeedBox(garden, cluster, name, shoots=shoots).install()
        print(f"the Seed {name!r} is ready; the kubeconfig of its cluster: {cluster.kubeconfig}")

    def clusters(self, name: str) -> list[str]:
        """Names of the clusters of this setup, and of others below the first."""
        seeds = {f"{name}.{each}" for each, options in self.seeds.items() if not options["in_garden"]}
        return [name, *sorted(seeds | set(names_below(name)))]


@contextmanager
def changing(name: str) -> Iterator[None]:
    """Wait until no other `up` changes the cluster of this name, and let no other one do so meanwhile."""
    lock = start_lock(directory(f"{name}-up"))
    with locked_with_notice(lock, f"waiting for another process that starts the cluster {name!r}"):
        yield


@dataclass(frozen=True, slots=True)
class Standing:
    """State of a program; `problem` is empty if it serves."""

    program: str
    pid: int
    problem: str


def standings(cluster: Cluster) -> list[Standing]:
    """States of the programs of a running cluster."""
    return [
        Standing(name, state["pid"], _problem(cluster, name, state))
        for name, state in cluster.component_states().items()
    ]


def _problem(cluster: Cluster, name: str, state: dict[str, Any]) -> str:
    if state["exit"] is not None:
        return reason(cluster.state, name, state)
    serves = cluster.is_ready() if name == APISERVER else Program.is_serving(cluster, name)
    return "" if serves else f"runs as {state['pid']}, but is not ready"
