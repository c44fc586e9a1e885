"""Files of tenants: only allowed fields come through, in whatever way a file is written."""

import base64
import json
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gardener.error_codes import RETRYABLE_CONFIGURATION_PROBLEM
from gardener.tenant_files import UnusableFile
from gardener.tenant_files.admission import plugin_configuration
from gardener.tenant_files.audit import audit_policy
from gardener.tenant_files.authentication import authentication
from gardener.tenant_files.encryption import check_encryption
from gardener.tenant_files.kubeconfigs import kubeconfig
from gardener.tenant_files.mounted import check_mounted
from gardener.tenant_files.reading import LARGEST
from gardener.tenant_files.references import KUBECONFIG, POLICY, rewritten
from kube.objects import Object
from kube.x509 import make_ca
from kube.yaml import Budget, load

CA = make_ca("a", now=datetime.now(UTC), lifetime=timedelta(days=1)).certificate_pem
EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh", "interactiveMode": "Never"}


def config(user: Any = None, cluster: Any = None, **more: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "x", "cluster": cluster or {"server": "https://a.example.org/b"}}],
        "users": [{"name": "*", "user": user or {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "*"}}],
        "current-context": "x",
        **more,
    }


def test_a_kubeconfig_is_written_from_its_allowed_fields() -> None:
    certificate = base64.b64encode(b"c").decode()
    user = {"token": "<<", "client-certificate-data": certificate, "client-key-data": certificate}
    given = config(user, {"server": "https://a:1", "certificate-authority-data": base64.b64encode(CA).decode()})
    assert yaml.safe_load(kubeconfig(json.dumps({**given, "preferences": {}}))) == given
    assert yaml.safe_load(kubeconfig(b"\xef\xbb\xbf" + yaml.safe_dump(given).encode())) == given


REFUSED_USERS = [
    {"exec": EXEC},
    {"Exec": EXEC},
    {"EXEC": EXEC},
    {"exec": None},
    {"auth-provider": {"name": "gcp", "config": {"cmd-path": "/bin/sh"}}},
    {"Auth-Provider": {"name": "gcp"}},
    {"tokenFile": "/etc/passwd"},
    {"tokenfile": "/etc/passwd"},
    {"TOKENFILE": "/etc/passwd"},
    {"tokenFile": ""},
    {"client-certificate": "/a"},
    {"client-key": "/a"},
    {"as": "admin"},
    {"extensions": [{"name": "e", "extension": {}}]},
    {"token": ["t"]},
    {"client-key-data": "%"},
]


@pytest.mark.parametrize("user", REFUSED_USERS, ids=str)
@pytest.mark.parametrize("dump", [json.dumps, yaml.safe_dump, lambda value: f"--- {json.dumps(value)}"])
def test_no_user_of_a_kubeconfig_runs_a_command_or_reads_a_file(user: Any, dump: Callable[[Any], str]) -> None:
    others = [{"name": "b", "user": {"token": "t"}}, {"name": "z", "user": user}]
    for each in (config(user), config(users=others), config(users=others[::-1], **{"current-context": "b"})):
        with pytest.raises(UnusableFile, match="users"):
            kubeconfig(dump(each))


@pytest.mark.parametrize(
    "cluster",
    [
        {"server": "http://a"},
        {"server": "https://u:p@a"},
        {"server": "unix:///run/a.sock"},
        {"server": "file:///etc/passwd"},
        {"server": "https://"},
        {"server": "https://a\n"},
        {"server": "https://a:0"},
        {"server": "https://a", "certificate-authority": "/etc/passwd"},
        {"server": "https://a", "Certificate-Authority": "/etc/passwd"},
        {"server": "https://a", "proxy-url": "http://b"},
        {"server": "https://a", "certificate-authority-data": "Y2E="},
        {},
    ],
    ids=str,
)
def test_a_cluster_of_a_kubeconfig_names_a_server_and_no_file(cluster: Object) -> None:
    with pytest.raises(UnusableFile, match="clusters"):
        kubeconfig(json.dumps(config(clusters=[{"name": "x", "cluster": cluster}])))


HIDDEN = [
    "a: &u {exec: {command: /bin/sh}}\nusers: [{name: x, user: *u}]",
    "base: &u {exec: {command: /bin/sh}}\nusers: [{name: x, user: {<<: *u}}]",
    "users: [{name: x, user: {<<: {exec: {command: /bin/sh}}}}]",
    "users: [{name: x, user: {token: t}}]\nusers: [{name: x, user: {exec: {command: /bin/sh}}}]",
    "users: [{name: x, user: {exec: {command: /bin/sh}}}]\nusers: [{name: x, user: {token: t}}]",
    "users: [{name: x, user: {exec: {command: /bin/sh}}, user: {token: t}}]",
    'users: [{name: x, user: {"\\x65xec": {command: /bin/sh}}}]',
    "users: [{name: x, user: {!!binary ZXhlYw==: {command: /bin/sh}}}]",
    "users:\n- name: x\n  user: {exec: {command: /bin/sh}}\n...\n",
    "Users: [{name: x, user: {exec: {command: /bin/sh}}}]",
    "---\nkind: Config\n---\nusers: [{name: x, user: {exec: {command: /bin/sh}}}]",
    "extensions: [{name: x, extension: {exec: {command: /bin/sh}}}]",
]


@pytest.mark.parametrize("text", HIDDEN)
def test_nothing_is_hidden_by_yaml(text: str) -> None:
    with pytest.raises(UnusableFile):
        kubeconfig(f"apiVersion: v1\nkind: Config\n{text}")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\xff\xfe",
        json.dumps(config()).encode("utf-16"),
        json.dumps(config()).encode("utf-16-le"),
        json.dumps(config()).encode("utf-32"),
        b"[" * 100_000,
        b"a: " * 5_000,
        b"#" * (LARGEST + 1),
        b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (n, n, n - 1, n - 1) if n else b"a0: &a0 [x]\n" for n in range(40)),
        json.dumps(config(apiVersion="v2")).encode(),
        json.dumps(config(kind="Secret")).encode(),
        b'["exec"]',
        b"exec",
    ],
    ids=range(13),
)
def test_what_is_no_kubeconfig_is_refused_within_limits(content: bytes) -> None:
    with pytest.raises(UnusableFile):
        kubeconfig(content)


def test_errors_name_the_place_and_quote_no_value() -> None:
    with pytest.raises(UnusableFile) as caught:
        kubeconfig(json.dumps(config({"exec": {"command": "PASSWORD"}, "token": "PASSWORD"})))
    assert str(caught.value) == "users[0].user: unknown field, which is not allowed: `exec`"
    assert caught.value.codes == (RETRYABLE_CONFIGURATION_PROBLEM,)
    for text in ("token: [PASSWORD", "a: *PASSWORD", '"\\e[2J": 1', f'{{"{"k" * 9999}": 1}}'):
        with pytest.raises(UnusableFile) as caught:
            kubeconfig(text)
        assert "PASSWORD" not in str(caught.value)
        assert "\x1b" not in str(caught.value)
        assert len(str(caught.value)) < 500


@given(st.dictionaries(st.text(), st.text()), st.text())
def test_what_is_written_reads_the_same(selectors: dict[str, str], token: str) -> None:
    """By a reader of Go's dialect, whatever is in a text."""
    try:
        written = kubeconfig(json.dumps(config({"token": token})))
    except UnusableFile:
        return  # lone surrogates, and controls
    assert load(written, budget=Budget(1000))["users"][0]["user"] == {"token": token}
    config_of_plugin = {"podNodeSelectorPluginConfig": selectors}
    assert plugin_configuration("PodNodeSelector", config_of_plugin) == config_of_plugin


# --- admission plugins


@pytest.mark.parametrize(
    ("plugin", "given"),
    [
        ("EventRateLimit", {"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration",
                            "limits": [{"type": "Server", "qps": 1, "burst": 2, "cacheSize": 3}]}),
        ("PodNodeSelector", {"podNodeSelectorPluginConfig": {"clusterDefaultNodeSelector": "a=b", "n": "c=d"}}),
        ("PodSecurity", {"apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
                         "defaults": {"enforce": "baseline", "enforce-version": "latest"},
                         "exemptions": {"usernames": [], "runtimeClasses": [], "namespaces": ["kube-system"]}}),
        ("PodTolerationRestriction", {"apiVersion": "podtolerationrestriction.admission.k8s.io/v1alpha1",
                                      "kind": "Configuration", "default": [{"key": "a", "operator": "Exists"}],
                                      "whitelist": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1}]}),
        ("ResourceQuota", {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration",
                           "limitedResources": [{"resource": "pods", "matchScopes": [
                               {"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}]}]}),
    ],
)  # fmt: skip
def test_configurations_of_admission_plugins_come_through(plugin: str, given: Object) -> None:
    assert plugin_configuration(plugin, given) == given


@pytest.mark.parametrize(
    ("plugin", "given"),
    [
        ("ImagePolicyWebhook", {"imagePolicy": {"kubeConfigFile": "/home/u/.kube/config"}}),
        ("ImagePolicyWebhook", {"ImagePolicy": {"KubeConfigFile": "/home/u/.kube/config"}}),
        ("ImagePolicyWebhook", {"imagePolicy": {"kubeconfigfile": "/home/u/.kube/config"}}),
        ("ImagePolicyWebhook", {"imagePolicy": {}, "IMAGEPOLICY": {}}),
        ("ValidatingAdmissionWebhook", {"kubeConfigFile": "/etc/kubernetes/admission/podnodeselector.yaml"}),
        ("ValidatingAdmissionWebhook", {"kubeconfigfile": "/a"}),
        ("MutatingAdmissionWebhook", {"staticManifestsDir": "/home/u"}),
        ("MutatingAdmissionWebhook", {"apiVersion": "apiserver.config.k8s.io/v9", "kind": "WebhookAdmission"}),
        ("ValidatingAdmissionPolicy", {"staticManifestsDir": "/home/u"}),
        ("EventRateLimit", {"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration",
                            "path": "/a"}),
        ("EventRateLimit", {"limits": []}),
        ("PodNodeSelector", {"podNodeSelectorPluginConfig": {"a": {"b": "c"}}}),
        ("PodNodeSelector", ["a"]),
        ("PodNodeSelector", "path: /a"),
        ("AlwaysPullImages", {"a": "b"}),
    ],
)  # fmt: skip
def test_no_configuration_of_an_admission_plugin_names_a_file(plugin: str, given: Any) -> None:
    with pytest.raises(UnusableFile):
        plugin_configuration(plugin, given)


def test_the_path_of_a_kubeconfig_is_ours() -> None:
    given: Object = {"imagePolicy": {"kubeConfigFile": "/home/u/.kube/config", "allowTTL": 5}}
    expected = {"imagePolicy": {"kubeConfigFile": "/ours", "allowTTL": 5}}
    assert plugin_configuration("ImagePolicyWebhook", given, kubeconfig="/ours") == expected
    with pytest.raises(UnusableFile, match="PodSecurity does not use a kubeconfig"):
        plugin_configuration("PodSecurity", None, kubeconfig="/ours")


# --- audit, authentication, encryption


def test_an_audit_policy_is_written_from_its_allowed_fields() -> None:
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "resources": [{"group": "", "resources": ["pods"]}]}, {"level": "None"}],
    }
    assert yaml.safe_load(audit_policy(yaml.safe_dump({**policy, "metadata": {"creationTimestamp": None}}))) == policy
    for wrong in (
        {"apiVersion": "audit.k8s.io/v9"},
        {"kind": "EventList"},
        {"path": "/a"},
        {"rules": [{"Level": "None"}]},
    ):
        with pytest.raises(UnusableFile):
            audit_policy(yaml.safe_dump({**policy, **wrong}))


def users(**issuer: Any) -> Object:
    known = {"url": "https://a.example.org", "audiences": ["a"]}
    return {
        "apiVersion": "apiserver.config.k8s.io/v1beta1",
        "kind": "AuthenticationConfiguration",
        "jwt": [{"issuer": {**known, **issuer}, "claimMappings": {"username": {"claim": "sub", "prefix": ""}}}],
        "anonymous": {"enabled": True, "conditions": [{"path": "/livez"}]},
    }


def test_an_authentication_configuration_is_written_from_its_allowed_fields() -> None:
    given = users(certificateAuthority=CA.decode(), discoveryURL="https://b/.well-known/openid-configuration")
    assert yaml.safe_load(authentication(yaml.safe_dump(given))) == given
    for wrong in (
        {"url": "http://a"},
        {"discoveryURL": "http://169.254.169.254/latest"},
        {"certificateAuthority": "/etc/passwd"},
        {"certificateAuthorityFile": "/etc/passwd"},
        {"URL": "https://a"},
    ):
        with pytest.raises(UnusableFile, match="jwt"):
            authentication(yaml.safe_dump(users(**wrong)))


def test_encryption_uses_no_program_outside_of_the_api_server() -> None:
    keys = {"keys": [{"name": "k", "secret": "c2VjcmV0"}]}

    def encryption(*providers: Object) -> str:
        kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration"}
        return yaml.safe_dump({**kind, "resources": [{"resources": ["secrets"], "providers": list(providers)}]})

    check_encryption(encryption({"aescbc": keys}, {"identity": {}}))
    with pytest.raises(UnusableFile, match="kms"):
        check_encryption(encryption({"kms": {"apiVersion": "v2", "name": "k", "endpoint": "unix:///run/a"}}))


# --- objects and mounts


def test_a_file_is_one_key_of_its_object() -> None:
    """Others were read, too, and put together."""
    policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []\n"
    assert rewritten(POLICY, {"data": {"policy": policy, "z": "path: /a"}}) == rewritten(
        POLICY, {"data": {"policy": policy}}
    )
    for data in (None, {}, {"policy": ""}, {"other": policy}):
        with pytest.raises(UnusableFile, match="key policy is missing or empty"):
            rewritten(POLICY, {"data": data})
    with pytest.raises(UnusableFile, match="base64"):
        rewritten(KUBECONFIG, {"data": {"kubeconfig": "{}"}})


def mounted(
    *, plugin: str = "/a/imagepolicywebhook.yaml", path: str = "/k/kubeconfig", user: Any = None
) -> dict[str, bytes]:
    listed = {"apiVersion": "apiserver.k8s.io/v1alpha1", "kind": "AdmissionConfiguration"}
    plugins = [{"name": "ImagePolicyWebhook", "path": plugin}]
    return {
        "/a/admission.yaml": yaml.safe_dump({**listed, "plugins": plugins}).encode(),
        "/a/imagepolicywebhook.yaml": yaml.safe_dump({"imagePolicy": {"kubeConfigFile": path}}).encode(),
        "/k/kubeconfig": yaml.safe_dump(config(user)).encode(),
        "/k/token": b"t",
    }


ADMISSION = ["kube-apiserver", "--admission-control-config-file=/a/admission.yaml"]


def test_mounted_files_lead_only_to_mounted_files() -> None:
    check_mounted(ADMISSION, mounted())
    check_mounted(["--kubeconfig=/k/../k/kubeconfig"], mounted(user={"tokenFile": "/k/token"}))
    for files, match in (
        (mounted(plugin="/etc/passwd"), "file /etc/passwd is not mounted"),
        (mounted(path="/home/u/.kube/config"), "/home/u/.kube/config is not mounted"),
        (mounted(user={"exec": EXEC}), "file /k/kubeconfig: users"),
        (mounted(user={"tokenFile": "/etc/passwd"}), "tokenFile"),
    ):
        with pytest.raises(UnusableFile, match=match):
            check_mounted(ADMISSION, files)


@pytest.mark.parametrize("flag", ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"])
def test_a_mounted_kubeconfig_runs_no_command(flag: str) -> None:
    for user in ({"exec": EXEC}, {"tokenFile": "/k/../etc/passwd"}):
        with pytest.raises(UnusableFile):
            check_mounted([f"--{flag}=/k/kubeconfig"], mounted(user=user))


def test_the_configuration_of_a_scheduler_names_a_kubeconfig_and_no_other_file() -> None:
    known: Object = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    known |= {"clientConnection": {"kubeconfig": "/k/kubeconfig"}, "profiles": [{"schedulerName": "a"}]}
    extender = {"urlPrefix": "https://a", "tlsConfig": {"certFile": "/home/u/a.crt", "keyFile": "/home/u/a.key"}}
    for added, match in (({}, ""), ({"extenders": [extender]}, "extenders"), ({"kind": "Other"}, "kind")):
        files = mounted() | {"/s/config.yaml": yaml.safe_dump({**known, **added}).encode()}
        with pytest.raises(UnusableFile, match=match) if match else nullcontext():
            check_mounted(["--config=/s/config.yaml"], files)
