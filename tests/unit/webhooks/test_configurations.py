"""Which webhook configurations are generated, and what is written to make a live one equal."""

import argparse
import base64
import copy
import datetime
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from config.resource_manager import decode
from config.resource_manager.schema import ResourceManagerConfiguration
from config.resource_manager.webhooks import Webhooks
from kit.webhooks.mutating import state_of
from kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from kube.objects import Object, matches_label_selector
from kube.x509 import make_ca
from webhooks.configurations import command, setting
from webhooks.configurations.install import difference, install
from webhooks.configurations.objects import CaBundle, CertManager, Service, Url
from webhooks.configurations.registrations import configurations, mutating, not_registered, pods, validating
from webhooks.routes import routes
from webhooks.rules.registration import Instance, Mode, Selector

RUNTIME = Instance(mode=Mode.RUNTIME)
TARGET = Instance(mode=Mode.TARGET)
APP = "gardener-resource-manager"
ALL_KEYS = (
    *("crdDeletionProtection", "endpointSliceHints", "extensionValidation", "highAvailabilityConfig"),
    *("kubernetesServiceHost", "podKubeAPIServerLoadBalancing", "podSchedulerName", "podTopologySpreadConstraints"),
    *("projectedTokenMount", "seccompProfile", "systemComponentsConfig", "tokenInvalidator", "vpaInPlaceUpdates"),
)
POD_NAMES = [
    *("projected-token-mount", "pod-scheduler-name", "seccomp-profile", "kubernetes-service-host"),
    *("pod-kube-apiserver-load-balancing", "pod-virtual-garden-kube-apiserver-load-balancing"),
    *("system-components-config", "pod-topology-spread-constraints"),
]
OWN_CA = CaBundle(b"CA")
SYSTEM = ["kube-system", "kubernetes-dashboard"]
NAMESPACES: dict[Mode, Object] = {
    Mode.RUNTIME: {
        "matchExpressions": [
            {"key": "gardener.cloud/role", "operator": "Exists"},
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": SYSTEM},
        ]
    },
    Mode.TARGET: {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": SYSTEM}]},
}
MANAGED = {"resources.gardener.cloud/managed-by": "gardener"}
TOKEN_INVALIDATOR = {"matchLabels": {"resources.gardener.cloud/purpose": "token-invalidator"}}
NO_STATIC_POD = {"key": "static-pod", "operator": "NotIn", "values": ["true"]}
NOT_OURS = {"key": "app", "operator": "NotIn", "values": ["gardener-resource-manager"]}
PODS = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
PROXY = {"key": "apiserver-proxy.networking.gardener.cloud/inject", "operator": "NotIn", "values": ["disable"]}
HA = "high-availability-config.resources.gardener.cloud"
SOME_LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"))
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"])
EXPRESSIONS = st.tuples(st.sampled_from("ab"), OPERATORS, st.sampled_from([("x",), ("x", "y")]))
LABELS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy")), max_size=1)
VIRTUAL = Instance(mode=Mode.TARGET, prefix="virtual-garden-")


def enabled(*keys: str) -> Webhooks:
    return decode(yaml.safe_dump({"webhooks": {key: {"enabled": True} for key in keys}})).config.webhooks


ALL = enabled(*ALL_KEYS)


def generated(
    webhooks: Webhooks = ALL, instance: Instance = RUNTIME, *, combined: bool = False, trust: Any = OWN_CA
) -> list[Object]:
    return configurations(webhooks, instance, address=Service("garden", instance.app), trust=trust, combined=combined)


def entry(name: str, instance: Instance = RUNTIME, webhooks: Webhooks = ALL, *, combined: bool = False) -> Object:
    entries = [webhook for obj in generated(webhooks, instance, combined=combined) for webhook in obj["webhooks"]]
    return next(webhook for webhook in entries if webhook["name"] == f"{name}.resources.gardener.cloud")


def test_the_mutating_webhooks_stand_in_the_order_in_which_they_must_be_called() -> None:
    first, *others, last = POD_NAMES
    assert [entry.name for entry in mutating(ALL, RUNTIME)] == [
        *("token-invalidator", first, "high-availability-config", *others),
        *("endpoint-slice-hints", last, "vpa-in-place-updates"),
    ]


@pytest.mark.parametrize("key", ALL_KEYS)
@pytest.mark.parametrize("combined", [False, True])
def test_only_what_is_enabled_is_registered(key: str, combined: bool) -> None:
    webhooks = enabled(key)
    entries = [*mutating(webhooks, RUNTIME, combined=combined), *validating(webhooks, RUNTIME)]
    assert entries
    if not combined:
        assert {entry.webhook.replace("-", "") for entry in entries} == {key.lower()}
    assert len(generated(webhooks, combined=combined)) == 1
    assert generated(Webhooks(), combined=combined) == []


@pytest.mark.parametrize("key", ALL_KEYS)
def test_an_api_server_is_sent_to_paths_that_are_served_and_to_all_of_them(key: str) -> None:
    webhooks = enabled(key)
    config = ResourceManagerConfiguration(webhooks=webhooks)
    served = {route.path for route in routes(config, state_of()) if route.enabled}
    separate = {entry.path for entry in [*mutating(webhooks, RUNTIME), *validating(webhooks, RUNTIME)]}
    combined = {entry.path for mode in (RUNTIME, TARGET) for entry in mutating(webhooks, mode, combined=True)}
    assert served == separate | combined


def test_a_target_instance_registers_no_validating_webhook_and_reports_which() -> None:
    assert validating(ALL, TARGET) == []
    assert list(not_registered(ALL, TARGET)) == ["webhooks.crdDeletionProtection", "webhooks.extensionValidation"]
    assert list(not_registered(ALL, RUNTIME)) == []


def absent(key: str) -> Object:
    return {"key": key, "operator": "DoesNotExist"}


def skipping(name: str) -> Object:
    return absent(f"{name}.resources.gardener.cloud/skip")


def expecting(*expressions: Object) -> Object:
    return {"matchExpressions": list(expressions)}


def writes(group: str, version: str, *resources: str) -> Object:
    rule: Object = {"operations": ["CREATE", "UPDATE"], "apiGroups": [group]}
    return {**rule, "apiVersions": version.split(","), "resources": list(resources)}


@pytest.mark.parametrize(
    ("name", "rules", "objects", "others"),
    [
        ("token-invalidator", [writes("", "v1", "secrets")], TOKEN_INVALIDATOR, {}),
        ("projected-token-mount", [PODS], expecting(skipping("projected-token-mount"), NOT_OURS, NO_STATIC_POD), {}),
        ("seccomp-profile", [PODS], expecting(skipping("seccompprofile"), NOT_OURS, NO_STATIC_POD), {}),
        (
            *("endpoint-slice-hints", [writes("discovery.k8s.io", "v1", "endpointslices")]),
            {"matchLabels": {"endpoint-slice-hints.resources.gardener.cloud/consider": "true"}},
            {"matchPolicy": "Equivalent"},
        ),
        (
            *("vpa-in-place-updates", [writes("autoscaling.k8s.io", "v1", "verticalpodautoscalers")]),
            *(
                expecting(skipping("vpa-in-place-updates")),
                {"matchPolicy": "Equivalent", "reinvocationPolicy": "Never"},
            ),
        ),
    ],
)
@pytest.mark.parametrize("instance", [RUNTIME, TARGET])
def test_an_entry_of_the_common_namespaces(
    name: str, rules: list[Object], objects: Object, others: Object, instance: Instance
) -> None:
    expected = {
        "name": f"{name}.resources.gardener.cloud",
        "rules": rules,
        "namespaceSelector": NAMESPACES[instance.mode],
        "objectSelector": objects,
        "failurePolicy": "Fail",
        "matchPolicy": "Exact",
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "admissionReviewVersions": ["v1beta1", "v1"],
        **others,
    }
    found = entry(name, instance)
    del found["clientConfig"]
    assert found == expected


@pytest.mark.parametrize(("instance", "labels"), [(RUNTIME, {}), (TARGET, {"matchLabels": MANAGED})])
def test_high_availability_is_for_namespaces_that_ask_for_it(instance: Instance, labels: Object) -> None:
    found = entry("high-availability-config", instance)
    assert found["rules"] == [
        writes("apps", "v1", "deployments", "statefulsets"),
        writes("autoscaling", "v2beta1,v2", "horizontalpodautoscalers"),
        writes("autoscaling.k8s.io", "v1alpha1", "hvpas"),
    ]
    assert found["namespaceSelector"] == {"matchLabels": {f"{HA}/consider": "true"}, **NAMESPACES[instance.mode]}
    assert found["objectSelector"] == {**labels, "matchExpressions": [absent(f"{HA}/skip")]}
    assert (found["failurePolicy"], found["matchPolicy"]) == ("Fail", "Equivalent")
    assert "reinvocationPolicy" not in found


def test_system_components_of_a_runtime_instance_are_in_namespaces_that_ask_for_it() -> None:
    prefix = "system-components-config.resources.gardener.cloud"
    runtime, target = entry("system-components-config"), entry("system-components-config", TARGET)
    assert runtime["namespaceSelector"]["matchLabels"] == {f"{prefix}/consider": "true"}
    assert target["namespaceSelector"] == NAMESPACES[Mode.TARGET]
    expected = expecting(absent(f"{prefix}/skip"), NOT_OURS, NO_STATIC_POD)
    assert runtime["objectSelector"] == expected
    assert target["objectSelector"] == {"matchLabels": MANAGED, **expected}


def test_spread_constraints_of_a_target_instance_are_for_what_gardener_manages() -> None:
    expected = expecting(NOT_OURS, skipping("topology-spread-constraints"), NO_STATIC_POD)
    assert entry("pod-topology-spread-constraints")["objectSelector"] == expected
    target = entry("pod-topology-spread-constraints", TARGET)
    assert target["objectSelector"] == {"matchLabels": MANAGED, **expected}


@pytest.mark.parametrize("instance", [RUNTIME, TARGET])
def test_webhooks_that_pods_can_do_without_are_ignored_when_they_fail(instance: Instance) -> None:
    host, scheduler = entry("kubernetes-service-host", instance), entry("pod-scheduler-name", instance)
    assert host["namespaceSelector"] == {"matchExpressions": [PROXY]}
    assert host["objectSelector"] == {"matchExpressions": [PROXY, NOT_OURS, NO_STATIC_POD]}
    assert (host["failurePolicy"], host["timeoutSeconds"], host["reinvocationPolicy"]) == ("Ignore", 2, "Never")
    assert scheduler["namespaceSelector"] == {}
    assert (scheduler["failurePolicy"], scheduler["timeoutSeconds"]) == ("Ignore", 10)
    assert "reinvocationPolicy" not in scheduler
    others = [one for obj in generated(ALL, instance) for one in obj["webhooks"] if one["failurePolicy"] == "Ignore"]
    assert others == [scheduler, host]


def test_load_balancing_has_an_entry_for_shoots_and_one_for_the_virtual_garden() -> None:
    shoots = entry("pod-kube-apiserver-load-balancing")
    garden = entry("pod-virtual-garden-kube-apiserver-load-balancing")
    assert shoots["namespaceSelector"] == {"matchLabels": {"gardener.cloud/role": "shoot"}}
    assert shoots["objectSelector"] == expecting(NO_STATIC_POD)
    assert garden["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "garden"}}
    assert garden["objectSelector"] == expecting(NOT_OURS, NO_STATIC_POD)
    assert shoots["rules"] == garden["rules"] == [PODS]


def test_deletion_protection_has_an_entry_for_definitions_and_one_for_resources() -> None:
    definitions, resources = entry("crd-deletion-protection"), entry("cr-deletion-protection")
    written = writes("apiextensions.k8s.io", "v1beta1,v1", "customresourcedefinitions")
    assert definitions["rules"] == [{**written, "operations": ["DELETE"]}]
    assert definitions["objectSelector"] == {"matchLabels": {"gardener.cloud/deletion-protected": "true"}}
    assert definitions["clientConfig"] == resources["clientConfig"]
    groups = [rule["apiGroups"] for rule in resources["rules"]]
    assert groups == [["druid.gardener.cloud"], ["extensions.gardener.cloud"]]
    assert "bastions" in resources["rules"][1]["resources"]
    assert "clusters" not in resources["rules"][1]["resources"]
    assert resources["objectSelector"] == resources["namespaceSelector"] == {}


def test_each_kind_of_extension_has_an_entry_with_its_own_path() -> None:
    entries = validating(enabled("extensionValidation"), RUNTIME)
    assert [entry.name.rpartition(".")[2] for entry in entries[5:8]] == ["dnsrecords", "etcds", "extensions"]
    assert len(entries) == 13
    assert entries[0].path == "/validate-extensions-gardener-cloud-v1alpha1-backupbucket"
    assert entries[6].path == "/validate-druid-gardener-cloud-v1alpha1-etcd"
    found = entry("validation.extensions.etcds")
    assert found["rules"] == [writes("druid.gardener.cloud", "v1alpha1", "etcds")]
    assert "reinvocationPolicy" not in found


@pytest.mark.parametrize("instance", [RUNTIME, TARGET, Instance(mode=Mode.RUNTIME, prefix="virtual-garden-")])
@pytest.mark.parametrize("combined", [False, True])
@pytest.mark.parametrize("namespace", ["garden", "kube-system"])
def test_own_pods_are_never_caught(instance: Instance, combined: bool, namespace: str) -> None:
    own_pod = {"app": instance.app, "resources.gardener.cloud/managed-by": "gardener"}
    its_namespace = {"kubernetes.io/metadata.name": namespace, "gardener.cloud/role": "garden"}
    entries = [found for found in mutating(ALL, instance, combined=combined) if found.is_for_pods]
    assert len(entries) == (2 if combined else len(POD_NAMES))
    for found in entries:
        assert not (
            matches_label_selector(found.namespaces.json(), its_namespace)
            and matches_label_selector(found.objects.json(), own_pod)
        ), found.name


@given(st.builds(Selector, LABELS.map(tuple), st.lists(EXPRESSIONS).map(tuple)), SOME_LABELS)
def test_a_selector_selects_what_its_json_selects(selector: Selector, labels: dict[str, str]) -> None:
    assert selector.matches(labels) == matches_label_selector(selector.json(), labels)


def test_combined_one_entry_stands_for_all_those_of_pods() -> None:
    separate = mutating(ALL, TARGET)
    combined = mutating(ALL, TARGET, combined=True)
    assert [entry.name for entry in pods(ALL, TARGET)] == POD_NAMES
    names = [entry.name for entry in separate if entry.name not in POD_NAMES]
    load_balancing = "pod-kube-apiserver-load-balancing"
    assert [entry.name for entry in combined] == [names[0], "pods", load_balancing, *names[1:]]
    assert combined[1].path == "/webhooks/pods/target"
    assert mutating(ALL, RUNTIME, combined=True)[1].path == "/webhooks/pods"


@pytest.mark.parametrize(
    ("instance", "webhooks", "namespaces"),
    [
        (RUNTIME, ALL, {}),
        (TARGET, ALL, {}),
        (RUNTIME, enabled("seccompProfile", "projectedTokenMount"), NAMESPACES[Mode.RUNTIME]),
    ],
)
def test_the_combined_entry_is_queried_about_whatever_one_of_its_webhooks_is_and_demands_what_all_demand(
    instance: Instance, webhooks: Webhooks, namespaces: Object
) -> None:
    found = entry("pods", instance, webhooks, combined=True)
    assert found["objectSelector"] == expecting(NOT_OURS, NO_STATIC_POD)
    assert found["namespaceSelector"] == namespaces
    assert (found["failurePolicy"], found["timeoutSeconds"]) == ("Fail", 10)


def test_pods_of_other_instances_keep_the_one_entry_that_the_combined_one_must_not_have() -> None:
    found = entry("pod-kube-apiserver-load-balancing", combined=True)
    same_name = {"key": "app", "operator": "In", "values": ["gardener-resource-manager"]}
    assert found["objectSelector"] == {"matchExpressions": [same_name, NO_STATIC_POD]}
    assert found["namespaceSelector"] == {"matchLabels": {"gardener.cloud/role": "shoot"}}


def test_the_combined_entry_may_fail_if_all_its_webhooks_may() -> None:
    found = entry("pods", RUNTIME, enabled("podSchedulerName", "kubernetesServiceHost"), combined=True)
    assert found["failurePolicy"] == "Ignore"


@pytest.mark.parametrize(
    ("instance", "name", "labels"),
    [
        (RUNTIME, APP, {"app": APP, "remediation.webhook.shoot.gardener.cloud/exclude": "true"}),
        (TARGET, f"{APP}-shoot", {"app": APP}),
        (VIRTUAL, f"virtual-garden-{APP}-shoot", {"app": f"virtual-garden-{APP}"}),
    ],
)
def test_names_and_labels_state_whose_they_are(instance: Instance, name: str, labels: Object) -> None:
    for obj in generated(ALL, instance):
        assert obj["metadata"] == {"name": name, "labels": labels}


def test_configurations_report_where_to_ask_and_whom_to_trust() -> None:
    one = enabled("seccompProfile")
    (by_service,) = generated(one)
    assert by_service["webhooks"][0]["clientConfig"] == {
        "service": {"namespace": "garden", "name": "gardener-resource-manager", "path": "/webhooks/seccomp-profile"},
        "caBundle": "Q0E=",
    }
    (by_url,) = configurations(one, TARGET, address=Url("https://grm.shoot:443/"), trust=CertManager("ns/c"))
    assert by_url["webhooks"][0]["clientConfig"] == {"url": "https://grm.shoot:443/webhooks/seccomp-profile"}
    assert by_url["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "ns/c"}


def stored(obj: Object) -> Object:
    """As an API server gives it back."""
    live = copy.deepcopy(obj)
    live["metadata"] |= {"resourceVersion": "5", "uid": "u", "generation": 1}
    for webhook in live["webhooks"]:
        for rule in webhook["rules"]:
            rule["scope"] = "*"
        webhook["clientConfig"].get("service", {})["port"] = 443
        if obj["kind"].startswith("Mutating"):
            webhook.setdefault("reinvocationPolicy", "Never")
    return live


def test_nothing_is_written_to_what_is_as_wanted() -> None:
    assert [difference(obj, stored(obj)) for obj in generated()] == [{}, {}]


def test_labels_and_annotations_of_others_are_left_alone() -> None:
    (wanted,) = generated(enabled("seccompProfile"))
    live = stored(wanted)
    live["metadata"]["labels"] |= {"team": "a"}
    live["metadata"]["annotations"] = {"note": "b"}
    assert difference(wanted, live) == {}
    live["metadata"]["labels"]["app"] = "other"
    assert difference(wanted, live) == {"metadata": {"labels": {"app": "gardener-resource-manager"}}}


@pytest.mark.parametrize(
    ("field", "value"),
    [("timeoutSeconds", 3), ("failurePolicy", "Ignore"), ("matchConditions", [{}]), ("objectSelector", {"a": "b"})],
)
def test_what_was_changed_by_hand_is_restored(field: str, value: Any) -> None:
    (wanted,) = generated(enabled("seccompProfile"))
    live = stored(wanted)
    live["webhooks"][0][field] = value
    assert difference(wanted, live) == {"webhooks": wanted["webhooks"]}


def test_the_certificates_of_cert_manager_are_kept_and_its_annotation_goes_with_it() -> None:
    one = enabled("seccompProfile")
    (managed,) = generated(one, trust=CertManager("ns/c"))
    live = stored(managed)
    live["webhooks"][0]["clientConfig"]["caBundle"] = "aW5qZWN0ZWQ="
    assert difference(managed, live) == {}
    (own,) = generated(one)
    assert difference(own, live) == {
        "metadata": {"annotations": {"cert-manager.io/inject-ca-from": None}},
        "webhooks": own["webhooks"],
    }


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text(
        "leaderElection: {resourceNamespace: garden}\nwebhooks: {seccompProfile: {enabled: true}}\ncontrollers: {}\n"
    )
    pair = make_ca("ca", now=datetime.datetime.now(datetime.UTC), lifetime=datetime.timedelta(days=1))
    (tmp_path / "ca.crt").write_bytes(pair.key_pem + b"\n" + pair.certificate_pem)
    return tmp_path


def run(files: Path, *arguments: str, environment: dict[str, str] | None = None) -> int:
    given = ["--config", str(files / "config.yaml"), "--ca-file", str(files / "ca.crt"), *arguments]
    return command.main(given, environment=environment or {})


def test_what_is_printed_can_be_applied_and_a_private_key_in_the_file_of_the_ca_is_not_printed(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(files) == 0
    (printed,) = yaml.safe_load_all(capsys.readouterr().out)
    assert printed["metadata"]["name"] == APP
    client = printed["webhooks"][0]["clientConfig"]
    assert client["service"]["namespace"] == "garden"
    assert base64.b64decode(client["caBundle"]) == (files / "ca.crt").read_bytes().partition(b"KEY-----\n\n")[2]


def test_a_kubeconfig_of_a_target_cluster_makes_a_target_instance(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {"KUBECONFIG": "a", "TARGET_KUBECONFIG": "b"}
    assert run(files, environment=environment) == 0
    (printed,) = yaml.safe_load_all(capsys.readouterr().out)
    assert printed["metadata"]["name"] == f"{APP}-shoot"
    url = "https://gardener-resource-manager.garden:443/webhooks/seccomp-profile"
    assert printed["webhooks"][0]["clientConfig"]["url"] == url
    assert run(files, "--mode", "runtime", environment=environment) == 0
    assert "gardener-resource-manager-shoot" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--url", "http://a"], "https://host:port"),
        (["--service", "a"], "namespace/name"),
        (["--service", "a/b", "--url", "https://a"], "not allowed with"),
        (["--inject-ca-from", "a/b"], "not allowed with"),
        (["--mode", "both"], "invalid choice"),
    ],
)
def test_wrong_arguments_are_explained(
    files: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(files, *arguments)
    assert ended.value.code == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "content", "text"),
    [
        ("ca.crt", "nothing", "holds no certificates in PEM format"),
        ("ca.crt", None, "cannot read --ca-file"),
        ("ca.crt", "x" * ((1 << 20) + 1), "is larger than 1048576 bytes"),
        ("config.yaml", "logLevel: loud\n", "logLevel"),
    ],
)
def test_a_file_that_cannot_be_used_is_explained(
    files: Path, capsys: pytest.CaptureFixture[str], file: str, content: str | None, text: str
) -> None:
    (files / file).unlink()
    if content is not None:
        (files / file).write_text(content)
    assert run(files) == 1
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "client_config"),
    [
        (["--service", "ns/svc"], {"name": "svc", "namespace": "ns"}),
        (["--url", "https://10.0.0.1:8443"], "https://10.0.0.1:8443/webhooks/seccomp-profile"),
    ],
)
def test_the_address_may_be_given(
    files: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], client_config: object
) -> None:
    assert run(files, *arguments) == 0
    (printed,) = yaml.safe_load_all(capsys.readouterr().out)
    found = printed["webhooks"][0]["clientConfig"]
    if isinstance(client_config, dict):
        assert client_config.items() <= found["service"].items()
    else:
        assert found["url"] == client_config


def test_cert_manager_may_keep_the_certificates(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--config", str(files / "config.yaml"), "--inject-ca-from", "ns/cert"], environment={}) == 0
    (printed,) = yaml.safe_load_all(capsys.readouterr().out)
    assert printed["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "ns/cert"}
    assert "caBundle" not in printed["webhooks"][0]["clientConfig"]


def test_the_ca_may_be_left_to_others_but_not_removed(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--config", str(files / "config.yaml"), "--no-ca"]
    assert command.main(arguments, environment={}) == 0
    (printed,) = yaml.safe_load_all(capsys.readouterr().out)
    assert "caBundle" not in printed["webhooks"][0]["clientConfig"]
    with pytest.raises(SystemExit) as ended:
        command.main([*arguments, "--install"], environment={})
    assert ended.value.code == 2
    assert "--no-ca: not allowed with argument --install" in capsys.readouterr().err


def test_webhooks_that_are_not_served_are_warned_of_and_none_are_generated(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "config.yaml").write_text(
        "leaderElection: {resourceNamespace: garden}\nwebhooks: {extensionValidation: {enabled: true}}\n"
    )
    assert run(files, "--mode", "target") == 0
    written = capsys.readouterr()
    assert written.out.endswith("# None is enabled.\n")
    assert "Warning: webhooks.extensionValidation is enabled, but a target instance does not serve it" in written.err


@pytest.mark.parametrize(
    ("secret", "problem"),
    [
        (NotFound(404, message="x"), 'secret "ca" not found in namespace "ns"'),
        ({}, 'secret "ns/ca" has no data bundle.crt'),
        ({"data": {"bundle.crt": "%"}}, 'data bundle.crt of secret "ns/ca" is not valid base64'),
        ({"data": {"bundle.crt": "eA=="}}, "holds no certificates in PEM format"),
    ],
)
async def test_a_secret_without_certificates_is_explained(secret: Object | NotFound, problem: str) -> None:
    client = AsyncMock()
    client.get.side_effect = [secret]
    with pytest.raises(command._Problem, match=problem):
        await command.bundle_of(client, "ns", "ca")


@pytest.mark.parametrize("lost", [Conflict(409, message="x"), AlreadyExists(409, message="x")])
async def test_a_race_with_another_replica_is_run_again_but_not_for_ever(lost: ApiError) -> None:
    client = AsyncMock()
    client.find.return_value = None
    (wanted,) = generated(enabled("seccompProfile"))
    client.create.side_effect = [lost, lost, wanted]
    assert [str(done) for done in await install(client, RUNTIME, [wanted])] == [
        f"MutatingWebhookConfiguration {APP}: created"
    ]
    client.create.side_effect = lost
    with pytest.raises(type(lost)):
        await install(client, RUNTIME, [wanted])


def test_the_namespace_and_prefix_go_into_all_addresses(files: Path) -> None:
    parser = argparse.ArgumentParser()
    setting.add_arguments(parser)
    arguments = ["--config", str(files / "config.yaml"), "--prefix", "virtual-garden-", "--namespace", "ns"]
    found = setting.read(parser.parse_args(arguments), environment={})
    assert (found.instance.app, found.namespace) == ("virtual-garden-gardener-resource-manager", "ns")
