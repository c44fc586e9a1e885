"""What components of a Shoot depend on; `tests/conformance/test_shoot_objects.py` compares them with the original's."""

import base64
from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from components import (
    dns_records,
    etcd,
    gardener_access,
    kube_apiserver,
    kube_controller_manager,
    referenced_resources,
    shoot_backup_entry,
    shoot_namespace,
)
from components import resource_manager as manager_of_seed
from components.control_plane import Running
from components.etcd_schedules import Schedules, schedules
from components.kube_apiserver.arguments import arguments
from components.kubernetes_versions import controllers_without, known_apis, known_features, version_of
from components.resource_manager import shoot as resource_manager
from gardener import keys
from gardener.references import references
from kit.shoot_components import (
    NEW,
    OLD,
    api_server,
    etcd_of,
    named,
    seed,
    shoot,
)
from kit.shoot_inputs import inputs, shoot_with
from kube.apply.scaled import Bounds, bounds_of, target_of
from kube.objects import Object
from kube.paths import at
from kube.yaml import Budget, load

MINORS = range(28, 37)


def flags(name: str, **values: Any) -> list[str]:
    """Values of a flag, in their order."""
    start = f"--{name}="
    return [each.removeprefix(start) for each in arguments(api_server(**values)) if each.startswith(start)]


# --- the API server


@pytest.mark.parametrize(
    ("settings", "flag", "expected"),
    [
        ({}, "anonymous-auth", ["false"]),
        ({"enableAnonymousAuthentication": True}, "anonymous-auth", ["true"]),
        ({}, "api-audiences", ["kubernetes,gardener"]),
        ({"apiAudiences": ["a"]}, "api-audiences", ["a,gardener"]),
        ({"apiAudiences": ["gardener", "a"]}, "api-audiences", ["gardener,a"]),
        ({}, "service-account-issuer", ["https://api.internal"]),
        (
            {"serviceAccountConfig": {"issuer": "https://a"}},
            "service-account-issuer",
            ["https://a", "https://api.internal"],
        ),
        (
            {"serviceAccountConfig": {"issuer": "https://a", "acceptedIssuers": ["https://b", "https://a"]}},
            "service-account-issuer",
            ["https://a", "https://b", "https://api.internal"],
        ),
        (
            {"serviceAccountConfig": {"extendTokenExpiration": False}},
            "service-account-extend-token-expiration",
            ["false"],
        ),
        ({"serviceAccountConfig": {"maxTokenExpiration": "720h"}}, "service-account-max-token-expiration", ["720h"]),
        ({"eventTTL": "2h0m0s"}, "event-ttl", ["2h0m0s"]),
        ({"requests": {"maxMutatingInflight": 0}}, "max-mutating-requests-inflight", ["0"]),
        ({"watchCacheSizes": {"default": 7}}, "default-watch-cache-size", ["7"]),
        (
            {
                "watchCacheSizes": {
                    "resources": [{"resource": "pods", "size": 1}, {"apiGroup": "apps", "resource": "b", "size": 0}]
                }
            },
            "watch-cache-sizes",
            ["pods#1,b.apps#0"],
        ),
        ({"logging": {"verbosity": 4, "httpAccessVerbosity": 3}}, "vmodule", ["httplog=3"]),
        (
            {"featureGates": {"ZZZ": True, "AllBeta": False, "AllAlpha": True}},
            "feature-gates",
            ["AllAlpha=true,AllBeta=false"],
        ),
        ({"featureGates": {"ZZZ": True}}, "feature-gates", []),
        ({"oidcConfig": {"issuerURL": "https://a", "clientID": "c"}}, "oidc-issuer-url", ["https://a"]),
        ({"oidcConfig": {"requiredClaims": {"b": "2", "a": "1"}}}, "oidc-required-claim", ["a=1", "b=2"]),
        ({"oidcConfig": {"signingAlgs": ["RS256", "ES256"]}}, "oidc-signing-algs", ["RS256,ES256"]),
        ({}, "oidc-issuer-url", []),
    ],
)
def test_settings_of_the_api_server_become_flags(settings: Object, flag: str, expected: list[str]) -> None:
    assert flags(flag, settings=settings) == expected


def test_apis_of_pods_are_off_unless_the_shoot_specifies_otherwise() -> None:
    found = kube_apiserver.runtime_config(api_server(settings={"runtimeConfig": {"batch/v1": True, "a/v1": False}}))
    assert found["batch/v1"] is True
    assert found["a/v1"] is False
    assert found["apps/v1"] is False


def test_admission_plugins_are_the_usual_ones_those_of_the_shoot_and_none_that_it_turns_off() -> None:
    selectors = {"podNodeSelectorPluginConfig": {"a": "b=c"}}
    plugins = [
        {"name": "PodNodeSelector", "config": selectors},
        {"name": "LimitRanger", "disabled": True},
        {"name": "NoSuchPlugin", "config": {"a": "b"}},
    ]
    values = {"settings": {"admissionPlugins": plugins}}
    (on,), (off,) = flags("enable-admission-plugins", **values), flags("disable-admission-plugins", **values)
    assert "PodNodeSelector" in on.split(",")
    assert "LimitRanger" not in on.split(",")
    assert "NoSuchPlugin" not in on
    assert off == "LimitRanger"
    files = named(kube_apiserver.objects(api_server(**values)), "ConfigMap", "kube-apiserver-admission-config")["data"]
    assert yaml.safe_load(files["admission-configuration.yaml"])["plugins"] == [
        {"name": "PodNodeSelector", "path": "/etc/kubernetes/admission/podnodeselector.yaml"}
    ]
    assert yaml.safe_load(files["podnodeselector.yaml"]) == selectors


@pytest.mark.parametrize(
    ("plugin", "config", "where"),
    [
        ("ValidatingAdmissionWebhook", None, ("kubeConfigFile",)),
        ("ImagePolicyWebhook", {"imagePolicy": {"allowTTL": 50}}, ("imagePolicy", "kubeConfigFile")),
    ],
)
def test_a_plugin_reads_the_kubeconfig_of_its_secret(
    plugin: str, config: Object | None, where: tuple[str, ...]
) -> None:
    given = {"name": plugin, "kubeconfigSecretName": "s", **({"config": config} if config else {})}
    objects = kube_apiserver.objects(
        api_server(settings={"admissionPlugins": [given]}, admission_kubeconfigs={plugin: "kubeconfig"})
    )
    file = f"{plugin.lower()}-kubeconfig.yaml"
    written = named(objects, "Secret", "kube-apiserver-admission-kubeconfigs")["data"]
    assert base64.b64decode(written[file]) == b"kubeconfig"
    configs = named(objects, "ConfigMap", "kube-apiserver-admission-config")["data"]
    path = at(yaml.safe_load(configs[f"{plugin.lower()}.yaml"]), *where)
    assert path == f"/etc/kubernetes/admission-kubeconfigs/{file}"


def test_users_are_known_by_a_file_or_by_flags_but_not_by_both() -> None:
    oidc = {"settings": {"oidcConfig": {"issuerURL": "https://a", "caBundle": "ca"}}}
    assert flags("oidc-ca-file", **oidc) == ["/srv/kubernetes/oidc/ca.crt"]
    assert named(kube_apiserver.objects(api_server(**oidc)), "Secret", "kube-apiserver-oidc-cabundle")
    structured = {**oidc, "authentication": "kind: AuthenticationConfiguration"}
    assert not flags("oidc-issuer-url", **structured)
    assert flags("authentication-config", **structured) == ["/etc/kubernetes/structured/authentication/config.yaml"]
    assert not flags("authentication-config", **structured, version="1.29.1")


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("", ["false"]),
        ("kind: AuthenticationConfiguration", ["false"]),
        ("kind: AuthenticationConfiguration\nanonymous: {enabled: true}", []),
        ("- a", ["false"]),
    ],
)
def test_a_file_that_reports_who_is_anonymous_replaces_the_flag(file: str, expected: list[str]) -> None:
    assert flags("anonymous-auth", authentication=file) == expected


def test_what_pods_use_is_protected_from_the_garbage_collector() -> None:
    values = api_server(authentication="a", settings={"oidcConfig": {"caBundle": "ca"}})
    objects = kube_apiserver.objects(values)
    deployment = named(objects, "Deployment")
    protected = {each.name for each in references(deployment)}
    made = {each["metadata"]["name"] for each in objects if each["kind"] in {"ConfigMap", "Secret"}}
    assert made <= protected
    assert {"ca", "tokens", "keys"} <= protected


def test_other_content_of_a_file_is_a_roll_out() -> None:
    def template(**values: Any) -> Object:
        found: Object = named(kube_apiserver.objects(api_server(**values)), "Deployment")["spec"]["template"]
        return found

    assert template() == template()
    assert template() != template(audit_policy="kind: Policy")
    assert template() != template(encryption=kube_apiserver.Encryption(keys=[OLD, NEW]))


@pytest.mark.parametrize(
    ("old", "by_current", "expected"),
    [(None, False, ["new"]), (OLD, False, ["old", "new"]), (OLD, True, ["new", "old"])],
)
def test_the_new_key_encrypts_only_after_all_have_it(
    old: kube_apiserver.Key | None, by_current: bool, expected: list[str]
) -> None:
    found = kube_apiserver.encryption_keys(NEW, old, encrypts_by_current=by_current)
    assert [key.name for key in found] == expected


def test_what_is_not_to_be_encrypted_any_more_is_still_read() -> None:
    content = kube_apiserver.Encryption(keys=[OLD], resources=["secrets", "a"], removed=["b"])
    secret = named(kube_apiserver.objects(api_server(encryption=content)), "Secret", "kube-apiserver-etcd-encryption")
    config = yaml.safe_load(base64.b64decode(secret["data"]["encryption-configuration.yaml"]))
    first, second = config["resources"]
    assert (first["resources"], [*first["providers"][0]]) == (["secrets", "a"], ["aescbc"])
    assert (second["resources"], [*second["providers"][0]]) == (["b"], ["identity"])


def test_no_secret_is_in_what_is_logged_of_values() -> None:
    assert "b2xk" not in repr(api_server(health_token="SECRET"))
    assert "SECRET" not in repr(api_server(health_token="SECRET"))


def test_its_autoscaler_may_change_the_replicas_of_the_api_server() -> None:
    objects = kube_apiserver.objects(api_server(least_replicas=3))
    assert bounds_of(objects)[target_of(named(objects, "Deployment"))] == Bounds(least=3, most=6)


# --- what runs


@pytest.mark.parametrize(
    ("running", "expected"),
    [(Running.AWAKE, [2, 1, 2, 1]), (Running.LEAVING, [2, 1, 2, 1]), (Running.ASLEEP, [0, 0, 0, 0])],
)
def test_what_runs_is_what_is_requested(running: Running, expected: list[int]) -> None:
    found = [
        named(kube_apiserver.objects(api_server(running=running)), "Deployment"),
        named(kube_controller_manager.COMPONENT.made(inputs(running=running)), "Deployment"),
        named(resource_manager.COMPONENT.made(inputs(running=running)), "Deployment"),
        etcd_of(running=running),
    ]
    assert [each["spec"]["replicas"] for each in found] == expected


def test_only_an_etcd_with_a_store_is_backed_up() -> None:
    assert not {"store", "fullSnapshotSchedule"} & etcd_of()["spec"]["backup"].keys()
    stored = etcd_of(store=etcd.Store(entry="e", bucket="b", provider="p"))["spec"]["backup"]
    assert stored["fullSnapshotSchedule"] == "1 2 * * *"
    assert stored["store"]["prefix"] == "e/etcd-main"


def test_pods_stay_on_nodes_that_fail_for_as_long_as_the_gardenlet_is_configured() -> None:
    patience = {"defaultNotReadyTolerationSeconds": 60, "defaultUnreachableTolerationSeconds": 0}
    of_seed = manager_of_seed.Values(image="i", server_secret="s", ca_bundle="b", patience=patience)
    of_shoot = inputs(shoot_with(workers=1), patience=patience)
    for objects in (manager_of_seed.objects(of_seed), resource_manager.COMPONENT.made(of_shoot)):
        config = load(named(objects, "ConfigMap")["data"]["config.yaml"], budget=Budget(999))
        assert config["webhooks"]["highAvailabilityConfig"] == {"enabled": True, **patience}


def test_a_resource_manager_without_a_token_uses_its_bootstrap_kubeconfig() -> None:
    def kubeconfig(**known: Any) -> Object:
        pod = named(resource_manager.COMPONENT.made(inputs(**known)), "Deployment")["spec"]["template"]["spec"]
        found: Object = next(each for each in pod["volumes"] if each["name"] == "kubeconfig")
        return found

    assert "projected" in kubeconfig()
    assert kubeconfig(bootstrap_secret="b")["secret"]["secretName"] == "b"


# --- when etcds are backed up


@pytest.mark.parametrize(
    ("window", "is_seed", "expected"),
    [
        # CRC-32 of "uid-29" is 3 modulo 60, and modulo 240 it is 63.
        (("220000+0000", "230000+0000"), False, ("48 20 * * *", "3 22 */3 * *")),
        (("220000+0000", "230000+0000"), True, ("48 20 * * *", "3 22 * * *")),
        (("000000+0000", "010000+0000"), False, ("48 22 * * *", "3 0 */3 * *")),
        (("000000+0100", "010000+0100"), False, ("48 21 * * *", "3 23 */3 * *")),
        (("233000+0000", "003000+0000"), False, ("18 22 * * *", "33 23 */3 * *")),
        (("000000+0000", "235959+0000"), False, ("34 12 * * *", "34 12 */3 * *")),
        (("", ""), False, ("34 12 * * *", "34 12 */3 * *")),
    ],
)
def test_times_of_an_etcd(window: tuple[str, str], is_seed: bool, expected: tuple[str, str]) -> None:
    begin, end = window
    shoot = {
        "metadata": {"creationTimestamp": "2026-01-01T12:34:56Z"},
        "spec": {"maintenance": {"timeWindow": {"begin": begin, "end": end}}},
        "status": {"uid": "uid-29"},
    }
    assert schedules(shoot, is_seed=is_seed) == Schedules(*expected)


def test_an_etcd_keeps_the_times_that_it_has() -> None:
    live = {"spec": {"backup": {"fullSnapshotSchedule": "1 1 * * *"}, "etcd": {}}}
    found = schedules({"metadata": {"creationTimestamp": "2026-01-01T12:34:56Z"}}, live=live)
    assert found == Schedules("1 1 * * *", "34 12 */3 * *")


# --- versions of Kubernetes


@pytest.mark.parametrize("minor", MINORS)
def test_nothing_that_a_version_does_not_know_is_passed_to_it(minor: int) -> None:
    features = {
        "APIPriorityAndFairness": False,
        "AllAlpha": True,
        "MutatingAdmissionPolicy": True,
        "JobPodFailurePolicy": True,
    }
    version = version_of(f"1.{minor}.0")
    known = known_features(features, version)
    assert ("APIPriorityAndFairness" in known) == (minor <= 30)
    assert "AllAlpha" in known
    assert "MutatingAdmissionPolicy" not in known or minor >= 30
    plugins = flags(
        "enable-admission-plugins", version=f"1.{minor}.0", settings={"admissionPlugins": [{"name": "JobValidation"}]}
    )
    assert ("JobValidation" in plugins[0]) == (minor >= 36)
    apis = known_apis({"flowcontrol.apiserver.k8s.io/v1alpha1": True, "batch/v1": False}, version)
    assert ("flowcontrol.apiserver.k8s.io/v1alpha1" in apis) == (minor <= 28)
    assert "batch/v1" in apis


@pytest.mark.parametrize("minor", MINORS)
def test_the_usual_plugins_are_known_to_all_versions(minor: int) -> None:
    usual, now = flags("enable-admission-plugins"), flags("enable-admission-plugins", version=f"1.{minor}.3")
    assert usual == now


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("given", [{}, {"storage.k8s.io/v1/csidrivers": False}], ids=["usual", "asked"])
def test_an_api_that_the_api_server_waits_for_is_never_off(minor: int, given: Object) -> None:
    apis = kube_apiserver.runtime_config(api_server(version=f"1.{minor}.0", settings={"runtimeConfig": given}))
    assert ("storage.k8s.io/v1/csidrivers" in apis) == (minor < 32)
    assert apis["storage.k8s.io/v1/csinodes"] is False


@pytest.mark.parametrize(
    ("api", "minor", "expected"),
    [
        ("apps/v1", 28, {"daemonset", "deployment", "replicaset", "statefulset"}),
        ("batch/v1", 36, {"cronjob", "job", "ttl-after-finished"}),
        ("policy/v1", 30, {"disruption"}),
        ("policy/v1/poddisruptionbudgets", 30, set()),
        ("policy/v1/poddisruptionbudgets", 31, {"disruption"}),
        ("networking.k8s.io/v1beta1", 30, set()),
        ("networking.k8s.io/v1beta1", 31, {"service-cidr-controller"}),
        ("networking.k8s.io/v1", 32, set()),
        ("networking.k8s.io/v1", 33, {"service-cidr-controller"}),
        ("resource.k8s.io/v1", 33, set()),
        ("resource.k8s.io/v1", 34, {"resource-claim-controller", "device-taint-eviction-controller"}),
        ("storage.k8s.io/v1", 31, set()),
        ("storage.k8s.io/v1", 36, {"selinux-warning-controller", "volumeattributesclass-protection-controller"}),
        ("a/v1", 36, set()),
    ],
)
def test_controllers_of_an_api_that_is_off(api: str, minor: int, expected: set[str]) -> None:
    version = version_of(f"1.{minor}.0")
    assert controllers_without({api: False}, version) == expected
    assert controllers_without({api: True}, version) == set()


def test_a_controller_that_is_off_is_not_on_as_well() -> None:
    off, features = {"runtimeConfig": {"apps/v1": False}}, {"featureGates": {"AllAlpha": True, "ZZZ": True}}
    found = kube_controller_manager.arguments(inputs(shoot_with(kubeAPIServer=off, kubeControllerManager=features)))
    (controllers,) = (each for each in found if each.startswith("--controllers="))
    assert controllers.startswith("--controllers=*,bootstrapsigner,tokencleaner,-attachdetach,")
    assert "-deployment" in controllers.split(",")
    assert "--feature-gates=AllAlpha=true" in found


def test_what_is_no_version_is_named() -> None:
    with pytest.raises(ValueError, match=r"spec\.kubernetes\.version: 'x' is not a valid version such as 1\.30\.5"):
        version_of("x")


# --- namespaces and zones


def zones(*kept: str, of_seed: Sequence[str], volumes: Sequence[str] = (), tolerance: str = "") -> list[str]:
    note = {"high-availability-config.resources.gardener.cloud/zones": ",".join(kept)}
    live = {"metadata": {"annotations": note}} if kept else None
    return shoot_namespace.zones_of(
        shoot(tolerance), seed(*of_seed), live=live, volumes=volumes, choose=lambda free: free[-1]
    )


@pytest.mark.parametrize(
    ("kept", "of_seed", "volumes", "tolerance", "expected"),
    [
        ((), "abc", "", "", "c"),
        ((), "abcd", "", "zone", "bcd"),
        ((), "abcd", "", "node", "d"),
        ((), "ab", "", "zone", "ab"),
        ((), "", "", "", ""),
        (("a",), "abc", "", "", "a"),
        (("a",), "bc", "", "", "c"),
        (("a",), "bc", "b", "", "b"),
        (("a",), "abc", "b", "", "ab"),
        (("a", "x"), "abcd", "", "zone", "acd"),
        (("a", "b"), "abcd", "", "", "ab"),
        ((), "abc", "x", "", "x"),
    ],
)
def test_zones_of_a_namespace(kept: Sequence[str], of_seed: str, volumes: str, tolerance: str, expected: str) -> None:
    assert zones(*kept, of_seed=of_seed, volumes=[*volumes], tolerance=tolerance) == [*expected]


def test_backups_are_by_the_provider_of_the_seed_unless_it_names_another() -> None:
    def provider(of_seed: Object) -> str:
        values = shoot_namespace.Values(name="n", shoot=shoot("zone"), seed=of_seed, zones=["a"])
        namespace = shoot_namespace.manifest(values)
        assert namespace["metadata"]["annotations"][keys.HIGH_AVAILABILITY_FAILURE_TOLERANCE] == "zone"
        found: str = namespace["metadata"]["labels"]["backup.gardener.cloud/provider"]
        return found

    assert provider(seed()) == "s"
    assert provider({"spec": {**seed()["spec"], "backup": {"provider": "other"}}}) == "other"


# --- the rest


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [(["10.0.0.1"], "A"), (["fd00::1"], "AAAA"), (["lb.example.com"], "CNAME"), ([], "CNAME")],
)
def test_kinds_of_records(addresses: list[str], expected: str) -> None:
    assert dns_records.record_type(addresses) == expected


@pytest.mark.parametrize(
    ("domain", "expected"),
    [("internal.example.com", "api.b.a.internal.example.com"), ("example.com", "api.b.a.internal.example.com")],
)
def test_a_name_in_the_internal_domain_reports_that_it_is_internal(domain: str, expected: str) -> None:
    assert dns_records.internal_host("b", "a", domain) == expected


def test_a_shoot_without_a_domain_has_no_external_address() -> None:
    found = dns_records.advertised(internal="api.internal", external="", issuer="https://issuer")
    assert [each["name"] for each in found] == ["internal", "service-account-issuer"]


def test_a_token_that_was_put_into_a_kubeconfig_stays() -> None:
    def values(tokens: dict[str, str]) -> gardener_access.Values:
        servers = dict.fromkeys(gardener_access.NAMES, "https://a")
        return gardener_access.Values(namespace="n", servers=servers, ca_bundle=b"ca", tokens=tokens)

    first, *_ = gardener_access.objects(values({}))
    assert gardener_access.token_in(first) == ""
    again, *_ = gardener_access.objects(values({gardener_access.EXTERNAL: "t"}))
    assert gardener_access.token_in(again) == "t"


@pytest.mark.parametrize("data", [None, {}, {"kubeconfig": "%%"}, {"kubeconfig": "Og=="}, {"kubeconfig": "W10="}])
def test_what_is_no_kubeconfig_has_no_token(data: Object | None) -> None:
    assert gardener_access.token_in({"data": data}) == ""
    assert gardener_access.token_in(None) == ""


def test_a_copy_in_the_seed_has_no_labels_and_annotations_of_a_tenant() -> None:
    """By these, programs of the seed would take it for a CA, or for a request for a token."""
    labels = {"secrets-manager-use-data-for-name": "ca", "resources.gardener.cloud/purpose": "token-requestor"}
    notes = {
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "serviceaccount.resources.gardener.cloud/name": "a",
    }
    meta = {"name": "c", "labels": labels, "annotations": notes, "ownerReferences": [{}], "finalizers": ["a/b"]}
    copied = referenced_resources.copy({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {}}, "n")
    assert copied["metadata"] == {"name": "ref-c", "namespace": "n"}
    assert referenced_resources.objects("n", []) == []


def test_a_backup_entry_is_named_after_the_shoot_and_its_uid() -> None:
    own = {**shoot(), "status": {"technicalID": "shoot--a--b", "uid": "u"}}
    found = shoot_backup_entry.entry(own, bucket="bucket", seed="s")
    assert found["metadata"]["name"] == "shoot--a--b--u"
    assert "annotations" not in found["metadata"]
