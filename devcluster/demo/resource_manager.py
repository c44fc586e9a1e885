"""The demo from top to bottom; the rest of the package implements its steps."""

import base64
import shutil
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from devcluster.cluster import Cluster
from devcluster.demo import admission
from devcluster.demo.admission import Webhooks
from devcluster.demo.bundles import GROUP, Bundle, bundles, custom_resource_definitions
from devcluster.demo.screen import Screen
from devcluster.demo.stage import Demo, shown
from devcluster.program import Program
from gardener import keys
from gardener.conditions import RESOURCES_APPLIED, RESOURCES_GOOD
from gardener.managed_resource.conditions import IGNORED
from kube.errors import ApiError, Forbidden
from kube.objects import Object, condition
from localprocesses import assets
from localprocesses.local import HOST, is_good
from localprocesses.ports import free_port

_LIFETIME = "10m"
_TOKEN_SECONDS = 600
_AGENT = "gardener-resource-manager"
_AGENT_SECRET = "agent-token"


class Identity:
    """User of the agent: a ServiceAccount whose token it requests and renews itself.

    It is made before the cluster runs, starts with a given token, and requests its own by a Secret like any other
    program. The task of a kubelet in a real cluster, writing the Secret's token to the file that the program reads, is
    done here.

    Args:
        namespace: namespace of the ServiceAccount and the Secret.
    """

    def __init__(self, cluster: Cluster, *, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._core = f"/api/v1/namespaces/{namespace}"
        self._written = ""

    @property
    def kubeconfig(self) -> Path:
        return self._cluster.state / "agent.kubeconfig"

    @property
    def _file(self) -> Path:
        return self._cluster.state / "agent-token"

    @property
    def _api(self) -> Any:
        return self._cluster.api

    def create(self) -> None:
        """Create the ServiceAccount with its rights and a first token, and the Secret that requests the next ones."""
        self._api.create(f"{self._core}/serviceaccounts", {"metadata": {"name": _AGENT}})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        subject = {"kind": "ServiceAccount", "name": _AGENT, "namespace": self._namespace}
        binding = {"metadata": {"name": _AGENT}, "roleRef": role, "subjects": [subject]}
        self._api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
        request = {"spec": {"expirationSeconds": _TOKEN_SECONDS}}
        self._write(self._api.create(f"{self._core}/serviceaccounts/{_AGENT}/token", request)["status"]["token"])
        document = yaml.safe_load(self._cluster.kubeconfig.read_text())
        for entry in document["users"]:
            entry["user"] = {"tokenFile": str(self._file)}
        self.kubeconfig.write_text(yaml.safe_dump(document))
        annotations = {
            keys.SERVICE_ACCOUNT_NAME: _AGENT,
            keys.SERVICE_ACCOUNT_NAMESPACE: self._namespace,
            keys.TOKEN_EXPIRATION_DURATION: _LIFETIME,
        }
        labels = {keys.PURPOSE: keys.PURPOSE_TOKEN_REQUESTOR}
        self._api.create(
            f"{self._core}/secrets", {"metadata": {"name": _AGENT_SECRET, "labels": labels, "annotations": annotations}}
        )

    def follow(self) -> bool:
        """Copy the token of the Secret to the file, and return whether it was new."""
        data = self._api.get(f"{self._core}/secrets/{_AGENT_SECRET}").get("data") or {}
        token = base64.b64decode(data.get("token") or "").decode()
        if not token or token == self._written:
            return False
        self._write(token)
        return True

    def ask_for_renewal(self) -> None:
        """Make the token due, as if most of its life were over."""
        long_ago = {keys.TOKEN_RENEW_TIMESTAMP: "2020-01-01T00:00:00Z"}
        self._api.patch(f"{self._core}/secrets/{_AGENT_SECRET}", {"metadata": {"annotations": long_ago}})

    def _write(self, token: str) -> None:
        self._file.touch(mode=0o600)
        self._file.write_text(token)
        self._written = token


_NAMESPACE = "garden"
_EVENTS = f"/api/v1/namespaces/{_NAMESPACE}/events"
_MANAGED_RESOURCES = f"{GROUP}/namespaces/{_NAMESPACE}/managedresources"


class ManualChange(NamedTuple):
    """Command of a user, with the resulting patch."""

    command: str
    path: str
    patch: Object
    field: tuple[str, str]


_MANUAL_CHANGES = (
    ManualChange(
        command="kubectl -n shop scale deployment storefront --replicas=0",
        path="/apis/apps/v1/namespaces/shop/deployments/storefront",
        patch={"spec": {"replicas": 0}},
        field=("spec", "replicas"),
    ),
    ManualChange(
        command="""kubectl -n shop patch configmap storefront --type=merge -p '{"data":{"greeting":"Go away!"}}'""",
        path="/api/v1/namespaces/shop/configmaps/storefront",
        patch={"data": {"greeting": "Go away!"}},
        field=("data", "greeting"),
    ),
)


_SHOP = f"shop -n {_NAMESPACE}"


class ResourceManagerDemo(Demo):
    nodes = 2

    def __init__(self, cluster: Cluster, screen: Screen) -> None:
        super().__init__(cluster, screen)
        self._identity = Identity(cluster, namespace=_NAMESPACE)
        port = free_port()
        self._status_page = {"bindAddress": HOST, "port": port}

    def show(self) -> None:
        self._start_control_plane()
        agent = self._start_agent()
        self._apply(list(bundles()))
        self._show_table("kubectl get managedresources --all-namespaces", f"{GROUP}/managedresources", "NAMESPACE")
        before = self._count_events()
        for change in _MANUAL_CHANGES:
            self._change_by_hand(change)
        # Events are written a moment after the change that they report.
        self._wait_for("an Event that reports the changes", lambda: self._count_events() > before)
        self._show_table(f"kubectl -n {_NAMESPACE} get events", _EVENTS)
        self._use_the_plugin()
        webhooks = self._start_webhooks()
        self._let_webhooks_change_a_deployment()
        self._let_webhooks_keep_a_definition()
        self._plugin(f"mr check -n {_NAMESPACE}")
        self._show_around(agent, webhooks)

    def _attend(self) -> None:
        if self._identity.follow():
            self._screen.show("The agent has renewed its token.")

    # --- scenes

    def _start_control_plane(self) -> None:
        assets.find_or_build()  # has a progress display of its own
        with self._screen.step("starting a control plane") as step:
            self._cluster.start()
            step.outcome = f"a Kubernetes control plane with {self.nodes} nodes is up at {self._cluster.url}"
        with self._screen.step("creating the CustomResourceDefinition of ManagedResources", timed=False) as step:
            for crd in custom_resource_definitions():
                self._api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
            self._wait_for("the kind ManagedResource to be served", self._is_kind_served)
            self._api.create("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
            step.outcome = "ManagedResource is a kind of this cluster"

    def _start_agent(self) -> Program:
        self._identity.create()
        config = {
            "leaderElection": {"resourceNamespace": _NAMESPACE},
            "controllers": {"tokenRequestor": {"enabled": True}},
        }
        servers = {"statusPage": self._status_page}
        agent = Program("agent", self._cluster, config, servers=servers, kubeconfig=self._identity.kubeconfig)
        with self._screen.step("starting the agent") as step:
            self._start(agent)
            step.outcome = f"the agent is ready; its log: {agent.log}"
        with self._screen.step("waiting for its status page", timed=False) as step:
            self._wait_for("the status page", lambda: is_good(self._page))
            step.outcome = f"the agent shows a status page, to be looked at in a browser: {self._page}"
        with self._screen.step("waiting for a token that the agent requests for itself", timed=False) as step:
            self._wait_for("the agent's own token", self._identity.follow)
            self._identity.ask_for_renewal()
            self._wait_for("the agent to renew its token", self._identity.follow)
            step.outcome = f"the agent works with a token of {_LIFETIME}, and has renewed it once already"
        return agent

    def _apply(self, wanted: list[Bundle]) -> None:
        for bundle in wanted:
            sizes = f"{len(bundle.text)} bytes of YAML are {len(bundle.compressed)} in a Secret"
            text = f"ManagedResource {_NAMESPACE}/{bundle.name} with {bundle.objects} objects ({sizes})"
            with self._screen.step(text, timed=False):
                self._api.create(f"/api/v1/namespaces/{_NAMESPACE}/secrets", bundle.secret())
                self._api.create(_MANAGED_RESOURCES, bundle.managed_resource())
        with self._screen.step("waiting until all of it is applied and healthy") as step:
            self._wait_for("all ManagedResources to be good", self._are_good, explain=self._what_is_bad)
            step.outcome = "all of it is applied, rolled out and healthy"

    def _change_by_hand(self, change: ManualChange) -> None:
        self._command(change.command)
        section, name = change.field
        before = self._api.get(change.path)[section][name]
        by_hand = self._api.patch(change.path, change.patch)[section][name]
        start = time.monotonic()
        with self._screen.step("waiting for it to be repaired", timed=False) as step:
            self._wait_for(
                f"{section}.{name} to be {before!r} again",
                lambda: self._api.get(change.path)[section][name] == before,
            )
            milliseconds = (time.monotonic() - start) * 1000
            step.outcome = (
                f"{section}.{name} was {before!r}, then {by_hand!r}, and was repaired after {milliseconds:.0f} ms"
            )

    def _use_the_plugin(self) -> None:
        """Try a change with the agent suspended meanwhile."""
        self._screen.heading("Now kubectl mr, the plugin:")
        self._plugin(f"mr tree {_SHOP}")
        self._plugin(f"mr suspend {_SHOP} --reason 'trying another greeting'")
        self._wait_for("the agent to leave it alone", self._is_shop_suspended)
        change = _MANUAL_CHANGES[-1]
        self._command(change.command)
        self._api.patch(change.path, change.patch)
        self._plugin(f"mr diff {_SHOP}", code=1)
        self._plugin(f"mr resume {_SHOP}")

    def _start_webhooks(self) -> Program:
        self._screen.heading("Now the webhooks:")
        webhooks = Webhooks(self._cluster, namespace=_NAMESPACE)
        with self._screen.step("making a CA and a certificate for the webhooks") as step:
            webhooks.make_certificates()
            step.outcome = f"a CA and a certificate for the webhooks are in Secrets of {_NAMESPACE}"
        with self._screen.step("starting the webhooks") as step:
            self._start(webhooks.program)
            step.outcome = f"the webhooks are ready; their log: {webhooks.program.log}"
        with self._screen.step("registering them at the API server") as step:
            webhooks.install()
            step.outcome = "the API server knows when to ask them, and whom to trust"
        return webhooks.program

    def _let_webhooks_change_a_deployment(self) -> None:
        file = admission.BAKERY
        self._command(f"kubectl apply --filename={shown(file)}")
        with self._screen.step("waiting for its pods", timed=False) as step:
            for collection, obj in admission.objects(file):
                if obj["kind"] == "Deployment":
                    self._wait_for("the API server to ask the webhooks", partial(self._grows, collection, obj))
                self._api.create(collection, obj)
            self._wait_for("the pods to run", self._are_pods_running)
            step.outcome = "its pods run; the webhooks have filled in defaults:"
        (pod, *_) = self._api.get(admission.PODS)["items"]
        self._screen.table(admission.changes(file, self._api.get(admission.DEPLOYMENT), pod))

    def _let_webhooks_keep_a_definition(self) -> None:
        """Show a definition whose deletion needs a confirmation."""
        ((collection, obj),) = admission.objects(admission.TREASURES)
        self._api.create(collection, obj)
        path, name = admission.TREASURE_DEFINITION, obj["metadata"]["name"]
        # It takes a moment until API servers call new webhooks.
        self._wait_for("the definition to be protected", lambda: self._refusal(f"{path}?dryRun=All") != "")
        self._command(f"kubectl delete crd {name}")
        self._screen.table([[f"Error from server (Forbidden): {self._refusal(path)}"]])
        self._command(f"kubectl annotate crd {name} {keys.CONFIRM_DELETION}=true && kubectl delete crd {name}")
        with self._screen.step("waiting for it to go", timed=False) as step:
            self._api.patch(path, {"metadata": {"annotations": {keys.CONFIRM_DELETION: "true"}}})
            self._api.delete(path)
            self._wait_for("it to be gone", lambda: self._api.raw("GET", path)[0] == 404)
            step.outcome = "it is gone, since the deletion was confirmed"

    def _show_around(self, agent: Program, webhooks: Program) -> None:
        self._screen.heading(f"To look around in a browser: {self._page}")
        self._screen.heading("To look around in another terminal:")
        missing = "" if shutil.which("kubectl") else "     # kubectl is not installed here"
        self._screen.show(f"""\
  export KUBECONFIG={self._cluster.kubeconfig}
  kubectl get managedresources --all-namespaces{missing}
  {sys.executable} -m kubectl.mr describe {_SHOP}     # or: kubectl mr, where it is installed
  kubectl -n shop get all,configmaps
  kubectl -n shop delete deployment storefront     # it comes back
  kubectl -n {_NAMESPACE} delete managedresource vouchers     # its objects go, too
  kubectl -n bakery get pods --output=yaml
  kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations
  curl -s {agent.metrics} {webhooks.metrics} | grep -v '^#'
  tail -f {agent.log} {webhooks.log}
  cat {agent.config_file} {webhooks.config_file}""")

    # --- helpers

    @property
    def _page(self) -> str:
        return f"http://{HOST}:{self._status_page['port']}/"

    def _is_shop_suspended(self) -> bool:
        applied = condition(self._api.get(f"{_MANAGED_RESOURCES}/shop"), RESOURCES_APPLIED) or {}
        return bool(applied.get("reason") == IGNORED)

    def _count_events(self) -> int:
        """Number of Events of ManagedResources."""
        events = self._api.get(_EVENTS)["items"]
        return sum(e.get("count") or 1 for e in events if e["involvedObject"]["kind"] == "ManagedResource")

    def _grows(self, collection: str, deployment: Object) -> bool:
        """Whether it would get more replicas than it has; false while the webhooks do not know its new namespace."""
        try:
            would_be = self._api.create(f"{collection}?dryRun=All", deployment)
        except ApiError:
            return False
        return bool(would_be["spec"]["replicas"] > deployment["spec"]["replicas"])

    def _are_pods_running(self) -> bool:
        status = self._api.get(admission.DEPLOYMENT).get("status", {})
        return bool(status.get("readyReplicas") == 2)

    def _refusal(self, path: str) -> str:
        """Reason why an object is not deleted; empty if it is."""
        try:
            self._api.delete(path)
        except Forbidden as error:
            return str(error)
        return ""

    def _is_kind_served(self) -> bool:
        status, _ = self._api.raw("GET", _MANAGED_RESOURCES)
        return bool(status == 200)

    def _are_good(self) -> bool:
        return not any(_bad_conditions(found) for found in self._managed_resources())

    def _what_is_bad(self) -> str:
        return "\n".join(
            f"  {found['metadata']['name']}: {text}"
            for found in self._managed_resources()
            for text in _bad_conditions(found)
        )

    def _managed_resources(self) -> list[Object]:
        items: list[Object] = self._api.get(_MANAGED_RESOURCES)["items"]
        return items


def _bad_conditions(managed_resource: Object) -> list[str]:
    """Texts about bad conditions, for users."""
    texts = []
    for kind, wanted in RESOURCES_GOOD.items():
        found = condition(managed_resource, kind) or {"status": "not there", "message": ""}
        if found["status"] != wanted:
            texts.append(f"{kind} is {found['status']}. {found['message']}".strip())
    return texts
