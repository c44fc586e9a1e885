"""The scenes of a Shoot that is a cluster, from its creation to its end. Nothing is simulated."""

import os
import re
import shlex
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from devcluster.api import Api
from devcluster.cluster import Cluster
from devcluster.demo.screen import Screen
from devcluster.demo.stage import Demo
from devcluster.garden.seed import SeedBox, provider_state
from devcluster.processes import memory
from devcluster.program import Program
from gardener import keys
from gardener.api.garden import SHOOTS
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.garden.shoots import SUCCEEDED, is_current, last_operation
from kube.errors import NotFound, Unreachable
from kube.objects import Object, integer, key, text
from kube.paths import at
from kube.resources import CONFIG_MAPS, NAMESPACES, SERVICES
from localprocesses import supervisor
from localprocesses.components import APISERVER
from localprocesses.local import PATIENT, LocalProcessError

ROSE, FOUNTAIN = (Path(__file__).with_name(f"{name}.yaml") for name in ("rose", "fountain"))
_OF_EXTENSION = "local-extension"
_NAMESPACE, _NAME, _TECHNICAL_ID = "garden-dev", "rose", "shoot--dev--rose"
_IN_SHOOT = "--kubeconfig=$ROSE"
_SCHEDULER: Object = {
    "apiVersion": "scheduler.config.gardener.cloud/v1alpha1",
    "kind": "SchedulerConfiguration",
    "leaderElection": PATIENT,
}
_OPERATION_SECONDS = 300.0
_PAUSE_SECONDS = 0.1
_LOOK_SECONDS = 0.5
"""Seconds between two runs of a plugin."""


class ClusterScenes(Demo):
    def __init__(self, cluster: Cluster, screen: Screen) -> None:
        super().__init__(cluster, screen)
        self._rose = cluster.state / f"{_NAME}.kubeconfig"

    def _show_cluster(self, box: SeedBox, seed: Cluster) -> None:
        self._screen.heading("Now a Shoot. It becomes a cluster, whose programs are processes of this computer:")
        scheduler = Program("agent", self._cluster, _SCHEDULER, name="gardener-scheduler")
        with self._screen.step("starting the scheduler") as step:
            self._start(scheduler)
            step.outcome = f"the scheduler is ready; its log: {scheduler.log}"
        self._let_it_come_up(seed)
        shoot = self._let_it_be_used()
        self._let_an_extension_have_objects_in_it(seed, shoot)
        self._let_its_api_server_be_killed(seed, shoot)
        self._let_it_sleep_and_wake(seed, shoot)
        self._let_its_deletion_be_held(box, seed, shoot)

    # --- scenes

    def _let_it_come_up(self, seed: Cluster) -> None:
        self._create(ROSE)
        with self._screen.step("waiting for a Seed", timed=False) as step:
            self._wait_for("the Shoot to have a Seed", lambda: self._shoot()["spec"].get("seedName") is not None)
            step.outcome = f"the scheduler has chosen the Seed {self._shoot()['spec']['seedName']}"
        with self._screen.step("waiting for the cluster") as step:
            self._wait_for_operation("the cluster to come up")
            step.outcome = "the cluster is up"
        self._show_processes(seed)

    def _let_it_be_used(self) -> Api:
        self._command(f"export ROSE={self._rose}")
        request = f"kubectl gardener kubeconfig {_NAME} --namespace={_NAMESPACE} --admin"
        self._command(f"(umask 077; {request} > $ROSE)")
        self._rose.touch(mode=0o600)
        self._rose.write_text(self._plugin_output(request, with_errors=False))
        shoot = Api.of_kubeconfig(self._rose)
        self._show_table(f"kubectl {_IN_SHOOT} get namespaces", NAMESPACES.path(), api=shoot)
        return shoot

    def _let_an_extension_have_objects_in_it(self, seed: Cluster, shoot: Api) -> None:
        self._screen.heading("Gardener and an extension have objects in it, by ManagedResources in the Seed:")
        listed = f"kubectl --kubeconfig={seed.kubeconfig} get managedresources --namespace={_TECHNICAL_ID}"
        self._show_table(listed, MANAGED_RESOURCES.path(namespace=_TECHNICAL_ID), api=seed.api)
        path = CONFIG_MAPS.path(namespace="kube-system", name=_OF_EXTENSION)
        self._command(f"kubectl {_IN_SHOOT} delete configmap {_OF_EXTENSION} --namespace=kube-system")
        with self._screen.step("waiting for the Shoot's resource manager") as step:
            shoot.delete(path)
            self._wait_for("the ConfigMap to be back", lambda: shoot.raw("GET", path)[0] == 200)
            step.outcome = "it is back: the Shoot's resource manager has applied it again"

    def _let_its_api_server_be_killed(self, seed: Cluster, shoot: Api) -> None:
        self._screen.heading("Its API server is killed, and comes back:")
        killed = self._processes(seed)[APISERVER]
        self._command(f"kill -KILL {killed}     # the Shoot's API server")
        with self._screen.step("waiting for it to be back") as step:
            os.kill(killed, signal.SIGKILL)
            self._wait_for("the API server", lambda: self._processes(seed).get(APISERVER, killed) != killed)
            self._wait_for("an answer of it", lambda: _answers(shoot))
            step.outcome = f"it answers again, as process {self._processes(seed)[APISERVER]}"

    def _let_it_sleep_and_wake(self, seed: Cluster, shoot: Api) -> None:
        self._screen.heading("It sleeps, so that it costs nothing, and wakes with what was in it:")
        self._command(f"kubectl {_IN_SHOOT} create configmap diary --from-literal=today='planted a rose'")
        diary: Object = {"metadata": {"name": "diary"}, "data": {"today": "planted a rose"}}
        shoot.create(CONFIG_MAPS.path(namespace="default"), diary)
        self._hibernate(True)
        with self._screen.step("waiting for the cluster to sleep") as step:
            self._wait_for_operation("the cluster to sleep")
            left = self._processes(seed)
            if left:
                raise LocalProcessError(f"these run although the Shoot is hibernated: {left}")
            step.outcome = f"it sleeps: no process is left; its data are in {_data(seed)}"
        self._hibernate(False)
        with self._screen.step("waiting for the cluster to wake up") as step:
            self._wait_for_operation("the cluster to wake up")
            step.outcome = "it is awake, at the same address, with the same keys"
        listed = f"{CONFIG_MAPS.path(namespace='default')}?fieldSelector=metadata.name%3Ddiary"
        self._show_table(f"kubectl {_IN_SHOOT} get configmap diary", listed, api=shoot)

    def _let_its_deletion_be_held(self, box: SeedBox, seed: Cluster, shoot: Api) -> None:
        self._screen.heading("It is deleted, with something left in it that costs money elsewhere:")
        (fountain,) = self._create(FOUNTAIN, api=shoot, where=f"{_IN_SHOOT} ")
        self._command(f"kubectl annotate shoot {_NAME} --namespace={_NAMESPACE} {keys.CONFIRM_DELETION}=true")
        self._patch(SHOOTS, {"metadata": {"annotations": {keys.CONFIRM_DELETION: "true"}}}, _NAMESPACE, _NAME)
        self._command(f"kubectl delete shoot {_NAME} --namespace={_NAMESPACE}")
        self._api.delete(SHOOTS.path(namespace=_NAMESPACE, name=_NAME))
        with self._screen.step("waiting for what holds it") as step:
            self._wait_for("the deletion to wait", lambda: bool(self._held(box)), pause=_LOOK_SECONDS)
            step.outcome = "the deletion waits, and the gardenlet shows for what"
        self._command(f"{self._flow(box)} | grep Running | tr -s ' '")
        self._screen.show(self._held(box))
        self._screen.heading("Its controller has removed the load balancer, and so does not hold the Service any more:")
        released = '{"metadata":{"finalizers":null}}'
        name = key(fountain).name
        self._command(f"kubectl {_IN_SHOOT} patch service {name} --type=merge --patch={shlex.quote(released)}")
        shoot.patch(SERVICES.path(namespace="default", name=name), {"metadata": {"finalizers": None}})
        with self._screen.step("waiting for the Shoot to be gone") as step:
            self._wait_for_progress("the Shoot to be gone", self._is_shoot_gone)
            self._wait_for("its data to be gone", lambda: not _data(seed).exists())
            if seed.api.raw("GET", NAMESPACES.path(name=_TECHNICAL_ID))[0] != 404 or self._processes(seed):
                raise LocalProcessError(f"the Shoot is gone, but not all of it: {self._processes(seed)}")
            step.outcome = "the Shoot is gone: its processes, its data, and its namespace in the Seed, too"

    # --- helpers

    def _shoot(self) -> Object:
        return self._get(SHOOTS, _NAME, _NAMESPACE)

    def _is_shoot_gone(self) -> bool:
        return bool(self._api.raw("GET", SHOOTS.path(namespace=_NAMESPACE, name=_NAME))[0] == 404)

    def _wait_for_operation(self, what: str) -> None:
        """Wait until the gardenlet has applied the current spec."""

        def is_done() -> bool:
            shoot = self._shoot()
            asleep = at(shoot, "spec", "hibernation", "enabled") is True
            is_as_wanted = (at(shoot, "status", "hibernated") is True) == asleep
            return is_current(shoot) and is_as_wanted and last_operation(shoot).get("state") == SUCCEEDED

        self._wait_for_progress(what, is_done)

    def _wait_for_progress(self, what: str, is_done: Callable[[], bool]) -> None:
        """Wait, and show the progress of the operation meanwhile."""

        def look() -> bool:
            if is_done():
                return True
            with suppress(NotFound):  # it is gone by now
                last = last_operation(self._shoot())
                self._screen.progress(f"{integer(last.get('progress'))} %: {text(last.get('description'))}")
            return False

        self._wait_for(what, look, seconds=_OPERATION_SECONDS, pause=_PAUSE_SECONDS, explain=self._what_the_shoot_says)

    def _what_the_shoot_says(self) -> str:
        return f"the status of the Shoot is {self._shoot().get('status')}"

    def _hibernate(self, enabled: bool) -> None:
        patch: Object = {"spec": {"hibernation": {"enabled": enabled}}}
        written = f'{{"spec":{{"hibernation":{{"enabled":{str(enabled).lower()}}}}}}}'
        self._command(f"kubectl patch shoot {_NAME} --namespace={_NAMESPACE} --type=merge --patch='{written}'")
        self._patch(SHOOTS, patch, _NAMESPACE, _NAME)

    def _flow(self, box: SeedBox) -> str:
        gardenlet = box.gardenlet.metrics.removesuffix("/metrics")
        return f"kubectl gardener flow {_NAME} --namespace={_NAMESPACE} --gardenlet={gardenlet}"

    def _held(self, box: SeedBox) -> str:
        """Task of the running flow that waits for an object; empty if none does."""
        lines = self._plugin_output(self._flow(box)).splitlines()
        running = (re.sub(" +", " ", line) for line in lines if "Running" in line)
        return "\n".join(line for line in running if "waits for example.com" in line)

    def _show_processes(self, seed: Cluster) -> None:
        rows = [[name, str(pid), f"{memory(pid)} MiB"] for name, pid in sorted(self._processes(seed).items())]
        self._screen.table([["PROGRAM", "PROCESS", "MEMORY"], *rows])

    def _processes(self, seed: Cluster) -> dict[str, int]:
        """Process ids of the running components of the Shoot, by program."""
        found = supervisor.ask(_runner(seed), "status")["components"]
        return {
            name.removeprefix(f"{_TECHNICAL_ID}."): each["pid"] for name, each in found.items() if each["exit"] is None
        }


def _runner(seed: Cluster) -> Path:
    """Directory of the supervisor that has the processes of Shoots."""
    return provider_state(seed) / "run"


def _data(seed: Cluster) -> Path:
    return provider_state(seed) / "shoots" / _TECHNICAL_ID


def _answers(shoot: Api) -> bool:
    try:
        return shoot.raw("GET", "/readyz")[0] == 200
    except Unreachable:
        return False
