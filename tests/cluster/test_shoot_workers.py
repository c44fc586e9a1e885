"""A Shoot with workers has Nodes: they come, grow in number, are replaced, go to sleep with it, and go with it.

A garden, a seed, a gardenlet with the rights of the manifests, and the local provider, as `devcluster up` starts them.
One Shoot goes through all of it, in the order of the tests. Its Nodes and its pods are simulated by KWOK.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.testing.pytest_plugin import RunClusters
from gardener.api.extensions import EXTENSIONS, INFRASTRUCTURES, NETWORKS, OPERATING_SYSTEM_CONFIGS, WORKERS
from gardener.api.garden import CONTROLLER_DEPLOYMENTS, CONTROLLER_INSTALLATIONS, CONTROLLER_REGISTRATIONS, SEEDS
from gardener.api.kinds import MANAGED_RESOURCES, VERTICAL_POD_AUTOSCALERS
from kit.chart_archives import raw_chart
from kit.eventually import eventually
from kit.meadow import (
    NAME,
    NAMESPACE,
    PATH,
    POOL,
    SECONDS,
    SEED,
    TECHNICAL_ID,
    WITH_POOL,
    Meadow,
    garden_with_seed,
)
from kube.errors import ApiError, Unreachable
from kube.objects import Object, annotations, condition, key, labels, mapping, metadata
from kube.paths import at, mappings_at
from kube.resources import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, NODES, SECRETS
from localprocesses.versions import NEWEST
from localprovider.runner.deployments import SIMULATED

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("shoot-workers")]

PLAYED = ("cluster-autoscaler", "kube-scheduler", "machine-controller-manager")


class Field(Meadow):
    """A Meadow whose Shoot has a pool."""

    def sow(self) -> Object:
        wanted = WITH_POOL["spec"]
        kubernetes = {**wanted["kubernetes"], "verticalPodAutoscaler": {"enabled": True}}
        return self.create({**WITH_POOL, "spec": {**wanted, "kubernetes": kubernetes}})

    def change_pool(self, **fields: Any) -> None:
        (pool,) = self.shoot()["spec"]["provider"]["workers"]
        self.change({"spec": {"provider": {"workers": [{**pool, **fields}]}}})

    def nodes(self) -> list[Object]:
        return sorted(self.cluster().get(NODES.path())["items"], key=key)

    def names(self) -> set[str]:
        return {key(each).name for each in self.nodes()}

    def agents(self) -> set[str]:
        """The Secrets that agents of its Nodes read."""
        return {labels(each)["worker.gardener.cloud/gardener-node-agent-secret-name"] for each in self.nodes()}

    def configurations(self) -> set[str]:
        """The Secrets that there are for agents."""
        path = f"{SECRETS.path(namespace='kube-system')}?labelSelector=gardener.cloud%2Frole%3Doperating-system-config"
        return {key(each).name for each in self.cluster().get(path)["items"]}

    def unmountable(self) -> set[tuple[str, str]]:
        """Secrets that are gone, and Deployments of the control plane that mount them."""
        there = {key(each).name for each in self.seed.api.get(SECRETS.path(namespace=TECHNICAL_ID))["items"]}
        deployments = self.seed.api.get(DEPLOYMENTS.path(namespace=TECHNICAL_ID))["items"]
        return {(key(each).name, name) for each in deployments for name in _mounted(each) if name not in there}

    def keypair(self, suffix: str) -> Object:
        name = f"{NAME}.ssh-keypair{suffix}"
        found: Object = self.garden.api.get(SECRETS.path(namespace=NAMESPACE, name=name))["data"]
        return found

    def extension(self, kind: Any, name: str) -> Object:
        return self.seed.api.get(kind.path(namespace=TECHNICAL_ID, name=name))


def _mounted(deployment: Object) -> Iterator[str]:
    for volume in mappings_at(deployment, "spec", "template", "spec", "volumes"):
        if name := at(volume, "secret", "secretName"):
            yield str(name)
        for source in mappings_at(volume, "projected", "sources"):
            if (name := at(source, "secret", "name")) and not at(source, "secret", "optional"):
                yield str(name)


@pytest.fixture(scope="module")
def field(devcluster_run: RunClusters) -> Iterator[Field]:
    with garden_with_seed("workers") as (garden, seed):
        made = Field(garden, seed)
        made.sow()
        yield made


def _is_ready(node: Object) -> bool:
    return mapping(condition(node, "Ready")).get("status") == "True"


def test_it_comes_up_with_nodes_that_have_what_they_are_to_have(field: Field) -> None:
    field.wait("Create")
    nodes = field.nodes()
    assert len(nodes) == 2
    assert [_is_ready(each) for each in nodes] == [True, True]
    assert {at(each, "status", "nodeInfo", "kubeletVersion") for each in nodes} == {f"v{NEWEST}"}
    secret = labels(nodes[0])["worker.gardener.cloud/gardener-node-agent-secret-name"]
    found = field.cluster().get(SECRETS.path(namespace="kube-system", name=secret))
    checksum = annotations(found)["checksum/data-script"]
    assert {annotations(each)["checksum/cloud-config-data"] for each in nodes} == {checksum}
    systems = field.seed.api.get(OPERATING_SYSTEM_CONFIGS.path(namespace=TECHNICAL_ID))["items"]
    assert {each["spec"]["purpose"] for each in systems} == {"provision", "reconcile"}
    for kind in (INFRASTRUCTURES, NETWORKS, WORKERS):
        assert at(field.extension(kind, "rose"), "status", "lastOperation", "state") == "Succeeded"
    assert field.replicas().items() >= dict.fromkeys(PLAYED, 1).items()
    assert at(field.extension(INFRASTRUCTURES, "rose"), "status", "nodesCIDR") == "10.250.0.0/16"
    info = field.cluster().get(CONFIG_MAPS.path(namespace="kube-system", name="shoot-info"))["data"]
    assert info["nodeNetwork"] == "10.250.0.0/16"


def test_pods_run_on_its_nodes(field: Field) -> None:
    """Those of CoreDNS, which its own scheduler has placed."""
    path = DEPLOYMENTS.path(namespace="kube-system", name="coredns")

    def runs() -> bool:
        return bool(at(field.cluster().get(path), "status", "availableReplicas") == 2)

    eventually(runs, "the pods of CoreDNS", seconds=SECONDS, state=field.explain)


def test_its_conditions_report_that_all_is_well(field: Field) -> None:
    def reported() -> dict[str, str]:
        return {each["type"]: each["status"] for each in field.shoot()["status"].get("conditions", [])}

    eventually(
        lambda: "EveryNodeReady" in reported() and set(reported().values()) == {"True"},
        "the conditions",
        seconds=SECONDS,
        state=field.explain,
    )


def test_it_has_the_kinds_of_the_vertical_autoscaler(field: Field) -> None:
    assert field.cluster().get(VERTICAL_POD_AUTOSCALERS.path(namespace="default"))["items"] == []


def test_a_reconciliation_that_changes_nothing_keeps_its_nodes(field: Field) -> None:
    before = {key(each).name: each["metadata"]["uid"] for each in field.nodes()}
    field.change({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}})
    field.wait("Reconcile")
    assert {key(each).name: each["metadata"]["uid"] for each in field.nodes()} == before


def test_a_larger_pool_has_more_nodes_beside_those_before(field: Field) -> None:
    before = field.names()
    field.change_pool(minimum=3, maximum=4)
    field.wait("Reconcile")
    assert len(field.names()) == 3
    assert before < field.names()
    (arguments,) = [
        each["spec"]["template"]["spec"]["containers"][0]["command"]
        for each in field.seed.api.get(DEPLOYMENTS.path(namespace=TECHNICAL_ID))["items"]
        if key(each).name == "cluster-autoscaler"
    ]
    assert f"--nodes=3:4:{TECHNICAL_ID}.{TECHNICAL_ID}-pool-z1" in arguments


def test_other_machines_replace_those_before(field: Field) -> None:
    before = field.names()
    field.change_pool(machine={**POOL["machine"], "type": "large"})
    field.wait("Reconcile")
    # The last machine goes while the Worker is reported as ready.
    eventually(lambda: field.names().isdisjoint(before), "the last machine to go")
    assert len(field.names()) == 3
    assert all(_is_ready(each) for each in field.nodes())


def test_credentials_are_rotated_and_nodes_when_they_are_requested(field: Field) -> None:
    before, agents, keypair = field.names(), field.agents(), field.keypair("")
    field.rotate("start-without-workers-rollout", "WaitingForWorkersRollout")
    assert (field.names(), field.agents()) == (before, agents)
    assert field.keypair(".old") == keypair != field.keypair("")
    with pytest.raises(ApiError, match="must be in phase Prepared"):
        field.ask("rotate-ca-complete")
    field.ask("rotate-rollout-workers=pool")
    rotation = field.rotated("Prepared")
    assert "pendingWorkersRollouts" not in rotation["certificateAuthorities"]
    assert field.names().isdisjoint(before)
    assert field.agents() != agents
    assert field.configurations() == agents | field.agents()  # nodes had theirs until they were gone
    before = field.names()
    field.rotate("complete", "Completed")
    assert field.names() == before
    assert field.configurations() == field.agents()
    assert field.unmountable() == set()


def test_it_sleeps_without_nodes_and_wakes_with_new_ones(field: Field) -> None:
    field.change({"spec": {"hibernation": {"enabled": True}}})
    assert field.wait("Reconcile")["status"]["hibernated"] is True
    assert set(field.replicas().values()) == {0}
    field.wait_until_nothing_runs()
    field.change({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}})
    field.wait("Reconcile")
    assert field.processes() == []
    field.change({"spec": {"hibernation": {"enabled": False}}})
    assert field.wait("Reconcile")["status"]["hibernated"] is False
    assert len(field.names()) == 3
    assert field.replicas().items() >= dict.fromkeys(PLAYED, 1).items()


def test_it_goes_with_all_that_its_provider_has_made(field: Field) -> None:
    field.change({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}})
    field.garden.api.delete(PATH)

    def gone() -> bool:
        return field.garden.api.raw("GET", PATH)[0] == 404

    eventually(gone, "the Shoot to go", seconds=SECONDS, state=field.explain, passing=(Unreachable,))
    assert field.seed.api.raw("GET", NAMESPACES.path(name=TECHNICAL_ID))[0] == 404
    field.wait_until_nothing_runs()
    for kind in (INFRASTRUCTURES, WORKERS, EXTENSIONS, MANAGED_RESOURCES):
        assert field.seed.api.raw("GET", kind.path(namespace=TECHNICAL_ID, name="rose"))[0] == 404


CHART = {
    "templates/filter.yaml": """\
apiVersion: fluentbit.fluent.io/v1alpha2
kind: ClusterFilter
metadata:
  name: other
  labels: {fluentbit.gardener/type: seed}
spec: {match: "kubernetes.*other*", filters: [{parser: {keyName: log}}]}
""",
    "templates/deployment.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: other, namespace: {{ .Release.Namespace }}}
spec:
  replicas: 1
  selector: {matchLabels: {app: other}}
  template:
    metadata: {labels: {app: other}}
    spec: {automountServiceAccountToken: false, containers: [{name: other, image: "example.com/other:v1"}]}
""",
}
"""Chart of an extension, with an object of a kind that no program of the seed needs."""


def test_an_extension_is_installed_from_its_chart_and_its_failure_is_its_own(field: Field) -> None:
    api, name = field.garden.api, {"name": "other"}
    deployment = {**CONTROLLER_DEPLOYMENTS.type_meta, "metadata": name, "helm": {"rawChart": raw_chart(CHART)}}
    api.create(CONTROLLER_DEPLOYMENTS.path(), deployment)
    spec = {
        "deployment": {"policy": "Always", "deploymentRefs": [name]},
        "resources": [{"kind": "Network", "type": "other"}],
    }
    registration = {**CONTROLLER_REGISTRATIONS.type_meta, "metadata": name, "spec": spec}
    api.create(CONTROLLER_REGISTRATIONS.path(), registration)

    def installation() -> Object:
        listed = api.get(CONTROLLER_INSTALLATIONS.path())["items"]
        return next((one for one in listed if one["spec"]["registrationRef"]["name"] == "other"), {})

    def has(kind: str, status: str) -> Object | None:
        found = condition(installation(), kind) or {}
        return found if found.get("status") == status else None

    eventually(lambda: has("Installed", "True"), "the installation", seconds=SECONDS, state=installation)
    unhealthy = eventually(lambda: has("Healthy", "False"), "the report", seconds=SECONDS, state=installation)
    assert "start the program of example.com/other:v1" in unhealthy["message"]
    local = next(one for one in api.get(CONTROLLER_INSTALLATIONS.path())["items"] if one != installation())
    assert mapping(condition(local, "Healthy"))["reason"] == "ExtensionOfThisComputer"
    components = condition(api.get(SEEDS.path(name=SEED)), "SeedSystemComponentsHealthy") or {}
    assert components["status"] == "True"

    path = DEPLOYMENTS.path(namespace=f"extension-{metadata(installation())['name']}", name="other")
    field.seed.api.patch(path, {"metadata": {"annotations": {SIMULATED: "true"}}})
    eventually(lambda: has("Healthy", "True"), "the program to count as running", seconds=SECONDS, state=installation)
    for resource in (CONTROLLER_REGISTRATIONS, CONTROLLER_DEPLOYMENTS):
        api.delete(resource.path(name="other"))
    eventually(lambda: not installation(), "the installation to go", seconds=SECONDS, state=installation)
