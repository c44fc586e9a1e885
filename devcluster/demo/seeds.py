"""The scenes of Seeds that follow their Shoots: each is a Shoot itself, with a gardenlet that creates Shoots."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from devcluster.demo.clusters import ROSE
from devcluster.demo.gardenlet import ROSEBED
from devcluster.demo.stage import Demo, shown
from devcluster.garden.seed import GARDENLET, provider_state, report_extensions
from devcluster.processes import memory, program, running_in
from gardener import keys
from gardener.api.garden import MANAGED_SEED_SETS, MANAGED_SEEDS, SEED_AUTOSCALERS, SEEDS, SHOOTS
from gardener.garden.scheduling import reports_failure
from gardener.garden.shoots import SUCCEEDED, is_current, last_operation
from kube.conditions import conditions_of
from kube.objects import Object, key, mapping, text
from kube.paths import at
from kube.resources import EVENTS, Resource
from localprocesses.ended import last_error

SOIL, SET, AUTOSCALER = (Path(__file__).with_name(f"{name}.yaml") for name in ("soil", "botany", "botany-autoscaler"))
_GARDEN, _USERS = "garden", "garden-dev"
_NAME = "botany"
_FIRST, _SECOND = f"{_NAME}-0", f"{_NAME}-1"
_SLEEPING, _WAITING = "aster", "clover"
_SECONDS, _PAUSE_SECONDS = 600.0, 0.5
_LOGS = f"shoots/*/seed/state/run/logs/{_GARDEN}.{GARDENLET}.log"
"""Logs of gardenlets that run in Shoots."""
_SAID = ("replicas", "readyReplicas", "pendingReplica", "currentReplicas", "lastOperation", "lastErrors")
_AHEAD = timedelta(seconds=3)
"""Time that a schedule has to be set before its minute begins."""


class SeedScenes(Demo):
    def _show_seeds(self) -> None:
        self._screen.heading("Now Seeds that come and go with their Shoots, and are Shoots themselves:")
        self._let_a_set_make_a_seed()
        self._let_a_shoot_fill_it()
        self._let_a_shoot_wait()
        self._let_a_seed_come_for_it()
        self._show_use()
        sleeps = self._set_a_schedule()
        self._let_the_seed_go()
        self._let_the_schedule_be_followed(sleeps)

    # --- scenes

    def _let_a_set_make_a_seed(self) -> None:
        self._create(SOIL)
        self._create(SET)
        with self._screen.step(f"waiting for the Seed {_FIRST}") as step:
            self._await(f"the Seed {_FIRST}", lambda: self._has_ready(1))
            step.outcome = f"the set has made a Shoot, and a gardenlet in it makes it the Seed {_FIRST}"
        self._show_table(f"kubectl get managedseeds --namespace={_GARDEN}", MANAGED_SEEDS.path(namespace=_GARDEN))

    def _let_a_shoot_fill_it(self) -> None:
        self._create_shoot(_SLEEPING)
        with self._screen.step("waiting for the scheduler", timed=False) as step:
            self._await("the Shoot to have a Seed", lambda: bool(self._seed_of(_SLEEPING)))
            step.outcome = f"{_SLEEPING} is on {self._seed_of(_SLEEPING)}, which is full now"

    def _let_it_come_up_in_a_shoot(self, name: str) -> None:
        with self._screen.step(f"waiting for {name}") as step:
            self._await(f"the Shoot {name}", lambda: self._is_up(name))
            step.outcome = f"{name} is a cluster, whose control plane is in the Shoot {self._seed_of(name)}"

    def _set_a_schedule(self) -> datetime:
        """Set a schedule, and return its time: schedules have minutes, so it is a while until then."""
        sleeps = (datetime.now(UTC) + _AHEAD).replace(second=0, microsecond=0) + timedelta(minutes=1)
        patch = {"spec": {"hibernation": {"schedules": [{"start": f"{sleeps.minute} {sleeps.hour} * * *"}]}}}
        self._command(
            f"kubectl patch shoot {_SLEEPING} --namespace={_USERS} --type=merge --patch='{json.dumps(patch)}'"
        )
        self._patch(SHOOTS, patch, _USERS, _SLEEPING)
        self._screen.show(f"{_SLEEPING} is to sleep at {sleeps:%H:%M} UTC; see below.")
        return sleeps

    def _let_a_shoot_wait(self) -> None:
        self._create_shoot(_WAITING)
        self._await("the scheduler to find none", lambda: reports_failure(self._get(SHOOTS, _WAITING, _USERS)))
        self._plugin(f"gardener why shoot {_WAITING} --namespace={_USERS}")

    def _let_a_seed_come_for_it(self) -> None:
        self._create(AUTOSCALER)
        with self._screen.step("waiting for the SeedAutoscaler") as step:
            self._await("a larger set", lambda: self._rescaled(2) != "")
            step.outcome = f"it has scaled the set: {self._rescaled(2)}"
        self._let_it_come_up_in_a_shoot(_SLEEPING)
        with self._screen.step(f"waiting for a Seed for {_WAITING}") as step:
            self._await("the Shoot to have a Seed", lambda: bool(self._seed_of(_WAITING)))
            step.outcome = f"{_WAITING} is on {self._seed_of(_WAITING)}"
        self._let_it_come_up_in_a_shoot(_WAITING)
        self._await("the set to be in its steady state", lambda: self._has_ready(2))
        self._show_table("kubectl get seeds", SEEDS.path())

    def _show_use(self) -> None:
        """Show the number of processes and their memory, by program."""
        self._screen.heading("All of this on this computer:")
        used = Counter[str]()
        running = running_in(self._cluster.state)
        for pid, command in running.items():
            used[program(command)] += memory(pid)
        numbers = Counter(map(program, running.values()))
        rows = [[each, str(numbers[each]), f"{mib} MiB"] for each, mib in used.most_common()]
        whole = ["all", str(len(running)), f"{used.total()} MiB"]
        self._screen.table([["PROGRAM", "PROCESSES", "MEMORY"], *rows, whole])

    def _let_the_seed_go(self) -> None:
        self._command(f"kubectl delete shoot {_WAITING} --namespace={_USERS}     # confirmed before")
        self._patch(SHOOTS, {"metadata": {"annotations": {keys.CONFIRM_DELETION: "true"}}}, _USERS, _WAITING)
        self._api.delete(SHOOTS.path(namespace=_USERS, name=_WAITING))
        with self._screen.step(f"waiting until {_SECOND} has been empty for a while") as step:
            self._await("a smaller set", lambda: self._rescaled(1) != "")
            step.outcome = f"the SeedAutoscaler has scaled the set: {self._rescaled(1)}"
        with self._screen.step("waiting for the Seed to go") as step:
            self._await("the Seed to be gone", lambda: self._has_ready(1))
            step.outcome = f"the Seed {_SECOND} has gone, and its Shoot; {_FIRST} is used, and stays"
        self._await("the SeedAutoscaler to know", lambda: self._known_replicas() == 1)
        self._show_table(f"kubectl get seedautoscalers --namespace={_GARDEN}", SEED_AUTOSCALERS.path(namespace=_GARDEN))

    def _let_the_schedule_be_followed(self, sleeps: datetime) -> None:
        self._screen.heading(f"{_SLEEPING} is to sleep at {sleeps:%H:%M} UTC:")
        with self._screen.step("waiting for that time") as step:
            self._await("the Shoot to sleep", self._is_asleep)
            moment = text(at(self._get(SHOOTS, _SLEEPING, _USERS), "status", "lastHibernationTriggerTime"))
            step.outcome = f"{_SLEEPING} sleeps: the controller manager has requested it, at {moment}"

    # --- helpers

    def _is_asleep(self) -> bool:
        status = mapping(self._get(SHOOTS, _SLEEPING, _USERS).get("status"))
        return status.get("hibernated") is True and status.get("lastHibernationTriggerTime") is not None

    def _create_shoot(self, name: str) -> None:
        shoot: Object = yaml.safe_load(ROSE.read_bytes())
        self._command(f"sed 's/{key(shoot).name}/{name}/' {shown(ROSE)} | kubectl apply --filename=-")
        shoot["metadata"]["name"] = name
        self._api.create(SHOOTS.path(namespace=_USERS), shoot)

    def _await(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait longer than the frame, as Seeds need, and explain a failure with all observed states."""

        def look() -> bool:
            for seed in (_FIRST, _SECOND):
                report_extensions(self._cluster, seed)
            return holds()

        self._wait_for(what, look, seconds=_SECONDS, pause=_PAUSE_SECONDS, explain=self._what_is_seen)

    def _is_up(self, name: str) -> bool:
        shoot = self._get(SHOOTS, name, _USERS)
        return is_current(shoot) and last_operation(shoot).get("state") == SUCCEEDED

    def _seed_of(self, name: str) -> str:
        return text(at(self._get(SHOOTS, name, _USERS), "spec", "seedName"))

    def _has_ready(self, count: int) -> bool:
        status = mapping(self._get(MANAGED_SEED_SETS, _NAME, _GARDEN).get("status"))
        return [status.get(each) for each in ("replicas", "readyReplicas", "pendingReplica")] == [count, count, None]

    def _known_replicas(self) -> object:
        return at(self._get(SEED_AUTOSCALERS, _NAME, _GARDEN), "status", "currentReplicas")

    def _what_is_seen(self) -> str:
        """States of all objects that take part, and the logs of gardenlets in Shoots."""
        kinds = (SEED_AUTOSCALERS, MANAGED_SEED_SETS, MANAGED_SEEDS, SHOOTS, SEEDS)
        reported = [_standing(kind, each) for kind in kinds for each in self._api.get(kind.path())["items"]]
        logs = sorted(provider_state(self._cluster.below(ROSEBED)).glob(_LOGS))
        return "\n".join([*reported, *(f"{log}:\n{last_error(log)}" for log in logs)])

    def _rescaled(self, size: int) -> str:
        """Message of the Event about the change to this size; empty if there was none."""
        events = self._api.get(f"{EVENTS.path(namespace=_GARDEN)}?fieldSelector=reason=SuccessfulRescale")["items"]
        messages = (text(event["message"]) for event in events)
        return next((message for message in messages if message.startswith(f"New size: {size};")), "")


def _standing(kind: Resource, obj: Object) -> str:
    """State of an object, without good conditions."""
    status = mapping(obj.get("status"))
    reported = {each: status[each] for each in _SAID if status.get(each)}
    bad = {text(each["type"]): each.get("message") for each in conditions_of(obj) if each.get("status") != "True"}
    return f"{kind.kind} {key(obj)}: {json.dumps(reported | bad)}"
