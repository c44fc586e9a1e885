"""The demo of a garden: a seed enters it, Shoots become clusters and seeds, and API and controllers do their work."""

import json
import shutil
import sys
import textwrap
from pathlib import Path
from typing import Any

import yaml

from devcluster.demo.clusters import ROSE, ClusterScenes
from devcluster.demo.controllers import ControllerScenes
from devcluster.demo.gardenlet import GardenletScenes
from devcluster.demo.seeds import SeedScenes
from devcluster.demo.stage import shown
from devcluster.garden import objects
from devcluster.garden.box import GardenBox
from devcluster.garden.seed import provide_helm
from gardener.api.garden import CLOUD_PROFILES, PROJECTS, SHOOTS
from kube.objects import Object, annotations, key, labels
from kube.paths import at
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS
from localprocesses import assets
from localprocesses.local import LocalProcessError

SHOOT, BROKEN = (Path(__file__).with_name(name) for name in ("shoot.yaml", "broken-shoot.yaml"))
EXPLAINED = ("spec.maintenance", "spec.maintenance.timeWindow")
_COLUMNS = 100


class GardenDemo(GardenletScenes, ClusterScenes, ControllerScenes, SeedScenes):
    def show(self) -> None:
        self._start_garden()
        self._start_controllers()
        seed = self._show_gardenlet()
        self._show_cluster(*seed)
        self._show_life_of_gardenlet(*seed)
        self._screen.heading("Now the API of the garden:")
        self._show_table("kubectl get projects", PROJECTS.path())
        self._show_table("kubectl get cloudprofiles", CLOUD_PROFILES.path())
        self._let_a_shoot_be_defaulted()
        self._let_a_shoot_be_refused()
        for path in EXPLAINED:
            self._explain(path)
        self._show_controllers()
        self._show_seeds()
        self._set_visible(True)
        self._show_around()

    def _start_garden(self) -> None:
        assets.demand_controllers(assets.find_or_build())  # has a progress display of its own
        provide_helm()
        garden = GardenBox(self._cluster)
        with self._screen.step("starting a control plane") as step:
            self._cluster.start()
            step.outcome = f"a Kubernetes control plane is up at {self._cluster.url}"
        with self._screen.step("making it a garden: definitions, roles, webhooks") as step:
            self._programs.append(garden.install())
            step.outcome = "it serves the garden API; webhooks check what definitions can't"
        with self._screen.step(f"applying {shown(objects.DEMO_DATA)}") as step:
            garden.add_demo_data()
            step.outcome = f"there is a cloud profile, and a project dev ({shown(objects.DEMO_DATA)})"

    def _let_a_shoot_be_defaulted(self) -> None:
        self._command(f"kubectl apply --filename={shown(SHOOT)}")
        given = _read(SHOOT)
        with self._screen.step("creating the Shoot", timed=False) as step:
            stored = self._api.create(SHOOTS.path(namespace=key(given).namespace), given)
            step.outcome = "the Shoot is created; the webhooks have filled in defaults:"
        self._screen.table(changes(given, stored))

    def _let_a_shoot_be_refused(self) -> None:
        self._command(f"kubectl apply --filename={shown(BROKEN)}")
        given = _read(BROKEN)
        status, answer = self._api.raw("POST", SHOOTS.path(namespace=key(given).namespace), given)
        if status not in {403, 422}:
            raise LocalProcessError(f"{shown(BROKEN)} was answered with {status}, not refused: {answer}")
        self._screen.show(refusal(json.loads(answer)))

    def _explain(self, path: str) -> None:
        self._command(f"kubectl explain shoot.{path}")
        name = f"{SHOOTS.plural}.{SHOOTS.group}"
        (version,) = self._api.get(CUSTOM_RESOURCE_DEFINITIONS.path(name=name))["spec"]["versions"]
        self._screen.show(explanation(version["schema"]["openAPIV3Schema"], path))

    def _show_around(self) -> None:
        logs = " ".join(str(program.log) for program in self._programs)
        self._screen.heading("To look around in another terminal:")
        missing = "" if shutil.which("kubectl") else "     # kubectl is not installed here"
        self._screen.show(f"""\
  export KUBECONFIG={self._cluster.kubeconfig}
  kubectl apply --filename={shown(ROSE)}     # a cluster again, of your own
  kubectl get seed rosebed --output=yaml
  kubectl get shoots,credentialsbindings --namespace=garden-dev{missing}
  kubectl explain shoot.spec --recursive
  kubectl annotate shoot tulip --namespace=garden-dev gardener.cloud/operation=reconcile
  kubectl delete shoot tulip --namespace=garden-dev     # it is refused: it is not confirmed
  kubectl scale managedseedset botany --namespace=garden --replicas=3     # what is not needed goes again
  kubectl gardener why shoot tulip --namespace=garden-dev     # where the plugin is installed
  kubectl auth can-i --list --namespace={self.project_namespace} --as=ann     # what an owner may do in her Project
  {sys.executable} -m webhooks garden validate {shown(BROKEN)}     # the same without a cluster
  tail -f {logs}""")


def _read(file: Path) -> Object:
    obj: Object = yaml.safe_load(file.read_bytes())
    return obj


_FIELDS = {
    "Kubernetes": ("spec", "kubernetes", "version"),
    "purpose": ("spec", "purpose"),
    "machine image": ("spec", "provider", "workers", 0, "machine", "image", "version"),
    "architecture": ("spec", "provider", "workers", 0, "machine", "architecture"),
    "nodes at once when rolling": ("spec", "provider", "workers", 0, "maxSurge"),
    "container runtime": ("spec", "provider", "workers", 0, "cri", "name"),
    "network of pods": ("spec", "networking", "pods"),
    "addresses of a node": ("spec", "kubernetes", "kubeControllerManager", "nodeCIDRMaskSize"),
    "maintenance from": ("spec", "maintenance", "timeWindow", "begin"),
    "updates of Kubernetes": ("spec", "maintenance", "autoUpdate", "kubernetesVersion"),
}


def changes(given: Object, stored: Object) -> list[list[str]]:
    """Table of changes in a Shoot."""
    rows = [[title, _value(given, path), _value(stored, path)] for title, path in _FIELDS.items()]
    rows = [row for row in rows if row[1] != row[2]]
    rows += [["label", "<none>", label] for label in sorted(labels(stored).keys() - labels(given).keys())]
    creator = annotations(stored).get("gardener.cloud/created-by", "<none>")
    return [["FIELD", "IN THE FILE", "IN THE CLUSTER"], *rows, ["created by", "<none>", creator]]


def _value(obj: Object, path: tuple[str | int, ...]) -> str:
    found: Any = obj
    for step in path:
        found = found[step] if isinstance(step, int) else at(found, step)
    return "<none>" if found is None else json.dumps(found).strip('"')


def refusal(status: Object) -> str:
    """Refusal in the format of kubectl."""
    details = status["details"]
    causes = details.get("causes")
    if not causes:
        return f"Error from server ({status['reason']}): {status['message']}"
    listed = "\n".join(f"* {cause['field']}: {cause['message']}" for cause in causes)
    return f'The {details["kind"]} "{details["name"]}" is invalid:\n{listed}'


def explanation(schema: Object, path: str) -> str:
    """Explanation in the format of kubectl, from the schema that the API server serves."""
    for name in path.split("."):
        schema = schema["properties"][name]
    lines = [_wrapped(schema["description"], "  "), ""]
    for name, field in schema.get("properties", {}).items():
        lines += [f"  {name}  <{field.get('type', 'any')}>", _wrapped(field.get("description", ""), "    "), ""]
    return "\n".join(lines).rstrip()


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(text, _COLUMNS, initial_indent=indent, subsequent_indent=indent)
