"""A garden as an operator installs it: the overlay is applied, and its Pods are real processes with their own rights.

One control plane of this module's own. What each right is needed for is shown by other tests; here none is missing.
"""

import contextlib
import shutil
from functools import partial
from pathlib import Path

import pytest

from devcluster.audit import Call
from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api.garden import PROJECTS, SHOOTS
from kit.deployments import MANIFESTS, is_available, kubectl, pod_of, reported_bundle, serve_at, until
from kit.garden import Garden
from kit.garden_scheduler import reported
from kit.garden_shoots import ShootPlace
from kit.processes.deployed_pods import DeployedPod
from kit.world import Place
from kube.errors import Forbidden, Invalid
from kube.paths import at

pytestmark = [
    pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl"),
    pytest.mark.timeout(600),
]

WEBHOOKS = "garden-gardener-resource-manager"
CONTAINER = "gardener-resource-manager"
ACCOUNTS = "system:serviceaccount:garden:"
ROLES = ("controller-manager", "scheduler")
OVERLAY = MANIFESTS / "overlays" / "garden-with-controllers"


def test_all_programs_see_to_a_shoot_in_a_garden_that_was_applied(devcluster_run: RunClusters, tmp_path: Path) -> None:
    with Cluster(nodes=2) as cluster, contextlib.closing(cluster.audit()) as audit, contextlib.ExitStack() as stack:
        place = Place(cluster, "garden")
        # No trial first: the namespaces come with it.
        assert "Warning" not in kubectl(cluster.kubeconfig, "apply", "--server-side", "-k", str(OVERLAY))
        for name in (WEBHOOKS, *(f"gardener-{role}" for role in ROLES)):
            until(partial(is_available, place, name), f"{name} to be available")
        server = DeployedPod(cluster, pod_of(place, WEBHOOKS), tmp_path / "webhooks")
        certificates = stack.enter_context(server.start("certificates"))
        certificates.wait_for(lambda: reported_bundle(cluster, WEBHOOKS), what="the CA in configurations")
        webhooks = stack.enter_context(server.start(CONTAINER))
        serve_at(place, server.webhook_port, name=WEBHOOKS)
        webhooks.wait_until_ready()
        for role in ROLES:
            pod = DeployedPod(cluster, pod_of(place, "gardener", role=role), tmp_path / role)
            stack.enter_context(pod.start(f"gardener-{role}")).wait_until_ready()

        shoots = ShootPlace(Garden(cluster))
        created = shoots.shoot("s")
        assert at(created, "spec", "maintenance", "timeWindow", "begin")
        until(
            lambda: "Failed to schedule Shoot" in reported(shoots).get("description", ""),
            "the scheduler to miss a Seed",
        )
        until(lambda: at(shoots.get(PROJECTS, shoots.name), "status", "phase") == "Ready", "the Project to be ready")
        with pytest.raises(Invalid, match=r"spec\.kubernetes\.version"):
            shoots.patch(SHOOTS, "s", {"spec": {"kubernetes": {"version": "1.29.2"}}})
        with pytest.raises(Forbidden, match=r"confirmation\.gardener\.cloud/deletion"):
            shoots.garden.delete(SHOOTS, "s", namespace=shoots.namespace)

        calls = [call for call in audit.calls(leases=True, watches=True) if call.user.startswith(ACCOUNTS)]
        assert {call.user.removeprefix(ACCOUNTS) for call in calls} == {
            f"{WEBHOOKS}-webhooks",
            *(f"gardener-{role}" for role in ROLES),
        }
        refused = {_described(call) for call in calls if call.status == 403}
        assert refused == set()


def _described(call: Call) -> str:
    return f"{call.user.rpartition(':')[2]}: {call.verb} {call.resource} {call.namespace}/{call.name}"
