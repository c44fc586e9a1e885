"""A bundle of hundreds of objects of all kinds: applied as a whole, kept as it is, left alone at rest, removed."""

import base64
import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from agent_process import AgentProcess, configuration
from bundles import Bundle, generate, split_into_secrets
from managed_world import install_crd

from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kube.errors import NotFound
from kube.objects import Object, condition, is_deleting

COUNT = 250
SECRET_BYTES = 6000
GROUP = "/apis/resources.gardener.cloud/v1alpha1"
USER_AGENT = "gardener-resource-manager"
pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True, slots=True)
class Stage:
    """A bundle, the ManagedResource that holds it, and the agent of a class of its own that works on it."""

    source: Cluster
    target: Cluster
    namespace: str
    bundle: Bundle
    agent: AgentProcess

    @property
    def path(self) -> str:
        return f"{GROUP}/namespaces/{self.namespace}/managedresources/bundle"

    def managed_resource(self) -> Object:
        return self.source.api.get(self.path)

    def live(self, path: str) -> Object | None:
        try:
            return self.target.api.get(path)
        except NotFound:
            return None

    def wait_for(self, holds: Callable[[], Any], *, what: str, seconds: float = 150) -> None:
        self.agent.wait_for(holds, what=what, seconds=seconds)

    def create(self) -> None:
        names = []
        for number, stream in enumerate(split_into_secrets(self.bundle.text, SECRET_BYTES)):
            names.append(f"bundle-{number}")
            data = {"objects.yaml.br": base64.b64encode(stream).decode()}
            secret = {"metadata": {"name": names[-1]}, "data": data}
            self.source.api.create(f"/api/v1/namespaces/{self.namespace}/secrets", secret)
        assert len(names) > 1
        managed_resource = {
            "apiVersion": "resources.gardener.cloud/v1alpha1",
            "kind": "ManagedResource",
            "metadata": {"name": "bundle"},
            "spec": {"class": self.namespace, "secretRefs": [{"name": name} for name in names]},
        }
        self.source.api.create(self.path.removesuffix("/bundle"), managed_resource)

    def is_applied(self) -> bool:
        managed_resource = self.managed_resource()
        applied = condition(managed_resource, "ResourcesApplied")
        generation = managed_resource["metadata"]["generation"]
        is_current = managed_resource.get("status", {}).get("observedGeneration") == generation
        return bool(is_current and applied and applied["status"] == "True")

    def is_gone(self) -> bool:
        try:
            self.managed_resource()
        except NotFound:
            return True
        return False

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
    bundle = generate(prefix=namespace, seed=1, count=COUNT)
    agent = AgentProcess(
        config, kubeconfig=cluster.kubeconfig, target_kubeconfig=None if target is cluster else target.kubeconfig
    )
    with agent.start():
        agent.wait_until_ready()
        stage = Stage(cluster, target, namespace, bundle, agent)
        try:
            yield stage
        finally:
            clear_away(stage)


def clear_away(stage: Stage) -> None:
    """What is left after a failure must not be in the way of other tests."""
    with contextlib.suppress(NotFound):
        stage.source.api.patch(stage.path, {"metadata": {"finalizers": None}})
        stage.source.api.delete(stage.path)
    for path in stage.bundle.paths:
        with contextlib.suppress(NotFound):
            stage.target.api.delete(path)


def manual_changes(stage: Stage) -> dict[str, Object]:
    """Paths of objects of many kinds, and what somebody changes in them."""
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
        stage.path_of("Namespace"): {"metadata": {"labels": {"team": "nobody"}}},
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
    """What somebody decides on: neither status nor what the API server and controllers note down."""
    if live is None or is_deleting(live):
        return None
    metadata = {name: value for name, value in live["metadata"].items() if name not in METADATA_OF_SERVER}
    annotations = {
        name: value
        for name, value in metadata.pop("annotations", {}).items()
        if not name.startswith(("deprecated.daemonset", "deployment.kubernetes.io/"))
    }
    return {**{name: value for name, value in live.items() if name != "status"}, "metadata": metadata, "a": annotations}


def test_it_is_applied_kept_and_removed_as_a_whole(stage: Stage) -> None:
    stage.create()
    stage.wait_for(stage.is_applied, what="the bundle to be applied")

    # All of it is there and listed. The API server may serve a new kind, forget it for a moment and serve it again.
    def missing() -> list[str]:
        return [path for path in stage.bundle.paths if stage.live(path) is None]

    stage.wait_for(lambda: not missing(), what="all to be there")
    listed = {
        (reference["apiVersion"], reference["kind"], reference.get("namespace"), reference["name"])
        for reference in stage.managed_resource()["status"]["resources"]
    }
    wanted = {
        (obj["apiVersion"], obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"])
        for obj in stage.bundle.objects
    }
    assert listed == wanted

    # What somebody changes or deletes comes back as it was.
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
        stage.wait_for(lambda: not wrong(), what="everything to be as before", seconds=50)
    except AssertionError as error:
        error.add_note("\n".join(f"{path}\n  {before[path]}\n  {content(stage.live(path))}" for path in wrong()))
        raise

    # Nothing is left when it goes.
    stage.source.api.delete(stage.path)
    stage.wait_for(stage.is_gone, what="the ManagedResource to be gone")
    stage.wait_for(
        lambda: not [path for path in stage.bundle.paths if stage.live(path) is not None], what="everything to be gone"
    )


def test_another_pass_over_what_is_applied_writes_nothing(stage: Stage) -> None:
    audit = stage.target.audit()
    try:
        stage.create()
        stage.wait_for(stage.is_applied, what="the bundle to be applied")
        assert len(written(audit, stage)) >= sum("namespace" in obj["metadata"] for obj in stage.bundle.objects)
        # Controllers are done with the objects by then, and the agent with looking at what they did.
        time.sleep(2)
        mark = audit.mark()
        stage.source.api.patch(stage.path, {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}})
        stage.wait_for(
            lambda: "gardener.cloud/operation" not in stage.managed_resource()["metadata"].get("annotations", {}),
            what="the annotation to be consumed",
        )
        time.sleep(2)
        assert written(audit, stage, since=mark) == []
    finally:
        audit.close()


def written(audit: Audit, stage: Stage, *, since: int = 0) -> list[str]:
    """What the agent wrote to objects of the bundle: all that has its prefix but the ManagedResource beside it.

    Those outside of namespaces are missing when they are created, since their name is not in the address then.
    """
    calls = audit.calls(since=since, user_agent=USER_AGENT, verbs=("create", "update", "patch", "delete"), leases=True)
    beside = f"/namespaces/{stage.namespace}/"
    return [f"{call.verb} {call.uri}" for call in calls if stage.namespace in call.uri and beside not in call.uri]
