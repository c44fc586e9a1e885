"""Objects move at random between ManagedResources of three agents, which are killed at random: none is recreated.

Two agents have classes of their own in one namespace, the third one has another namespace. `HAND_OVERS=100` in the
environment sets how often something moves, `HAND_OVER_SEED` how.
"""

import os
import time
import uuid
from collections.abc import Callable
from random import Random

from devcluster.cluster import Cluster
from kit.objects import config_map
from kit.rig import Rig
from kit.shards import ShardAgent, sharing
from kube.objects import Object, annotations, uid

_MOVES = int(os.environ.get("HAND_OVERS", "4"))
_SEED = int(os.environ.get("HAND_OVER_SEED", "1"))
_SECONDS = 300.0
_OBJECTS = [f"o-{number}" for number in range(5)]


class Moves:
    """Which ManagedResource is to have which object; they are called a, b and c, as their agents."""

    def __init__(self, rigs: dict[str, Rig], dice: Random) -> None:
        self.rigs = rigs
        self.place = rigs["a"].namespace
        self.held = {name: dice.choice("abc") for name in _OBJECTS}
        self.kills = 0
        self._dice = dice
        self._next_kill = time.monotonic() + dice.uniform(0, 3)

    def write(self, name: str, *more: str) -> None:
        """The Secret, with the objects that it is to have, and more."""
        names = [*(each for each, holder in self.held.items() if holder == name), *more]
        objects = [config_map(each) for each in names]
        for obj in objects:
            obj["metadata"]["namespace"] = self.place
        self.rigs[name].write_secret(name, config_map(f"own-{name}"), *objects)

    def live(self, obj: str) -> Object:
        return self.rigs["a"].get("ConfigMap", obj)

    def origin(self, name: str) -> str:
        return f"{self.rigs[name].namespace}/{name}"

    def is_claimed(self, obj: str, name: str) -> bool:
        return self.origin(name) in self._notes(obj, "origin", "claimed-by")

    def is_held(self, obj: str, name: str) -> bool:
        return self._notes(obj, "origin", "claimed-by") == [self.origin(name), None]

    def _notes(self, obj: str, *names: str) -> list[str | None]:
        return [annotations(self.live(obj)).get(f"resources.gardener.cloud/{name}") for name in names]

    def until(self, is_so: Callable[[str, str], bool], obj: str, name: str) -> None:
        deadline = time.monotonic() + _SECONDS
        while not is_so(obj, name):
            assert time.monotonic() < deadline, (
                f"{obj} never came to {name}: {self._notes(obj, 'origin', 'claimed-by')}"
            )
            self.kill()
            time.sleep(0.02)

    def kill(self) -> None:
        """From time to time."""
        if time.monotonic() < self._next_kill:
            return
        process = self.rigs[self._dice.choice("abc")].process
        process.kill()
        process.start()
        self.kills += 1
        self._next_kill = time.monotonic() + self._dice.uniform(0.5, 8)

    def move(self, obj: str, name: str) -> None:
        former, self.held[obj] = self.held[obj], name
        if {former, name} != {"b", "c"} and self._dice.random() < 0.5:
            # The former one sees what the other requests: none has to wait, and the order does not matter.
            with self.rigs[former].asleep():  # half a second between the two would be too much
                for each in self._dice.sample((former, name), 2):
                    self.write(each)
        else:
            self.write(name)
            self.until(self.is_claimed, obj, name)
            self.write(former)
        self.until(self.is_held, obj, name)


def test_no_object_is_recreated_if_agents_are_killed(cluster: Cluster, namespace: str) -> None:
    other, mark = f"{namespace}-b", uuid.uuid4().hex[:8]
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": other}})
    agents = [
        (
            ShardAgent(
                cluster,
                name=f"{mark}-{letter}",
                lease_namespace=namespace,
                resource_class=resource_class,
                managed_by=mark,
                namespaces=[place],
                leader_election=False,
            ),
            place,
        )
        for letter, resource_class, place in (
            ("a", f"c{mark}-x", namespace),
            ("b", f"c{mark}-y", namespace),
            ("c", f"c{mark}-x", other),
        )
    ]
    dice = Random(_SEED)
    with sharing(cluster, agents) as shards:
        moves = Moves({letter: shard.rig for letter, shard in zip("abc", shards, strict=True)}, dice)
        for name, rig in moves.rigs.items():
            moves.write(name)
            rig.write_managed_resource(name, secretRefs=[{"name": name}])
        for name, rig in moves.rigs.items():
            rig.until_applied(name)
        before = {obj: uid(moves.live(obj)) for obj in _OBJECTS}
        for _ in range(_MOVES):
            obj = dice.choice(_OBJECTS)
            moves.move(obj, dice.choice([name for name in "abc" if name != moves.held[obj]]))
            assert {obj: uid(moves.live(obj)) for obj in _OBJECTS} == before
        print(f"HAND-OVERS: {_MOVES} moves, {moves.kills} kills")
        for name, rig in moves.rigs.items():
            wanted = {f"own-{name}", *(obj for obj, holder in moves.held.items() if holder == name)}
            rig.until(lambda r=rig, n=name, w=wanted: r.listed(n) == w, "its list to be right")  # type: ignore[misc]
            rig.until_applied(name)
            rig.delete("ManagedResource", name)
        for name, rig in moves.rigs.items():
            rig.until_gone("ManagedResource", name)
        assert [obj for obj in _OBJECTS if moves.rigs["a"].find("ConfigMap", obj)] == []
    cluster.api.delete(f"/api/v1/namespaces/{other}")
