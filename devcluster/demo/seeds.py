"""The scenes of Seeds that follow their Shoots: scheduler, ManagedSeedSet and SeedAutoscaler. Gardenlets are played."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from devcluster.cluster import Cluster
from devcluster.demo.actors import Actors
from devcluster.demo.controllers import MEADOW
from devcluster.demo.gardenlet import ROSEBED
from devcluster.demo.screen import Screen
from devcluster.demo.stage import Demo, shown
from gardener import keys
from gardener.api.garden import MANAGED_SEED_SETS, SEED_AUTOSCALERS, SEEDS, SHOOTS
from gardener.garden.scheduling import reports_failure
from kube.objects import Object, key, mapping, text
from kube.paths import at
from kube.resources import EVENTS

SOIL, SET, AUTOSCALER, SHOOT = (
    Path(__file__).with_name(f"{name}.yaml") for name in ("soil", "botany", "botany-autoscaler", "shoot")
)
_GARDEN, _USERS = "garden", "garden-dev"
_NAME = "botany"
_FIRST, _SECOND = f"{_NAME}-0", f"{_NAME}-1"
_SLEEPING, _WAITING = "aster", "clover"
_FILLING = (_SLEEPING, "begonia")
_AHEAD = timedelta(seconds=3)
"""A schedule has to be there before its minute begins."""


class SeedScenes(Demo):
    def __init__(self, cluster: Cluster, screen: Screen) -> None:
        super().__init__(cluster, screen)
        self._gardenlets = Actors(cluster, idle=[MEADOW, ROSEBED])

    def stop(self) -> None:
        self._gardenlets.stop()
        super().stop()

    def _show_seeds(self) -> None:
        self._screen.heading(
            "Now Seeds that come and go with their Shoots; their gardenlets are played, all else is real:"
        )
        self._gardenlets.start()
        self._let_a_set_make_a_seed()
        self._let_shoots_fill_it()
        sleeps = self._set_a_schedule()
        self._let_a_shoot_wait()
        self._let_a_seed_come_for_it()
        self._let_the_seed_go()
        self._let_the_schedule_be_followed(sleeps)

    # --- scenes

    def _let_a_set_make_a_seed(self) -> None:
        self._create(SOIL)
        self._create(SET)
        with self._screen.step(f"waiting for the Seed {_FIRST}") as step:
            self._wait_for(f"the Seed {_FIRST}", lambda: self._has_ready(1), explain=self._what_the_set_says)
            step.outcome = f"the set has made a Shoot, and of it the Seed {_FIRST}"

    def _let_shoots_fill_it(self) -> None:
        for name in _FILLING:
            self._create_shoot(name)
        with self._screen.step("waiting for the scheduler", timed=False) as step:
            self._wait_for("the Shoots to have a Seed", lambda: all(self._seed_of(name) for name in _FILLING))
            step.outcome = f"{' and '.join(_FILLING)} are on {self._seed_of(_FILLING[0])}, which is full now"

    def _set_a_schedule(self) -> datetime:
        """Returns when the Shoot is to sleep: a schedule knows minutes, so it is a while until then."""
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
        self._wait_for("the scheduler to find none", lambda: reports_failure(self._get(SHOOTS, _WAITING, _USERS)))
        self._plugin(f"gardener why shoot {_WAITING} --namespace={_USERS}")

    def _let_a_seed_come_for_it(self) -> None:
        self._create(AUTOSCALER)
        with self._screen.step("waiting for the SeedAutoscaler") as step:
            self._wait_for("a larger set", lambda: self._rescaled(2) != "", explain=self._what_the_autoscaler_says)
            step.outcome = f"it has scaled the set: {self._rescaled(2)}"
        with self._screen.step(f"waiting for a Seed for {_WAITING}") as step:
            self._wait_for(
                "the Shoot to have a Seed", lambda: bool(self._seed_of(_WAITING)), explain=self._what_the_set_says
            )
            step.outcome = f"{_WAITING} is on {self._seed_of(_WAITING)}"
        self._wait_for("the set to be in its steady state", lambda: self._has_ready(2), explain=self._what_the_set_says)
        self._show_table("kubectl get seeds", SEEDS.path())

    def _let_the_seed_go(self) -> None:
        self._command(f"kubectl delete shoot {_WAITING} --namespace={_USERS}     # confirmed before")
        self._patch(SHOOTS, {"metadata": {"annotations": {keys.CONFIRM_DELETION: "true"}}}, _USERS, _WAITING)
        self._api.delete(SHOOTS.path(namespace=_USERS, name=_WAITING))
        with self._screen.step(f"waiting until {_SECOND} has been empty for a while") as step:
            self._wait_for("a smaller set", lambda: self._rescaled(1) != "", explain=self._what_the_autoscaler_says)
            step.outcome = f"the SeedAutoscaler has scaled the set: {self._rescaled(1)}"
        with self._screen.step("waiting for the Seed to go") as step:
            self._wait_for("the Seed to be gone", lambda: self._has_ready(1), explain=self._what_the_set_says)
            step.outcome = f"the Seed {_SECOND} has gone, and its Shoot; {_FIRST} is used, and stays"
        self._wait_for("the SeedAutoscaler to know", lambda: self._known_replicas() == 1)
        self._show_table(f"kubectl get seedautoscalers --namespace={_GARDEN}", SEED_AUTOSCALERS.path(namespace=_GARDEN))

    def _let_the_schedule_be_followed(self, sleeps: datetime) -> None:
        self._screen.heading(f"{_SLEEPING} is to sleep at {sleeps:%H:%M} UTC:")
        with self._screen.step("waiting for that time") as step:
            self._wait_for("the Shoot to sleep", self._is_put_to_sleep, seconds=150)
            moment = text(at(self._get(SHOOTS, _SLEEPING, _USERS), "status", "lastHibernationTriggerTime"))
            step.outcome = f"the controller manager has put it to sleep, at {moment}"

    # --- helpers

    def _is_put_to_sleep(self) -> bool:
        shoot = self._get(SHOOTS, _SLEEPING, _USERS)
        enabled = at(shoot, "spec", "hibernation", "enabled") is True
        return enabled and at(shoot, "status", "lastHibernationTriggerTime") is not None

    def _create_shoot(self, name: str) -> None:
        shoot: Object = yaml.safe_load(SHOOT.read_bytes())
        self._command(f"sed 's/{key(shoot).name}/{name}/' {shown(SHOOT)} | kubectl apply --filename=-")
        shoot["metadata"]["name"] = name
        self._api.create(SHOOTS.path(namespace=_USERS), shoot)

    def _seed_of(self, name: str) -> str:
        return text(at(self._get(SHOOTS, name, _USERS), "spec", "seedName"))

    def _has_ready(self, count: int) -> bool:
        status = mapping(self._get(MANAGED_SEED_SETS, _NAME, _GARDEN).get("status"))
        return [status.get(each) for each in ("replicas", "readyReplicas", "pendingReplica")] == [count, count, None]

    def _known_replicas(self) -> object:
        return at(self._get(SEED_AUTOSCALERS, _NAME, _GARDEN), "status", "currentReplicas")

    def _what_the_set_says(self) -> str:
        return f"the ManagedSeedSet says: {self._get(MANAGED_SEED_SETS, _NAME, _GARDEN).get('status')}"

    def _what_the_autoscaler_says(self) -> str:
        return f"the SeedAutoscaler says: {self._get(SEED_AUTOSCALERS, _NAME, _GARDEN).get('status')}"

    def _rescaled(self, size: int) -> str:
        """What an Event says about the change to this size; empty: there was none."""
        events = self._api.get(f"{EVENTS.path(namespace=_GARDEN)}?fieldSelector=reason=SuccessfulRescale")["items"]
        messages = (text(event["message"]) for event in events)
        return next((message for message in messages if message.startswith(f"New size: {size};")), "")
