"""The scenes of the controller manager: automatic changes in a garden."""

import asyncio
from pathlib import Path

from devcluster.cluster import Cluster
from devcluster.demo.stage import Demo
from devcluster.garden.gardenlets import Gardenlets
from devcluster.program import Program
from gardener import keys
from gardener.api.garden import CLOUD_PROFILES, PROJECTS, SEEDS, SHOOTS
from gardener.conditions import API_SERVER_AVAILABLE, GARDENLET_READY
from kube.objects import Object, condition, key, mapping, text
from kube.paths import at
from kube.resources import EVENTS, ROLE_BINDINGS, Resource
from kube.runtime.client import Client
from kube.runtime.connection import load_kubeconfig
from kube.runtime.transport import Transport
from localprocesses.local import PATIENT

PROJECT, SEED = (Path(__file__).with_name(name) for name in ("project.yaml", "seed.yaml"))
_TULIP = ("garden-dev", "tulip")
_NEWER = "1.30.6"
_MEADOW = "meadow"
_LOST_SECONDS, _SHOOTS_SECONDS = 5, 3
_CONFIG: Object = {
    "apiVersion": "controllermanager.config.gardener.cloud/v1alpha1",
    "kind": "ControllerManagerConfiguration",
    "leaderElection": PATIENT,
    "controllers": {
        "seed": {"monitorPeriod": f"{_LOST_SECONDS}s", "shootMonitorPeriod": f"{_SHOOTS_SECONDS}s"},
        "seedAutoscaler": {"enabled": True},
    },
}


class ControllerScenes(Demo):
    project_namespace = ""
    """Namespace of the Project that it creates."""

    def _start_controllers(self) -> None:
        manager = Program("agent", self._cluster, _CONFIG, name="gardener-controller-manager")
        with self._screen.step("starting the controller manager") as step:
            self._start(manager)
            step.outcome = f"the controller manager is ready; its log: {manager.log}"

    def _show_controllers(self) -> None:
        self._screen.heading("Now what the controller manager does:")
        self._let_a_project_come_into_being()
        self._let_a_shoot_be_maintained()
        self._let_a_deletion_wait_for_its_last_user()
        self._let_a_seed_be_lost()

    # --- scenes

    def _let_a_project_come_into_being(self) -> None:
        (project,) = self._create(PROJECT)
        name = key(project).name
        with self._screen.step("waiting for its namespace and its roles", timed=False) as step:
            self._wait_for("the Project to be ready", lambda: self._phase(name) == "Ready")
            namespace = text(self._get(PROJECTS, name)["spec"].get("namespace"))
            self.project_namespace = namespace
            step.outcome = f"the Project has the namespace {namespace}, and its members have their rights there"
        self._show_table(f"kubectl get rolebindings --namespace={namespace}", ROLE_BINDINGS.path(namespace=namespace))

    def _let_a_shoot_be_maintained(self) -> None:
        namespace, name = _TULIP
        versions = self._get(CLOUD_PROFILES, "local")["spec"]["kubernetes"]["versions"]
        newer = [*versions, {"version": _NEWER}]
        self._patch(CLOUD_PROFILES, {"spec": {"kubernetes": {"versions": newer}}}, "", "local")
        self._command(f"kubectl annotate shoot {name} --namespace={namespace} {keys.OPERATION}=maintain")
        self._patch(SHOOTS, {"metadata": {"annotations": {keys.OPERATION: "maintain"}}}, *_TULIP)
        with self._screen.step(f"waiting for Kubernetes {_NEWER}, which the profile has by now", timed=False) as step:
            self._wait_for(
                "the newer version",
                lambda: at(self._get(SHOOTS, name, namespace), "spec", "kubernetes", "version") == _NEWER,
            )
            description = text(at(self._get(SHOOTS, name, namespace), "status", "lastMaintenance", "description"))
            step.outcome = f"the Shoot was maintained: {description}"

    def _let_a_deletion_wait_for_its_last_user(self) -> None:
        profile, shoot = self._second_shoot()
        path = CLOUD_PROFILES.path(name=key(profile).name)
        self._wait_for("the profile to be protected", lambda: bool(self._api.get(path)["metadata"].get("finalizers")))
        self._command(f"kubectl delete cloudprofile {key(profile).name}")
        self._api.delete(path)
        self._wait_for("an Event with the reason why it stays", lambda: bool(self._event_about(key(profile).name)))
        self._screen.show(self._event_about(key(profile).name))
        where = key(shoot)
        self._command(f"kubectl delete shoot {where.name} --namespace={where.namespace}     # confirmed before")
        with self._screen.step("waiting for the profile to go") as step:
            self._patch(
                SHOOTS, {"metadata": {"annotations": {keys.CONFIRM_DELETION: "true"}}}, where.namespace, where.name
            )
            self._api.delete(SHOOTS.path_of(where))
            self._wait_for("the profile to be gone", lambda: self._api.raw("GET", path)[0] == 404)
            step.outcome = "its last user has gone, and so has the profile"

    def _let_a_seed_be_lost(self) -> None:
        namespace, name = _TULIP
        self._screen.heading(
            f"A Seed whose gardenlet is gone: for {_MEADOW} there is none, its last sign of life is made up."
        )
        self._create(SEED)
        asyncio.run(_report_once(self._cluster, _MEADOW))
        self._patch(SHOOTS, {"spec": {"seedName": _MEADOW}}, *_TULIP)
        with self._screen.step("waiting for what becomes of a Seed that reports once") as step:
            self._wait_for("the Seed to be lost", lambda: self._status(SEEDS, _MEADOW, GARDENLET_READY) == "Unknown")
            self._wait_for(
                "its Shoots to report it",
                lambda: self._status(SHOOTS, name, API_SERVER_AVAILABLE, namespace) == "Unknown",
            )
            found = mapping(condition(self._get(SHOOTS, name, namespace), API_SERVER_AVAILABLE))
            step.outcome = f"its Shoot reports it, too: APIServerAvailable is Unknown, {found.get('message')}"
        self._show_table("kubectl get seeds", SEEDS.path())

    # --- helpers

    def _second_shoot(self) -> tuple[Object, Object]:
        """Create a profile, and a Shoot that uses it."""
        profile = {
            **CLOUD_PROFILES.type_meta,
            "metadata": {"name": "annual"},
            "spec": self._get(CLOUD_PROFILES, "local")["spec"],
        }
        self._api.create(CLOUD_PROFILES.path(), profile)
        tulip = self._get(SHOOTS, _TULIP[1], _TULIP[0])["spec"]
        shoot = {
            **SHOOTS.type_meta,
            "metadata": {"name": "poppy", "namespace": _TULIP[0]},
            "spec": {
                **{field: tulip[field] for field in ("credentialsBindingName", "region", "networking", "provider")},
                "cloudProfile": {"kind": CLOUD_PROFILES.kind, "name": "annual"},
                "kubernetes": {"version": _NEWER},
            },
        }
        self._wait_for("the webhooks to know the profile", lambda: self._accepts(shoot))
        self._api.create(SHOOTS.path(namespace=_TULIP[0]), shoot)
        return profile, shoot

    def _accepts(self, shoot: Object) -> bool:
        status: int = self._api.raw("POST", f"{SHOOTS.path(namespace=_TULIP[0])}?dryRun=All", shoot)[0]
        return status == 201

    def _phase(self, project: str) -> str:
        return text(at(self._get(PROJECTS, project), "status", "phase"))

    def _status(self, resource: Resource, name: str, condition_type: str, namespace: str = "") -> str:
        return text(mapping(condition(self._get(resource, name, namespace), condition_type)).get("status"))

    def _event_about(self, name: str) -> str:
        """Message of the last Event about an object without a namespace."""
        events = self._api.get(EVENTS.path(namespace="default"))["items"]
        return next((text(each["message"]) for each in reversed(events) if each["involvedObject"]["name"] == name), "")


async def _report_once(garden: Cluster, seed: str) -> None:
    """Report like the gardenlet of the Seed."""
    async with Transport(load_kubeconfig(garden.kubeconfig)) as transport:
        await Gardenlets(Client(transport, user_agent="gardenlets"), seed).work()
