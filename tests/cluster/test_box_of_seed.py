"""`python -m devcluster up --garden --seed NAME --in-garden`: what the gardenlet of a seed makes, and what it costs.

One control plane of this module's own, in which garden and seed are the same. The gardenlet has the rights of the
manifests, and in the garden those of its certificate; the demo has two clusters.
"""

import base64
import contextlib
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from devcluster.__main__ import main
from devcluster.audit import Audit, Call
from devcluster.cluster import Cluster
from devcluster.garden.seed import CERTIFICATE_SECRET, GARDENLET
from devcluster.testing.pytest_plugin import RunClusters
from gardener import keys
from gardener.api.garden import SEEDS
from gardener.garden.seeds import LEASE_NAMESPACE
from kit.eventually import eventually
from kit.gardenlet_seeds import changing
from kube.objects import Object, annotations, condition, key, metadata
from kube.paths import at
from kube.resources import LEASES, NETWORK_POLICIES, SECRETS
from kube.x509 import load_certificates

pytestmark = pytest.mark.timeout(600)

NAME, NAMESPACE = "meadow", "garden"
IN_GARDEN, IN_SEED = f"gardener.cloud:system:seed:{NAME}", "system:serviceaccount:garden:gardenlet"
MOST_BYTES = (84 + 4) << 20
"""Four for what tests and plugins have installed here, and the image has not: structlog loads rich and greenlet."""


class Box:
    def __init__(self, cluster: Cluster, audit: Audit) -> None:
        self.cluster, self.audit = cluster, audit

    def seed(self) -> Object:
        return self.cluster.api.get(SEEDS.path(name=NAME))

    def lease_time(self) -> str:
        lease = self.cluster.api.get(LEASES.path(namespace=LEASE_NAMESPACE, name=NAME))
        return str(lease["spec"]["renewTime"])

    def listed(self, path: str) -> list[Object]:
        found: list[Object] = self.cluster.api.get(path)["items"]
        return found

    def calls(self, since: int = 0) -> list[Call]:
        """Of the gardenlet."""
        found = self.audit.calls(since=since, leases=True, watches=True)
        return [each for each in found if each.user in {IN_GARDEN, IN_SEED}]

    def wait_for_heartbeats(self, count: int) -> None:
        for _ in range(count):
            eventually(partial(self._has_renewed_since, self.lease_time()), "a heartbeat")

    def _has_renewed_since(self, before: str) -> bool:
        return self.lease_time() > before


@pytest.fixture(scope="module")
def box(devcluster_run: RunClusters) -> Iterator[Box]:
    name = f"box-{os.getpid()}"
    with Cluster(name=name, nodes=1) as cluster, contextlib.closing(cluster.audit()) as audit:
        assert main(["up", "--garden", "--seed", NAME, "--in-garden", "--name", name]) == 0
        yield Box(cluster, audit)


def test_the_seed_is_ready_and_its_gardenlet_has_a_certificate_in_place_of_the_token(box: Box) -> None:
    assert [at(condition(box.seed(), name) or {}, "status") for name in ("GardenletReady", "ExtensionsReady")] == [
        "True",
        "True",
    ]
    kubeconfig = yaml.safe_load(
        base64.b64decode(
            box.cluster.api.get(SECRETS.path(namespace=NAMESPACE, name=CERTIFICATE_SECRET))["data"]["kubeconfig"]
        )
    )
    pem = base64.b64decode(kubeconfig["users"][0]["user"]["client-certificate-data"])
    assert IN_GARDEN in load_certificates(pem)[0].subject.rfc4514_string()
    assert not [each for each in box.listed(SECRETS.path(namespace="kube-system")) if "bootstrap" in str(each["type"])]
    assert f"{CERTIFICATE_SECRET}-bootstrap" not in {
        key(each).name for each in box.listed(SECRETS.path(namespace=NAMESPACE))
    }


def test_namespaces_of_the_seed_have_their_policies(box: Box) -> None:
    def names() -> set[str]:
        return {key(each).name for each in box.listed(NETWORK_POLICIES.path(namespace=NAMESPACE))}

    wanted = {"deny-all", *(f"allow-to-{name}" for name in ("dns", "runtime-apiserver", "public-networks"))}
    eventually(lambda: wanted <= names(), "the policies", state=names)


def test_no_right_is_missing(box: Box) -> None:
    calls = box.calls()
    assert {each.user for each in calls} == {IN_GARDEN, IN_SEED}
    assert {f"{each.user}: {each.verb} {each.resource}" for each in calls if each.status == 403} == set()


def test_a_reconciliation_that_changes_nothing_writes_only_the_status_of_the_seed(box: Box) -> None:
    since, generation = box.audit.mark(), metadata(box.seed())["generation"]
    patch = {"metadata": {"annotations": {keys.OPERATION: "reconcile"}}}
    box.cluster.api.patch(SEEDS.path(name=NAME), patch)

    def is_done() -> bool:
        seed = box.seed()
        return (
            metadata(seed)["generation"] > generation
            and at(seed, "status", "observedGeneration") == metadata(seed)["generation"]
            and at(seed, "status", "lastOperation", "state") == "Succeeded"
            and keys.OPERATION not in annotations(seed)
            and at(condition(seed, "SeedSystemComponentsHealthy") or {}, "status") == "True"
        )

    eventually(is_done, "the reconciliation", state=box.seed)
    writes = changing(each for each in box.calls(since) if each.resource not in {"leases", "events"})
    assert set(writes) <= {("patch", "seeds/status"), ("update", "seeds/status")}


def test_steady_state_costs_a_lease_in_each_cluster(box: Box) -> None:
    eventually(
        lambda: at(condition(box.seed(), "SeedSystemComponentsHealthy") or {}, "status") == "True",
        "the seed to be well",
    )
    eventually(
        lambda: at(box.seed(), "status", "lastOperation", "state") == "Succeeded", "the operation of the Seed to end"
    )
    box.wait_for_heartbeats(1)
    since = box.audit.mark()
    box.wait_for_heartbeats(3)
    calls = {(each.user, each.verb, each.resource) for each in box.calls(since) if each.verb != "watch"}
    assert calls == {(IN_GARDEN, "patch", "leases"), (IN_SEED, "update", "leases")}


def test_it_fits_into_its_memory(box: Box) -> None:
    pid = box.cluster.component_states()[GARDENLET]["pid"]
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    assert pages * os.sysconf("SC_PAGESIZE") <= MOST_BYTES
