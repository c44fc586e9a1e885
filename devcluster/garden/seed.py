"""Makes a seed of a cluster: a gardenlet and the seed's resource manager, as processes that end with the cluster.

The gardenlet gets the same as from an operator: its rights in the seed by the manifests, its configuration file, and a
bootstrap token of the garden. It does everything else itself.
"""

import secrets
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from socket import gethostname

from agent.gardenlet.common.charts import program as helm
from components.registry import images_of_workers
from config import gardenlet
from config.gardenlet.schema import COMPONENTS, SHOOT_COMPONENTS
from devcluster.cluster import Cluster
from devcluster.garden import objects
from devcluster.garden.box import account_of
from devcluster.garden.objects import GARDENLET_ACCOUNT, NAMESPACE
from devcluster.program import Program
from gardener.api.garden import CLOUD_PROFILES, CONTROLLER_DEPLOYMENTS, CONTROLLER_INSTALLATIONS, SEEDS
from gardener.conditions import GARDENLET_READY, HEALTHY, INSTALLED, PROGRESSING, VALID
from gardener.garden.bootstrap_tokens import token_secret
from gardener.garden.seeds import LEASE_NAMESPACE, LOCAL_GARDENLET, BootstrapToken, bootstrap_token_id
from kube.clock import format_time, utc_now
from kube.errors import NotFound
from kube.objects import Key, Object, condition, key, mapping, spec
from kube.paths import at, mappings_at
from kube.resources import ENDPOINTS, LEASES, SECRETS
from localprocesses import assets, helm_program
from localprocesses.components import NODE_CIDR, POD_CIDR, Shape
from localprocesses.local import HOST, PATIENT, wait_until
from localprocesses.pki import kubeconfig, token_credentials
from localprocesses.versions import NEWEST, PATCHES
from localprovider.seeds.configuration import (
    API_SERVER,
    LOCAL_PROVIDER,
    RESOURCE_MANAGER,
    of_local_provider,
    of_resource_manager,
)

GARDENLET = "gardenlet"
CERTIFICATE_SECRET = "gardenlet-kubeconfig"
_BACKUP_SECRET = "backup-local"
"""Secret with the credentials for buckets; directories need none."""
_BOOTSTRAP_SECRET = f"{CERTIFICATE_SECRET}-bootstrap"
_READY_SECONDS = 900.0
_PROFILE = "local"
BUILT = "local.provider/kubernetes-versions"
"""Annotation of the CloudProfile: versions of Kubernetes whose programs are built, and others."""


SHAPE_WITH_SHOOTS = Shape(played=("deployment", "replicaset"))
"""Shape of a seed whose Deployments are processes of this computer."""


class SeedBox:
    """Seed with its gardenlet and resource manager.

    Args:
        seed: the cluster, which may be the garden's.
        name: name of the Seed.
        visible: whether the scheduler uses it.
        shoots: whether Shoots become clusters, which takes a cluster of the shape above.
    """

    def __init__(
        self, garden: Cluster, seed: Cluster, name: str, *, visible: bool = True, shoots: bool = False
    ) -> None:
        self._garden, self._seed, self.name = garden, seed, name
        account = account_of(seed, GARDENLET_ACCOUNT)
        self._config = configuration(name, visible=visible, shoots=shoots)
        self.gardenlet = Program("agent", seed, self._config, name=GARDENLET, kubeconfig=account)
        self.resource_manager = Program("agent", seed, of_resource_manager(), name=RESOURCE_MANAGER)
        provider = of_local_provider(provider_state(seed), buckets=garden.state / "buckets", is_shoot=False)
        self.provider = Program("localprovider", seed, provider, name=LOCAL_PROVIDER) if shoots else None

    def install(self) -> list[Program]:
        """Install the programs, and return when the Seed is ready.

        Raises:
            LocalProcessError: a program ends, or the time is over.
        """
        provide_helm()
        self.prepare()
        if self._seed.api.raw("GET", SECRETS.path(namespace=NAMESPACE, name=CERTIFICATE_SECRET))[0] != 200:
            self.give_bootstrap_token()
        programs = [*([self.provider] if self.provider else []), self.gardenlet, self.resource_manager]
        for each in programs:
            each.start()
        self.wait_until_ready()
        self._name_gardenlet()
        return programs

    def _name_gardenlet(self) -> None:
        """Name the address of the gardenlet for commands on this computer."""
        note = {LOCAL_GARDENLET: f"{gethostname()} {self.gardenlet.metrics.removesuffix('/metrics')}"}
        path = LEASES.path(namespace=LEASE_NAMESPACE, name=self.name)
        self._garden.api.patch(path, {"metadata": {"annotations": note}})

    def prepare(self) -> None:
        """Create the objects that a gardenlet needs."""
        for obj in objects.of_seed():
            self._seed.api.apply(objects.path(obj), obj)
        self._seed.api.apply(ENDPOINTS.path(namespace="default", name="kubernetes"), API_SERVER)
        if self.provider is not None:
            offer_versions(self._garden)
        objects.confirm(self._garden.api, self._config["seedConfig"])

    def give_bootstrap_token(self) -> str:
        """Give the gardenlet a token in a Secret of the seed. Return the name of the token's Secret in the garden."""
        identity, secret = bootstrap_token_id(Key(NAMESPACE, self.name)), secrets.token_hex(8)
        token = token_secret(
            identity,
            secret=secret,
            description=f"For the gardenlet of the Seed {self.name}.",
            extra_groups=BootstrapToken(self.name).extra_groups,
        )
        self._garden.api.apply(objects.path(token), token)
        user = token_credentials(f"{identity}.{secret}")
        text = kubeconfig(name="garden", url=self._garden.url, ca=self._garden.ca, user=user)
        given: Object = {
            **SECRETS.type_meta,
            "metadata": {"name": _BOOTSTRAP_SECRET, "namespace": NAMESPACE},
            "stringData": {"kubeconfig": text},
        }
        self._seed.api.apply(objects.path(given), given)
        return str(token["metadata"]["name"])

    def wait_until_ready(self, *, explain: Callable[[], str] | None = None) -> None:
        """Wait until the Seed reports that all is well.

        Raises:
            LocalProcessError: a program ends, or the time is over.
        """

        def is_well() -> bool:
            for program in (self.gardenlet, self.resource_manager):
                program.check()
            report_extensions(self._garden, self.name)
            return is_ready(self._garden, self.name)

        what = f"the Seed {self.name} to be ready"
        wait_until(is_well, what=what, within=_READY_SECONDS, pause=0.2, explain=explain or self._status)

    def _status(self) -> str:
        try:
            status = self._garden.api.get(SEEDS.path(name=self.name)).get("status")
        except NotFound:
            status = None
        return f"the status of the Seed is {status}; {self.gardenlet.log_end()}"


def provide_helm() -> None:
    """Build helm, with which gardenlets render charts, unless it exists; without Go, they report that it is missing."""
    try:
        helm.found()
    except helm.HelmError:
        if shutil.which("go"):
            helm_program.find_or_build()


def is_ready(garden: Cluster, name: str) -> bool:
    """Whether the Seed is reconciled, and its gardenlet renews its Lease."""
    try:
        seed = garden.api.get(SEEDS.path(name=name))
    except NotFound:
        return False
    ready = mapping(condition(seed, GARDENLET_READY)).get("status") == "True"
    return ready and at(seed, "status", "lastOperation", "state") == "Succeeded"


def is_serving(seed: Cluster, *, shoots: bool) -> bool:
    """Whether all programs of a seed serve."""
    programs = (GARDENLET, RESOURCE_MANAGER, *([LOCAL_PROVIDER] if shoots else []))
    return all(Program.is_serving(seed, each) for each in programs)


def offer_versions(garden: Cluster) -> None:
    """Offer Shoots a version of each minor version that the local provider runs, and state which ones are built."""
    path = CLOUD_PROFILES.path(name=_PROFILE)
    versions = mappings_at(garden.api.get(path), "spec", "kubernetes", "versions")
    names = [each["version"] for each in versions]
    minors = {each.rpartition(".")[0] for each in names}  # one of each may be supported
    more = [{"version": each, "classification": "supported"} for minor, each in PATCHES.items() if minor not in minors]
    offered = [*names, *(each["version"] for each in more)]
    built = [each for each in offered if assets.find(None if each == NEWEST else each)]
    missing = [each for each in offered if each not in built]
    stated = f"built: {', '.join(built)}; built when a Shoot first uses them, in 5 to 10 minutes: {', '.join(missing)}"
    remedy = "ahead of time: python -m devcluster build --kubernetes VERSION"
    meta = {"annotations": {BUILT: f"{stated}; {remedy}" if missing else f"built: {', '.join(built)}"}}
    garden.api.patch(path, {"metadata": meta, "spec": {"kubernetes": {"versions": [*versions, *more]}}})


def report_extensions(garden: Cluster, seed: str) -> None:
    """Report extensions without a chart as installed: those of the demo data run elsewhere."""
    for each in garden.api.get(CONTROLLER_INSTALLATIONS.path())["items"]:
        if at(spec(each), "seedRef", "name") != seed or condition(each, VALID) is not None:
            continue
        deployment = CONTROLLER_DEPLOYMENTS.path(name=str(at(spec(each), "deploymentRef", "name")))
        if "helm" not in garden.api.get(deployment):
            path = CONTROLLER_INSTALLATIONS.path(name=key(each).name)
            garden.api.patch(f"{path}/status", {"status": {"conditions": _conditions_of_extension(utc_now())}})


def _of_processes() -> Object:
    """Configuration for Shoots whose programs run as processes: nothing runs from the images."""
    return {
        "etcdServerNames": [HOST],
        "images": {
            "kubernetes": "local",
            "resourceManager": "resource-manager:local",
            "workers": {each: f"{each}:local" for each in images_of_workers(SHOOT_COMPONENTS)},
        },
        "monitoring": {"shoot": {"enabled": False}},
        "omit": {"seed": list(COMPONENTS), "shoots": list(SHOOT_COMPONENTS), "podWebhooks": True},
    }


def configuration(name: str, *, visible: bool, shoots: bool = False) -> Object:
    """Configuration of the gardenlet of a Seed on this computer."""
    component = gardenlet.COMPONENT
    return {
        "apiVersion": component.api_version,
        "kind": component.kind,
        "gardenClientConnection": {
            "bootstrapKubeconfig": {"name": _BOOTSTRAP_SECRET, "namespace": NAMESPACE},
            "kubeconfigSecret": {"name": CERTIFICATE_SECRET, "namespace": NAMESPACE},
        },
        "controllers": {
            "managedSeed": {"waitSyncPeriod": "2s"},
            **({} if shoots else {"shoot": {"enabled": False}}),
        },
        "leaderElection": PATIENT,
        "resources": {"capacity": {"shoots": "10"}},
        **_of_processes(),
        "seedConfig": {"metadata": {"name": name}, "spec": _spec(name, visible=visible, backups=shoots)},
    }


def _spec(name: str, *, visible: bool, backups: bool) -> Object:
    backup = {"provider": "local", "region": "local", "secretRef": {"name": _BACKUP_SECRET, "namespace": NAMESPACE}}
    return {
        **({"backup": backup} if backups else {}),
        "provider": {"type": "local", "region": "local", "zones": ["a"]},
        "networks": {
            "nodes": NODE_CIDR,
            "pods": POD_CIDR,
            "services": Shape().services,
            "shootDefaults": {"pods": "100.96.0.0/11", "services": "100.64.0.0/13"},
        },
        "dns": {"provider": {"type": "local", "secretRef": {"name": "internal-domain", "namespace": NAMESPACE}}},
        "ingress": {"domain": f"ingress.{name}.example.org", "controller": {"kind": "nginx"}},
        "settings": {"scheduling": {"visible": visible}},
    }


def _conditions_of_extension(now: datetime) -> list[Object]:
    moment = format_time(now)
    why = {"reason": "ExtensionOfThisComputer", "message": "There is nothing to install."}
    times = {"lastTransitionTime": moment, "lastUpdateTime": moment}
    statuses = {VALID: "True", INSTALLED: "True", HEALTHY: "True", PROGRESSING: "False"}
    return [{"type": name, "status": status, **why, **times} for name, status in statuses.items()]


def provider_state(seed: Cluster) -> Path:
    """Directory of the local provider."""
    return seed.state / "provider"
