"""A bundle of hundreds of objects of all kinds: applied as a whole, kept as it is, left alone in steady state, removed."""

import base64
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kit.bundles.bundle import generate, split_into_secrets
from kit.managed_resources import install_crd
from kit.objects import managed_resource, secret
from kit.processes.agent import AgentProcess, configuration
from kit.world import WRITES, Place, find_at
from kube.errors import NotFound
from kube.objects import Object, annotations, is_deleting

COUNT = 250
SECRET_BYTES = 6000
OPERATION = "gardener.cloud/operation"
USER_AGENT = "gardener-resource-manager"
pytestmark = pytest.mark.timeout(600)


class Stage(Place):
    """A bundle, the ManagedResource that holds it, and the agent of a class of its own that works on it."""

    def __init__(self, source: Cluster, target: Cluster, namespace: str, agent: AgentProcess) -> None:
        super().__init__(source, namespace)
        self.target = target
        self.bundle = generate(prefix=namespace, seed=1, count=COUNT)
        self.wait_for = agent.wait_for

    def live(self, path: str) -> Object | None:
        return find_at(self.target, path)

    def begin(self) -> None:
        """Returns when all of it is applied."""
        names = []
        for number, stream in enumerate(split_into_secrets(self.bundle.text, SECRET_BYTES)):
            names.append({"name": f"bundle-{number}"})
            self.create(secret(f"bundle-{number}", {"objects.yaml.br": stream}))
        assert len(names) > 1
        spec: dict[str, Any] = {"class": self.namespace, "secretRefs": names}
        self.create(managed_resource("bundle", spec=spec))
        self.wait_for(self.is_applied, what="the bundle to be applied", seconds=150)

    def is_applied(self) -> bool:
        live = self.get("ManagedResource", "bundle")
        is_current = live.get("status", {}).get("observedGeneration") == live["metadata"]["generation"]
        return is_current and self.condition("bundle", "ResourcesApplied").get("status") == "True"

    def path_of(self, kind: str, *, having: Callable[[Object], bool] = lambda _: True) -> str:
        """Where the API server has an object of this kind."""
        both = zip(self.bundle.objects, self.bundle.paths, strict=True)
        return next(path for obj, path in both if obj["kind"] == kind and having(obj))


@pytest.fixture(params=["one cluster", "two clusters"])
def stage(request: pytest.FixtureRequest, cluster: Cluster, namespace: str) -> Iterator[Stage]:
    target = cluster if request.param == "one cluster" else request.getfixturevalue("target_cluster")
    install_crd(cluster)
    config = configuration(
        namespace,
        leaderElection={"leaderElect": False},
        targetClientConnection={},
        controllers={"resourceClass": namespace, "managedResource": {"managedByLabelValue": namespace}},
    )
    agent = AgentProcess(
        config, kubeconfig=cluster.kubeconfig, target_kubeconfig=None if target is cluster else target.kubeconfig
    )
    with agent.start():
        agent.wait_until_ready()
        stage = Stage(cluster, target, namespace, agent)
        try:
            yield stage
        finally:
            clear_away(stage)


def clear_away(stage: Stage) -> None:
    """What is left after a failure must not be in the way of other tests."""
    with contextlib.suppress(NotFound):
        stage.patch("ManagedResource", "bundle", {"metadata": {"finalizers": None}})
        stage.delete("ManagedResource", "bundle")
    for path in stage.bundle.paths:
        with contextlib.suppress(NotFound):
            stage.target.api.delete(path)


def manual_changes(stage: Stage) -> dict[str, Object]:
    """Paths of objects of many kinds, and what a user changes in them."""
    return {
        stage.path_of("ConfigMap"): {"data": {"empty": "not any more", "new": "by hand"}},
        stage.path_of("Secret"): {"data": {"password": base64.b64encode(b"12345").decode()}},
        stage.path_of("Deployment"): {"spec": {"replicas": 0}},
        stage.path_of("DaemonSet"): {"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/os": "plan9"}}}}},
        stage.path_of("Role"): {"rules": []},
        stage.path_of("ClusterRole"): {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]},
        stage.path_of("NetworkPolicy"): {"spec": {"podSelector": {}, "ingress": [{}]}},
        stage.path_of("CustomResourceDefinition"): {"spec": {"names": {"shortNames": ["byhand"]}}},
        stage.path_of("Widget"): {"spec": {"color": "ultraviolet"}},
        stage.path_of("Gadget"): {"metadata": {"labels": {"resources.gardener.cloud/managed-by": None}}},
        stage.path_of("Namespace"): {"metadata": {"labels": {"team": "none"}}},
        stage.path_of("PriorityLevelConfiguration"): {"spec": {"limited": {"nominalConcurrencyShares": 2}}},
        stage.path_of("ValidatingWebhookConfiguration"): {"webhooks": None},
        stage.path_of("Service", having=lambda service: "ports" in service["spec"]): {"spec": {"selector": {"x": "y"}}},
    }


DELETED_BY_HAND = (
    "Lease",
    "ServiceAccount",
    "CronJob",
    "StorageClass",
    "ControllerRevision",
    "HorizontalPodAutoscaler",
)
METADATA_OF_SERVER = ("resourceVersion", "generation", "managedFields", "uid", "creationTimestamp", "ownerReferences")


def content(live: Object | None) -> Object | None:
    """What a user decides on: neither status nor what the API server and controllers note down."""
    if live is None or is_deleting(live):
        return None
    metadata = {name: value for name, value in live["metadata"].items() if name not in METADATA_OF_SERVER}
    notes = {
        name: value
        for name, value in metadata.pop("annotations", {}).items()
        if not name.startswith(("deprecated.daemonset", "deployment.kubernetes.io/"))
    }
    return {**{name: value for name, value in live.items() if name != "status"}, "metadata": metadata, "a": notes}


def test_it_is_applied_kept_and_removed_as_a_whole(stage: Stage) -> None:
    stage.begin()

    # All of it is there and listed. The API server may serve a new kind, forget it for a moment and serve it again.
    def missing() -> list[str]:
        return [path for path in stage.bundle.paths if stage.live(path) is None]

    stage.wait_for(lambda: not missing(), what="all to be there")
    listed = {
        (reference["apiVersion"], reference["kind"], reference.get("namespace"), reference["name"])
        for reference in stage.get("ManagedResource", "bundle")["status"]["resources"]
    }
    wanted = {
        (obj["apiVersion"], obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"])
        for obj in stage.bundle.objects
    }
    assert listed == wanted

    # What a user changes or deletes comes back as it was.
    changes = manual_changes(stage)
    deleted = [stage.path_of(kind) for kind in DELETED_BY_HAND]
    before = {path: content(stage.live(path)) for path in (*changes, *deleted)}
    for path, patch in changes.items():
        stage.target.api.patch(path, patch)
    for path in deleted:
        stage.target.api.delete(path)

    def wrong() -> list[str]:
        return [path for path, was in before.items() if content(stage.live(path)) != was]

    try:
        stage.wait_for(lambda: not wrong(), what="everything to be as before")
    except AssertionError as error:
        error.add_note("\n".join(f"{path}\n  {before[path]}\n  {content(stage.live(path))}" for path in wrong()))
        raise

    # Nothing is left when it goes.
    stage.delete("ManagedResource", "bundle")
    stage.wait_for(lambda: not stage.find("ManagedResource", "bundle"), what="the ManagedResource to be gone")
    stage.wait_for(
        lambda: not [path for path in stage.bundle.paths if stage.live(path) is not None], what="everything to be gone"
    )


def test_another_pass_over_what_is_applied_writes_nothing(stage: Stage) -> None:
    with contextlib.closing(stage.target.audit()) as audit:
        stage.begin()
        assert len(written(audit, stage)) >= sum("namespace" in obj["metadata"] for obj in stage.bundle.objects)
        # Controllers are done with the objects by then, and the agent with looking at what they did.
        time.sleep(2)
        mark = audit.mark()
        stage.patch("ManagedResource", "bundle", {"metadata": {"annotations": {OPERATION: "reconcile"}}})
        stage.wait_for(
            lambda: OPERATION not in annotations(stage.get("ManagedResource", "bundle")), what="the pass to begin"
        )
        time.sleep(2)
        assert written(audit, stage, since=mark) == []


def written(audit: Audit, stage: Stage, *, since: int = 0) -> list[str]:
    """What the agent wrote to objects of the bundle: all that has its prefix but the ManagedResource beside it.

    Those outside of namespaces are missing when they are created, since their name is not in the address then.
    """
    calls = audit.calls(since=since, user_agent=USER_AGENT, verbs=WRITES, leases=True)
    beside = f"/namespaces/{stage.namespace}/"
    return [f"{call.verb} {call.uri}" for call in calls if stage.namespace in call.uri and beside not in call.uri]
