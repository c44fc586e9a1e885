"""A control plane that survives the failure of a node, or of a zone."""

from typing import Any

import pytest

from components import etcd, kube_apiserver, kube_controller_manager, shoot_namespace
from components.control_plane import Running, etcd_members, least_api_servers
from components.resource_manager import shoot as resource_manager
from components.secrets.tables import ControlPlane
from config.resource_manager.webhooks import HighAvailabilityConfig
from kit.shoot_components import api_server, etcd_of, named, seed, shoot
from kit.shoot_inputs import inputs, shoot_with
from kube.objects import Object, annotations
from webhooks.handlers.high_availability_config.rules import ClusterState, highly_available, requirements_of

SURVIVORS = [("", (2, 1, 1)), ("node", (3, 2, 3)), ("zone", (3, 2, 3))]
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


@pytest.mark.parametrize(("tolerance", "expected"), SURVIVORS)
@pytest.mark.parametrize(("running", "runs"), [(Running.AWAKE, 1), (Running.LEAVING, 1), (Running.ASLEEP, 0)])
def test_there_are_more_of_each(tolerance: str, expected: tuple[int, ...], running: Running, runs: int) -> None:
    own = shoot(tolerance)
    api_servers = kube_apiserver.objects(api_server(least_replicas=least_api_servers(own), running=running))
    managers = kube_controller_manager.COMPONENT.made(inputs(shoot_with(tolerance=tolerance), running=running))
    found = [
        named(api_servers, "Deployment"),
        named(managers, "Deployment"),
        etcd_of(members=etcd_members(own), running=running),
    ]
    assert [each["spec"]["replicas"] for each in found] == [number * runs for number in expected]
    assert named(api_servers, "HorizontalPodAutoscaler")["spec"]["minReplicas"] == expected[0]


def test_members_of_an_etcd_know_each_other_by_certificates() -> None:
    peers = etcd.Certificates(ca="ca-peer", server="server-peer")
    found = etcd_of(members=3, between_members=peers)["spec"]["etcd"]["peerUrlTls"]
    assert found["serverTLSSecretRef"]["name"] == "server-peer"
    assert found["tlsCASecretRef"] == {"name": "ca-peer", "namespace": "n", "dataKey": "bundle.crt"}
    assert "peerUrlTls" not in etcd_of(between_members=peers)["spec"]["etcd"]


@pytest.mark.parametrize(("several", "expected"), [(False, set()), (True, {"main", "events"})])
def test_only_several_members_need_certificates_for_each_other(several: bool, expected: set[str]) -> None:
    plane = ControlPlane(namespace="shoot--a--b", has_several_etcds=several)
    prefix = "etcd-peer-server-"
    found = {each.name: each for each in plane.certificates() if each.name.startswith(prefix)}
    assert found.keys() == {f"{prefix}{role}" for role in expected}
    assert {each.authority for each in found.values()} == ({"ca-etcd-peer"} if several else set())
    for role in expected:
        # A member is known as `<pod>.etcd-<role>-peer.<namespace>.svc`.
        assert f"*.etcd-{role}-peer.shoot--a--b.svc" in found[f"{prefix}{role}"].profile.names


@pytest.mark.parametrize(
    ("tolerance", "zones", "expected"),
    [
        ("", ["a"], {HOST: "ScheduleAnyway"}),
        ("node", ["a"], {HOST: "DoNotSchedule"}),
        ("zone", ["a", "b", "c"], {HOST: "DoNotSchedule", ZONE: "DoNotSchedule"}),
    ],
)
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_the_webhook_of_the_seed_spreads_pods_by_what_the_namespace_states(
    tolerance: str, zones: list[str], expected: dict[str, str], kind: str
) -> None:
    """Also those of an etcd, whose StatefulSet the operator makes."""
    own = shoot(tolerance)
    values = shoot_namespace.Values(name="n", shoot=own, seed=seed("a", "b", "c"), zones=zones)
    namespace = shoot_namespace.manifest(values)

    def pods_of(workload: Object) -> Any:
        found = highly_available(
            {**workload, "kind": kind},
            kind=kind,
            requirements=requirements_of(annotations(namespace)),
            cluster=ClusterState(),
            settings=HighAvailabilityConfig(),
        )
        return found["spec"]["template"]["spec"]

    pod = pods_of(named(resource_manager.COMPONENT.made(inputs()), "Deployment"))
    found = {each["topologyKey"]: each["whenUnsatisfiable"] for each in pod["topologySpreadConstraints"]}
    assert found == expected
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][-1] == {"key": ZONE, "operator": "In", "values": zones}
