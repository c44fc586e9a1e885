"""The demo from top to bottom. Whoever reads this knows what it does; the rest of the package is how."""

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from devcluster import assets
from devcluster.cluster import Cluster
from devcluster.demo import admission, identity
from devcluster.demo.admission import Webhooks
from devcluster.demo.bundles import GROUP, Bundle, bundles, custom_resource_definitions
from devcluster.demo.identity import Identity
from devcluster.demo.program import Program
from devcluster.demo.screen import Screen
from devcluster.errors import DevclusterError
from devcluster.local import wait_until
from gardener import keys
from kube.errors import ApiError, Forbidden
from kube.objects import Object, condition

_NODES = 2
_NAMESPACE = "garden"
_EVENTS = f"/api/v1/namespaces/{_NAMESPACE}/events"
_MANAGED_RESOURCES = f"{GROUP}/namespaces/{_NAMESPACE}/managedresources"
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_PATIENCE_SECONDS = 60.0
_GOOD = {"ResourcesApplied": "True", "ResourcesHealthy": "True", "ResourcesProgressing": "False"}


class ManualChange(NamedTuple):
    """Somebody's command, and what it amounts to."""

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


def run(*, name: str, once: bool) -> None:
    """Shows everything, then stays until Ctrl-C, or not with `once`. Nothing is left running in any case.

    Raises DevclusterError when something goes wrong, KeyboardInterrupt when it is interrupted though `once`.
    """
    if Cluster.running(name):
        raise DevclusterError(f"a demo runs as {name!r} already; end it with Ctrl-C, or choose another --name")
    try:
        # Both mean the same here; they are set since a shell lets its background jobs ignore Ctrl-C.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        with _stage(name) as demo:
            demo.show()
            if not once:
                demo.stay()
    except KeyboardInterrupt:
        if once:
            raise


@contextmanager
def _stage(name: str) -> Iterator["Demo"]:
    """Clears everything away at the end, whatever happened."""
    demo = Demo(Cluster(name=name, nodes=_NODES), Screen())
    try:
        yield demo
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        demo.stop()


class Demo:
    def __init__(self, cluster: Cluster, screen: Screen) -> None:
        self._cluster = cluster
        self._screen = screen
        self._programs: list[Program] = []
        self._identity = Identity(cluster, namespace=_NAMESPACE)

    def show(self) -> None:
        self._start_control_plane()
        agent = self._start_agent()
        self._apply(list(bundles()))
        self._show_table("kubectl get managedresources --all-namespaces", f"{GROUP}/managedresources", "NAMESPACE")
        told = self._told()
        for change in _MANUAL_CHANGES:
            self._change_by_hand(change)
        # Events are written a moment after the change that they tell of.
        self._wait_for("an Event that tells of the changes", lambda: self._told() > told)
        self._show_table(f"kubectl -n {_NAMESPACE} get events", _EVENTS)
        webhooks = self._start_webhooks()
        self._let_webhooks_change_a_deployment()
        self._let_webhooks_keep_a_definition()
        self._show_around(agent, webhooks)

    def stay(self) -> None:
        """Returns never; raises DevclusterError when a program ends."""
        self._screen.heading("Everything stays up until Ctrl-C.")
        while True:
            for program in self._programs:
                program.check()
            if self._identity.follow():
                self._screen.show("The agent has renewed its token.")
            time.sleep(1)

    def stop(self) -> None:
        with self._screen.step("stopping everything", timed=False) as step:
            for program in self._programs:
                program.stop()
            self._cluster.stop()
            step.outcome = "everything is stopped, nothing is left"

    # --- scenes

    def _start_control_plane(self) -> None:
        assets.find_or_build()  # has a progress display of its own
        with self._screen.step("starting a control plane") as step:
            self._cluster.start()
            step.outcome = f"a Kubernetes control plane with {_NODES} nodes is up at {self._cluster.url}"
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
        agent = Program("agent", self._cluster, config, kubeconfig=self._identity.kubeconfig)
        with self._screen.step("starting the agent") as step:
            self._start(agent)
            step.outcome = f"the agent is ready; its log: {agent.log}"
        with self._screen.step("waiting for a token that the agent requests for itself", timed=False) as step:
            self._wait_for("the agent's own token", self._identity.follow)
            self._identity.ask_for_renewal()
            self._wait_for("the agent to renew its token", self._identity.follow)
            step.outcome = f"the agent works with a token of {identity.LIFETIME}, and has renewed it once already"
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
        with self._screen.step("waiting for it to be put right", timed=False) as step:
            self._wait_for(
                f"{section}.{name} to be {before!r} again",
                lambda: self._api.get(change.path)[section][name] == before,
            )
            milliseconds = (time.monotonic() - start) * 1000
            step.outcome = (
                f"{section}.{name} was {before!r}, then {by_hand!r}, and was put right after {milliseconds:.0f} ms"
            )

    def _start_webhooks(self) -> Program:
        self._screen.heading("Now the webhooks:")
        webhooks = Webhooks(self._cluster, namespace=_NAMESPACE)
        with self._screen.step("making a CA and a certificate for the webhooks") as step:
            webhooks.make_certificates()
            step.outcome = f"a CA and a certificate for the webhooks are in Secrets of {_NAMESPACE}"
        with self._screen.step("starting the webhooks") as step:
            self._start(webhooks.program)
            step.outcome = f"the webhooks are ready; their log: {webhooks.program.log}"
        with self._screen.step("telling the API server when to ask them") as step:
            webhooks.install()
            step.outcome = "the API server knows when to ask them, and whom to trust"
        return webhooks.program

    def _let_webhooks_change_a_deployment(self) -> None:
        file = admission.BAKERY
        self._command(f"kubectl apply --filename={_shown(file)}")
        with self._screen.step("waiting for its pods", timed=False) as step:
            for collection, obj in admission.objects(file):
                if obj["kind"] == "Deployment":
                    self._wait_for("the API server to ask the webhooks", partial(self._grows, collection, obj))
                self._api.create(collection, obj)
            self._wait_for("the pods to run", self._are_pods_running)
            step.outcome = "its pods run; the webhooks have filled in what the file does not say:"
        (pod, *_) = self._api.get(admission.PODS)["items"]
        self._screen.table(admission.changes(file, self._api.get(admission.DEPLOYMENT), pod))

    def _let_webhooks_keep_a_definition(self) -> None:
        """One that is deleted only after somebody has confirmed that it is meant."""
        ((collection, obj),) = admission.objects(admission.TREASURES)
        self._api.create(collection, obj)
        path, name = admission.TREASURE_DEFINITION, obj["metadata"]["name"]
        # It takes a moment until API servers ask new webhooks.
        self._wait_for("the definition to be protected", lambda: self._refusal(f"{path}?dryRun=All") != "")
        self._command(f"kubectl delete crd {name}")
        self._screen.table([[f"Error from server (Forbidden): {self._refusal(path)}"]])
        self._command(f"kubectl annotate crd {name} {keys.CONFIRM_DELETION}=true && kubectl delete crd {name}")
        with self._screen.step("waiting for it to go", timed=False) as step:
            self._api.patch(path, {"metadata": {"annotations": {keys.CONFIRM_DELETION: "true"}}})
            self._api.delete(path)
            self._wait_for("it to be gone", lambda: self._api.raw("GET", path)[0] == 404)
            step.outcome = "it is gone, since somebody has confirmed it"

    def _show_around(self, agent: Program, webhooks: Program) -> None:
        self._screen.heading("To look around in another terminal:")
        missing = "" if shutil.which("kubectl") else "     # kubectl is not installed here"
        self._screen.show(f"""\
  export KUBECONFIG={self._cluster.kubeconfig}
  kubectl get managedresources --all-namespaces{missing}
  kubectl -n {_NAMESPACE} get managedresource shop --output=yaml
  kubectl -n shop get all,configmaps
  kubectl -n shop delete deployment storefront     # it comes back
  kubectl -n {_NAMESPACE} delete managedresource vouchers     # its objects go, too
  kubectl -n bakery get pods --output=yaml
  kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations
  curl -s {agent.metrics} {webhooks.metrics} | grep -v '^#'
  tail -f {agent.log} {webhooks.log}
  cat {agent.config_file} {webhooks.config_file}""")

    # --- how

    @property
    def _api(self) -> Any:
        return self._cluster.api

    def _start(self, program: Program) -> None:
        self._programs.append(program)
        program.start()

    def _command(self, text: str) -> None:
        self._screen.heading(f"$ {text}")

    def _show_table(self, command: str, path: str, *extra: str) -> None:
        """The API server itself makes the table that kubectl shows, so kubectl need not be there.

        `extra` are fields of the metadata to show first.
        """
        self._command(command)
        table = self._api.request("GET", path, headers={"Accept": _TABLE})
        columns = [i for i, column in enumerate(table["columnDefinitions"]) if not column["priority"]]
        header = [*extra, *(table["columnDefinitions"][i]["name"].upper() for i in columns)]
        rows = [
            [
                *(row["object"]["metadata"][name.lower()] for name in extra),
                *("<none>" if row["cells"][i] is None else str(row["cells"][i]) for i in columns),
            ]
            for row in table["rows"]
        ]
        self._screen.table([header, *rows])

    def _told(self) -> int:
        """How often ManagedResources had something to tell."""
        events = self._api.get(_EVENTS)["items"]
        return sum(e.get("count") or 1 for e in events if e["involvedObject"]["kind"] == "ManagedResource")

    def _wait_for(self, what: str, holds: Callable[[], bool], *, explain: Callable[[], str] = str) -> None:
        """Returns once it holds; raises DevclusterError when a program ends, or when it takes too long."""

        def holds_by_now() -> bool:
            for program in self._programs:
                program.check()
            return holds()

        def reasons() -> str:
            logs = (f"{program.module}: {program.log_end()}" for program in self._programs)
            return "\n".join(filter(None, [explain(), *logs]))

        wait_until(holds_by_now, what=what, within=_PATIENCE_SECONDS, pause=0.002, explain=reasons)

    def _grows(self, collection: str, deployment: Object) -> bool:
        """Whether it would get more replicas than it has; not while the webhooks do not know its new namespace yet."""
        try:
            would_be = self._api.create(f"{collection}?dryRun=All", deployment)
        except ApiError:
            return False
        return bool(would_be["spec"]["replicas"] > deployment["spec"]["replicas"])

    def _are_pods_running(self) -> bool:
        status = self._api.get(admission.DEPLOYMENT).get("status", {})
        return bool(status.get("readyReplicas") == 2)

    def _refusal(self, path: str) -> str:
        """Why something is not deleted; empty if it is."""
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


def _shown(file: Path) -> str:
    """As somebody who stands in the project would name it."""
    return str(file.relative_to(Path(__file__).parents[2]))


def _bad_conditions(managed_resource: Object) -> list[str]:
    """What is not yet as it should be, for people."""
    texts = []
    for kind, wanted in _GOOD.items():
        found = condition(managed_resource, kind) or {"status": "not there", "message": ""}
        if found["status"] != wanted:
            texts.append(f"{kind} is {found['status']}. {found['message']}".strip())
    return texts
