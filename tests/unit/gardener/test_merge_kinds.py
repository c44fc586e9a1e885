"""What single kinds keep of the live object."""

import base64
from copy import deepcopy
from typing import Any

import pytest

from gardener import keys
from gardener.keys import FIELD_MANAGER
from gardener.managed_resource.merge import MergeError, merge
from kube.objects import Object

Row = tuple[Object, Object, Object]
"""The spec of a manifest, the live one, and what comes of them."""

RESTARTED = {"kubectl.kubernetes.io/restartedAt": "now"}


def obj(kind: str, content: Object, **meta: Any) -> Object:
    api_version, _, name = kind.rpartition(" ")
    return {"apiVersion": api_version, "kind": name, "metadata": {"name": "n", **meta}, **content}


def merged(manifest: Object, live: Object | None, **options: Any) -> Object:
    before = deepcopy((manifest, live))
    result = merge(manifest, live, origin="ns/mr", **options)
    assert (manifest, live) == before
    return result


def spec_of(kind: str, manifest: Any, live: Any, **options: Any) -> Any:
    return merged(obj(kind, {"spec": manifest}), obj(kind, {"spec": live}), **options)["spec"]


def pem(der: bytes) -> str:
    """A CA bundle with this content; DER begins like that of a certificate."""
    text = b"-----BEGIN CERTIFICATE-----\n" + base64.b64encode(der) + b"\n-----END CERTIFICATE-----\n"
    return base64.b64encode(text).decode()


BUNDLE, OTHER_BUNDLE = pem(b"\x30\x82one"), pem(b"\x30\x82other")
PLACEHOLDERS = ("Cg==", "", None, "e30=", "Zm9v", "${CA_BUNDLE}", "not base64", pem(b""), pem(b"ca"), 7)

WORKLOADS = ["apps/v1 Deployment", "extensions/v1beta1 Deployment", "apps/v1 StatefulSet"]


@pytest.mark.parametrize("kind", WORKLOADS)
@pytest.mark.parametrize(
    ("manifest", "live", "scaled", "replicas"),
    [
        ({"replicas": 2}, {"replicas": 7}, False, 2),
        ({"replicas": 2}, {"replicas": 7}, True, 7),
        ({"replicas": 0}, {"replicas": 7}, False, 0),
        ({}, {"replicas": 7}, False, 7),
        ({"replicas": None}, {"replicas": 7}, False, 7),
        ({"replicas": 2}, {}, False, 2),
        ({"replicas": 2}, {}, True, None),
    ],
)
def test_replicas_are_the_manifests_unless_it_has_none_or_they_are_scaled(
    kind: str, manifest: Object, live: Object, scaled: bool, replicas: int | None
) -> None:
    assert spec_of(kind, manifest, live, horizontally_scaled=scaled).get("replicas") == replicas


@pytest.mark.parametrize(
    ("of_manifest", "of_live", "replicas"),
    [*((value, "", 7) for value in ("true", "1", "TRUE")), ("yes", "", 2), ("false", "", 2), ("", "true", 2)],
)
def test_an_annotation_of_the_manifest_preserves_replicas(of_manifest: str, of_live: str, replicas: int) -> None:
    manifest, live = (
        obj("apps/v1 Deployment", {"spec": {"replicas": count}}, annotations={keys.PRESERVE_REPLICAS: value})
        for count, value in ((2, of_manifest), (7, of_live))
    )
    assert merged(manifest, live)["spec"]["replicas"] == replicas


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        *((kind, ("template",)) for kind in (*WORKLOADS, "apps/v1 DaemonSet", "batch/v1 Job")),
        ("batch/v1 CronJob", ("jobTemplate", "spec", "template")),
        ("batch/v1beta1 CronJob", ("jobTemplate", "spec", "template")),
    ],
)
def test_a_restart_by_kubectl_is_not_undone(kind: str, path: tuple[str, ...]) -> None:
    def nested(template: Object) -> Object:
        for name in reversed(path):
            template = {name: template}
        return template

    live = nested({"metadata": {"annotations": {**RESTARTED, "x": "y"}}})
    expected = nested({"metadata": {"annotations": RESTARTED}, "spec": {}})
    result = spec_of(kind, nested({"spec": {}}), live)
    assert {name: result[name] for name in expected} == expected
    desired = nested({"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "then"}}})
    result = spec_of(kind, desired, live)
    assert result[path[0]] == nested({"metadata": {"annotations": RESTARTED}})[path[0]]


def containers(*resources: Object | None) -> Object:
    items = [{"name": f"c{i}", **({} if r is None else {"resources": r})} for i, r in enumerate(resources)]
    return {"template": {"spec": {"containers": items}}}


@pytest.mark.parametrize(
    ("manifest", "live", "expected"),
    [
        ({"limits": {"cpu": "1"}}, {"limits": {"cpu": "2"}}, {"limits": {"cpu": "2"}}),
        (None, {"requests": {"memory": "2"}}, {"requests": {"memory": "2"}}),
        ({"requests": {"cpu": "1"}}, {}, {"requests": {"cpu": "1"}}),
        ({"requests": {"cpu": "1"}}, None, {"requests": {"cpu": "1"}}),
        ({"requests": {"x/gpu": "1"}}, {"requests": {"x/gpu": "2"}}, {"requests": {"x/gpu": "1"}}),
    ],
)
def test_preserved_resources_are_cpu_and_memory(manifest: Object | None, live: Object | None, expected: Object) -> None:
    kind = "apps/v1 DaemonSet"
    assert spec_of(kind, containers(manifest), containers(live), vertically_scaled=True) == containers(expected)
    assert spec_of(kind, containers(manifest), containers(live)) == containers(manifest)


def test_resources_are_those_of_the_container_of_the_same_name() -> None:
    live = {"template": {"spec": {"containers": [{"name": "c1", "resources": {"requests": {"cpu": "9"}}}]}}}
    result = spec_of("apps/v1 DaemonSet", containers(None, None), live, vertically_scaled=True)
    assert result == containers(None, {"requests": {"cpu": "9"}})


def test_volume_claim_templates_stay_once_a_stateful_set_exists() -> None:
    kind = "apps/v1 StatefulSet"
    manifest = obj(kind, {"spec": {"volumeClaimTemplates": ["new"]}})
    live = obj(kind, {"spec": {"volumeClaimTemplates": ["old"]}}, creationTimestamp="2024-01-01T00:00:00Z")
    assert merged(manifest, live)["spec"]["volumeClaimTemplates"] == ["old"]
    assert merged(manifest, None)["spec"]["volumeClaimTemplates"] == ["new"]
    del live["spec"]["volumeClaimTemplates"]
    assert "volumeClaimTemplates" not in merged(manifest, live)["spec"]


def test_an_unknown_version_of_cron_jobs_is_an_error() -> None:
    with pytest.raises(MergeError, match="cannot merge objects with gvk: batch/v2, Kind=CronJob"):
        spec_of("batch/v2 CronJob", {}, {})


def written(**fields: Any) -> list[Object]:
    """As the API server records what the agent wrote."""
    return [{"manager": FIELD_MANAGER, "operation": "Update", "fieldsV1": fields}]


def test_a_service_account_has_the_secrets_of_its_manifest_and_those_that_others_add() -> None:
    kind = "v1 ServiceAccount"
    manifest = obj(kind, {"secrets": [{"name": "a"}], "imagePullSecrets": [{"name": "b"}]})
    result = merged(manifest, obj(kind, {"secrets": [{"name": "z"}]}))
    assert result["secrets"] == [{"name": "z"}, {"name": "a"}]
    assert result["imagePullSecrets"] == [{"name": "b"}]
    assert merged(manifest, None)["secrets"] == [{"name": "a"}]


def test_secrets_that_the_agent_gave_a_service_account_go_with_the_manifest() -> None:
    kind = "v1 ServiceAccount"
    lists = {name: [{"name": "old"}, {"name": "theirs"}] for name in ("secrets", "imagePullSecrets")}
    fields: Object = {"f:secrets": {".": {}, 'k:{"name":"old"}': {".": {}}}, "f:imagePullSecrets": {}}
    live = obj(kind, lists, managedFields=written(**fields))
    assert merged(obj(kind, {}), live)["secrets"] == [{"name": "theirs"}]
    # Who added which of these is not recorded.
    assert merged(obj(kind, {}), live)["imagePullSecrets"] == lists["imagePullSecrets"]


EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("wanted", "present", "counts"), [(EARLY, LATE, LATE), (LATE, EARLY, LATE), (None, LATE, LATE)]
)
def test_of_two_restarts_the_later_one_counts(wanted: str | None, present: str, counts: str) -> None:
    def template(at: str | None) -> Object:
        return {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": at}}}}

    assert spec_of("apps/v1 Deployment", template(wanted), template(present)) == template(counts)


def test_a_new_service_gets_its_type_written_out() -> None:
    new = merged(obj("v1 Service", {"spec": {"clusterIP": "1.1.1.1"}}), None)
    assert new["spec"] == {"type": "ClusterIP", "clusterIP": "1.1.1.1"}


@pytest.mark.parametrize("kind", ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"])
def test_webhooks_keep_injected_certificates_by_name(kind: str) -> None:
    def config(*webhooks: tuple[str, str | None]) -> Object:
        hooks = [{"name": n, "clientConfig": {"caBundle": b} if b else {"url": "u"}} for n, b in webhooks]
        return obj(f"admissionregistration.k8s.io/v1 {kind}", {"webhooks": hooks})

    result = merged(config(("b", None), ("c", BUNDLE), ("d", None)), config(("a", "A"), ("b", "B"), ("c", "C")))
    assert [hook["clientConfig"].get("caBundle") for hook in result["webhooks"]] == ["B", BUNDLE, None]


WEBHOOK = ("f:webhooks", 'k:{"name":"w"}')
BUNDLE_OF_WEBHOOK = (*WEBHOOK, "f:clientConfig", "f:caBundle")
SELECTOR = {"matchLabels": {"a": "b"}}
EXCLUDED = {"key": "control-plane", "operator": "NotIn", "values": ["true"]}
GONE = {"key": "gone", "operator": "Exists"}
INJECT: Object = {"annotations": {"cert-manager.io/inject-ca-from": "a/b"}}


@pytest.mark.parametrize(
    ("wanted", "present", "kept", "manager", "steps", "meta"),
    [
        # a bundle of the manifest is written, unless injection is requested, or a known injector wrote the live one
        ({"caBundle": BUNDLE}, {"caBundle": OTHER_BUNDLE}, {}, "kubectl-edit", BUNDLE_OF_WEBHOOK, {}),
        (
            {"caBundle": BUNDLE},
            {"caBundle": OTHER_BUNDLE},
            {"caBundle": OTHER_BUNDLE},
            "any",
            BUNDLE_OF_WEBHOOK,
            INJECT,
        ),
        ({"caBundle": BUNDLE}, {"caBundle": OTHER_BUNDLE}, {}, FIELD_MANAGER, BUNDLE_OF_WEBHOOK, INJECT),
        *(
            ({"caBundle": BUNDLE}, {"caBundle": OTHER_BUNDLE}, {"caBundle": OTHER_BUNDLE}, each, BUNDLE_OF_WEBHOOK, {})
            for each in ("cainjector", "service-ca-operator", "pilot-discovery", "kube-webhook-certgen")
        ),
    ],
)
def test_a_bundle_of_an_injector_stays(
    wanted: Object, present: Object, kept: Object, manager: str, steps: tuple[str, ...], meta: Object
) -> None:
    assert webhook_of({"clientConfig": wanted}, {"clientConfig": present}, manager, steps, meta) == {
        "clientConfig": wanted | kept
    }


def webhook_of(
    wanted: Object, present: Object, manager: str, steps: tuple[str, ...], meta: Object | None = None
) -> Object:
    fields: Object = {}
    for step in reversed(steps):
        fields = {step: fields}
    kind, entry = f"{ADMISSION} ValidatingWebhookConfiguration", {**OWNED, "manager": manager, "fieldsV1": fields}
    live = obj(kind, {"webhooks": [{"name": "w", **present}]}, managedFields=[entry])
    (webhook,) = merged(obj(kind, {"webhooks": [{"name": "w", **wanted}]}, **(meta or {})), live)["webhooks"]
    return {name: value for name, value in webhook.items() if name != "name"}


@pytest.mark.parametrize(
    ("wanted", "present", "manager", "result"),
    [
        ({"failurePolicy": "Ignore"}, {"failurePolicy": "Fail"}, "pilot-discovery", {"failurePolicy": "Fail"}),
        ({"failurePolicy": "Ignore"}, {"failurePolicy": "Fail"}, "kubectl-edit", {"failurePolicy": "Ignore"}),
        # what the manifest omits is of those who wrote it
        ({}, {"namespaceSelector": SELECTOR}, "webhook", {"namespaceSelector": SELECTOR}),
        ({}, {"timeoutSeconds": 3}, FIELD_MANAGER, {}),
        ({}, {"timeoutSeconds": 3}, "webhook", {"timeoutSeconds": 3}),
        # exclusions by AKS are added to the selector of the manifest
        (
            {"namespaceSelector": SELECTOR},
            {"namespaceSelector": {"matchExpressions": [EXCLUDED, GONE]}},
            "admissionsenforcer",
            {"namespaceSelector": {**SELECTOR, "matchExpressions": [EXCLUDED]}},
        ),
        (
            {"namespaceSelector": {"matchExpressions": [GONE]}},
            {"namespaceSelector": {"matchExpressions": [EXCLUDED]}},
            "admissionsenforcer",
            {"namespaceSelector": {"matchExpressions": [EXCLUDED, GONE]}},
        ),
        ({"namespaceSelector": {}}, {"namespaceSelector": SELECTOR}, "admissionsenforcer", {"namespaceSelector": {}}),
        ({"namespaceSelector": {}}, {"namespaceSelector": SELECTOR}, "kubectl-edit", {"namespaceSelector": {}}),
    ],
)
def test_fields_of_a_webhook_stay_with_their_writers(
    wanted: Object, present: Object, manager: str, result: Object
) -> None:
    (field,) = present
    assert webhook_of(wanted, present, manager, (*WEBHOOK, f"f:{field}")) == result


@pytest.mark.parametrize(
    ("request_", "key"),
    [
        ({"annotations": {"service.beta.openshift.io/inject-cabundle": "true"}}, "service-ca.crt"),
        ({"labels": {"config.openshift.io/inject-trusted-cabundle": "true"}}, "ca-bundle.crt"),
    ],
)
def test_an_injected_key_of_a_config_map_stays(request_: Object, key: str) -> None:
    live = obj("v1 ConfigMap", {"data": {key: "pem", "gone": "x"}})
    for data in ({}, {key: ""}):
        assert merged(obj("v1 ConfigMap", {"data": data}, **request_), live)["data"] == {key: "pem"}
    assert merged(obj("v1 ConfigMap", {"data": {key: "own", "a": "b"}}, **request_), live)["data"] == {
        key: "own",
        "a": "b",
    }
    assert merged(obj("v1 ConfigMap", {"data": {"a": "b"}}), live)["data"] == {"a": "b"}


@pytest.mark.parametrize(
    ("kind", "manifest", "live"),
    [
        (
            "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration",
            {"webhooks": [{"name": ["w"]}, "text"]},
            {"webhooks": [{"name": "w", "clientConfig": {"caBundle": "B"}}]},
        ),
        (
            "v1 Pod",
            {"spec": {"containers": [{"name": {"c": 1}}], "volumes": "text"}},
            {"spec": {"containers": [{"name": "c"}], "volumes": [{"name": "v"}]}},
        ),
    ],
    ids=["webhook", "container"],
)
def test_names_of_the_wrong_type_are_left_to_the_api_server(kind: str, manifest: Object, live: Object) -> None:
    result = merged(obj(kind, manifest), obj(kind, live))
    assert {name: result[name] for name in manifest} == manifest


ROLE = "rbac.authorization.k8s.io/v1 ClusterRole"
OPEN: Object = {"aggregationRule": {"clusterRoleSelectors": []}}


@pytest.mark.parametrize(
    ("manifest", "live", "rules"),
    [
        (OPEN, {**OPEN, "rules": [1]}, [1]),
        ({**OPEN, "rules": []}, {**OPEN, "rules": [1]}, [1]),
        ({**OPEN, "rules": [2]}, {"rules": [1]}, [1]),
        (OPEN, {**OPEN, "rules": None}, None),
        ({"rules": [2]}, {**OPEN, "rules": [1]}, [2]),
        ({"rules": [2], "aggregationRule": None}, {**OPEN, "rules": [1]}, [2]),
    ],
)
def test_the_rules_of_an_aggregated_role_stay(manifest: Object, live: Object, rules: list[int] | None) -> None:
    result = merged(obj(ROLE, manifest), obj(ROLE, live))
    assert (result["rules"], result.get("aggregationRule")) == (rules, manifest.get("aggregationRule"))


def test_an_aggregated_role_is_created_as_it_is_written() -> None:
    assert merged(obj(ROLE, {**OPEN, "rules": [2]}), None)["rules"] == [2]
    assert "rules" not in merged(obj(ROLE, OPEN), None)


@pytest.mark.parametrize(
    ("kind", "wanted", "data"),
    [
        ("kubernetes.io/service-account-token", {}, {"token": "t", "ca.crt": "c", "namespace": "n"}),
        ("kubernetes.io/service-account-token", {"token": "w"}, {"token": "w", "ca.crt": "c", "namespace": "n"}),
        ("Opaque", {}, {}),
    ],
)
def test_a_token_that_kubernetes_made_stays(kind: str, wanted: Object, data: Object) -> None:
    live = obj("v1 Secret", {"type": kind, "data": {"token": "t", "ca.crt": "c", "namespace": "n", "other": "o"}})
    result = merged(obj("v1 Secret", {"type": kind, "data": wanted}), live)
    assert result["data"] == data


OWNED = {"manager": keys.FIELD_MANAGER, "operation": "Update", "apiVersion": "v1"}
SECRET = {"data": {"k": "dg=="}}
CONTENT = {"data": {"k": "v"}, "binaryData": {"b": "dg=="}}
RULES, SUBJECTS = {"rules": [{"verbs": ["get"]}]}, {"subjects": [{"kind": "User", "name": "u"}]}
RBAC, ADMISSION = "rbac.authorization.k8s.io/v1", "admissionregistration.k8s.io/v1"
HOOKS = {"webhooks": [{"name": "w", **RULES}]}
BARE: Object = {"webhooks": [{"name": "w"}, {"name": "x"}]}
OMITTED: list[tuple[str, Object, Object, Object, Object]] = [
    # kind, manifest, live, what is written, how the API server records the fields
    ("v1 Secret", {}, SECRET, SECRET, {"f:data": {"f:k": {}}}),
    ("v1 Secret", {"data": None}, SECRET, SECRET, {"f:data": {"f:k": {}}}),
    ("v1 ConfigMap", {}, CONTENT, CONTENT, {"f:data": {"f:k": {}}, "f:binaryData": {"f:b": {}}}),
    (f"{RBAC} Role", {}, RULES, RULES, {"f:rules": {}}),
    (f"{RBAC} ClusterRole", {}, RULES, RULES, {"f:rules": {}}),
    (f"{RBAC} RoleBinding", {}, SUBJECTS, SUBJECTS, {"f:subjects": {}}),
    (f"{RBAC} ClusterRoleBinding", {}, SUBJECTS, SUBJECTS, {"f:subjects": {}}),
    ("discovery.k8s.io/v1 EndpointSlice", {}, {"endpoints": [1]}, {"endpoints": [1]}, {"f:endpoints": {}}),
    (f"{ADMISSION} MutatingWebhookConfiguration", {}, HOOKS, HOOKS, {"f:webhooks": {'k:{"name":"w"}': {}}}),
    (
        f"{ADMISSION} ValidatingWebhookConfiguration",
        BARE,
        HOOKS,
        {"webhooks": [*HOOKS["webhooks"], {"name": "x"}]},
        {"f:webhooks": {'k:{"name":"w"}': {"f:rules": {}}}},
    ),
    (
        "apiextensions.k8s.io/v1 CustomResourceDefinition",
        {"spec": {}},
        {"spec": {"conversion": {"strategy": "Webhook"}}},
        {"spec": {"conversion": {"strategy": "Webhook"}}},
        {"f:spec": {"f:conversion": {"f:strategy": {}}}},
    ),
]


@pytest.mark.parametrize(("kind", "manifest", "live", "kept", "fields"), OMITTED)
def test_what_an_application_filled_in_stays_and_what_the_agent_wrote_goes(
    kind: str, manifest: Object, live: Object, kept: Object, fields: Object
) -> None:
    def written(manager: str) -> Object:
        entry = {**OWNED, "manager": manager, "fieldsV1": fields}
        result = merged(obj(kind, manifest), obj(kind, live, managedFields=[entry]))
        return {name: value for name, value in result.items() if name in live and value is not None}

    assert written("app") == kept
    assert written(keys.FIELD_MANAGER) == {name: value for name, value in manifest.items() if value is not None}


@pytest.mark.parametrize("kind", ["v1 Secret", "v1 ConfigMap"])
@pytest.mark.parametrize("content", [{"data": {}}, {"data": {"mine": ""}}, {"stringData": {"mine": ""}}])
def test_a_manifest_with_content_owns_all_of_it(kind: str, content: Object) -> None:
    result = merged(obj(kind, content), obj(kind, {"data": {"theirs": ""}, "binaryData": {"theirs": ""}}))
    assert {
        name: value for name, value in result.items() if name.lower().endswith("data") and name != "metadata"
    } == content


@pytest.mark.parametrize(
    "kind", [f"{ADMISSION} MutatingWebhookConfiguration", "apiextensions.k8s.io/v1 CustomResourceDefinition"]
)
def test_owners_that_an_operator_gives_to_what_it_fills_in_stay(kind: str) -> None:
    entry = {**OWNED, "fieldsV1": {"f:metadata": {"f:ownerReferences": {'k:{"uid":"1"}': {}}}}}
    live = obj(kind, {}, ownerReferences=[{"uid": "1"}, {"uid": "2"}], managedFields=[entry])
    assert merged(obj(kind, {}), live)["metadata"]["ownerReferences"] == [{"uid": "2"}]
    mine = obj(kind, {}, ownerReferences=[{"uid": "3"}])
    assert merged(mine, live)["metadata"]["ownerReferences"] == [{"uid": "3"}]


Port = tuple[str, int, str, int]


@pytest.mark.parametrize(
    ("manifest", "live", "node_ports"),
    [
        # the name moves to a new port
        ([("http", 8080, "", 0), ("legacy", 80, "", 0)], [("http", 80, "TCP", 30)], [0, 30]),
        # two swap their names; one gets another name
        ([("b", 1, "", 0), ("a", 2, "", 0)], [("a", 1, "TCP", 31), ("b", 2, "TCP", 32)], [31, 32]),
        ([("new", 1, "", 0)], [("a", 1, "TCP", 31)], [31]),
        # a name moves to a port that exists, and to one that is new
        ([("https", 80, "", 0), ("admin", 443, "", 0)], [("http", 80, "TCP", 30), ("https", 443, "TCP", 31)], [30, 31]),
        ([("http", 8080, "", 0)], [("http", 80, "TCP", 30)], [30]),
        # one number, two protocols
        (
            [("dns", 53, "UDP", 0), ("dns-tcp", 53, "", 0)],
            [("dns", 53, "UDP", 33), ("dns-tcp", 53, "TCP", 34)],
            [33, 34],
        ),
        ([("dns-tcp", 53, "TCP", 0)], [("dns", 53, "UDP", 33)], [0]),
        # what the manifest states goes first, and is given out once
        ([("http", 8080, "", 30), ("legacy", 80, "", 0)], [("http", 80, "TCP", 30)], [30, 0]),
    ],
)
def test_a_node_port_is_given_out_once(manifest: list[Port], live: list[Port], node_ports: list[int]) -> None:
    def ports(listed: list[Port]) -> Object:
        names = ("name", "port", "protocol", "nodePort")
        return {"type": "NodePort", "ports": [{n: v for n, v in zip(names, port, strict=True) if v} for port in listed]}

    result = spec_of("v1 Service", ports(manifest), ports(live))
    assert [port.get("nodePort", 0) for port in result["ports"]] == node_ports


def test_endpoints_keep_addresses_that_the_manifest_leaves_open() -> None:
    live = obj("v1 Endpoints", {"subsets": [1]})
    assert merged(obj("v1 Endpoints", {}), live)["subsets"] == [1]
    assert merged(obj("v1 Endpoints", {"subsets": [2]}), live)["subsets"] == [2]


# --- what a spec keeps of the live one: by kind manifest, live, and what comes of them

TEMPLATE: Object = {"template": {}}
LABELS = {"app": "new"}, {"app": "old", "controller-uid": "u"}, {"app": "new", "controller-uid": "u"}
MADE = {"matchLabels": {"controller-uid": "u"}}
JOBS = [
    {"selector": selector, "template": {"metadata": {"labels": labels}}}
    for selector, labels in zip(({"x": 1}, MADE, MADE), LABELS, strict=True)
]

IP = {"clusterIP": "1.1.1.1"}
BALANCER = {"type": "LoadBalancer"}
LOCAL = {**BALANCER, "externalTrafficPolicy": "Local"}
SERVICE: list[Row] = [
    ({}, IP, {"type": "ClusterIP", **IP}),
    ({"clusterIP": "None"}, IP, {"type": "ClusterIP", "clusterIP": "None"}),
    ({"clusterIP": "2.2.2.2"}, {"type": "ExternalName"}, {"type": "ClusterIP", "clusterIP": "2.2.2.2"}),
    ({"clusterIP": "2.2.2.2"}, IP, {"type": "ClusterIP", **IP}),
    ({"type": "ExternalName", "externalName": "x"}, {**IP, "ports": [{"port": 1}]}, {"type": "ExternalName", "externalName": "x"}),
    (
        {"type": "NodePort", "ports": [{"port": 80}, {"name": "x", "port": 90}, {"port": 70, "nodePort": 5}]},
        {"type": "NodePort", "ports": [{"port": 80, "nodePort": 1}, {"port": 90, "nodePort": 2}]},
        {"type": "NodePort",
         "ports": [{"port": 80, "nodePort": 1}, {"name": "x", "port": 90, "nodePort": 2}, {"port": 70, "nodePort": 5}]},
    ),
    (
        {"ports": [{"port": 80}]},
        {"type": "NodePort", "ports": [{"port": 80, "nodePort": 1}]},
        {"type": "ClusterIP", "ports": [{"port": 80}]},
    ),
    (BALANCER, {"type": "ClusterIP", "loadBalancerIP": "3.3.3.3"}, {**BALANCER, "loadBalancerIP": "3.3.3.3"}),
    ({**BALANCER, "loadBalancerIP": "4.4.4.4"}, {**BALANCER, "loadBalancerIP": "3.3.3.3"}, {**BALANCER, "loadBalancerIP": "4.4.4.4"}),
    (
        {**BALANCER, "clusterIP": "2.2.2.2", "ports": [{"name": "b", "port": 80}]},
        {**BALANCER, **IP, "ports": [{"name": "a", "port": 80, "nodePort": 1}, {"name": "b", "port": 443, "nodePort": 2}]},
        {**BALANCER, **IP, "ports": [{"name": "b", "port": 80, "nodePort": 1}]},
    ),
    (LOCAL, {**LOCAL, "healthCheckNodePort": 9}, {**LOCAL, "healthCheckNodePort": 9}),
    (LOCAL, {**BALANCER, "externalTrafficPolicy": "Cluster", "healthCheckNodePort": 9}, LOCAL),
]  # fmt: skip

FILLED_IN = {"storageClassName": "s"}
REQUESTS = {"resources": {"requests": {"storage": "2Gi"}}}
CLAIMED = {"volumeName": "pv", **FILLED_IN, "resources": {"requests": {}, "limits": {}}}

CLAIM = {"namespace": "a", "name": "b", "uid": "u"}
BOUND = {"claimRef": CLAIM, "persistentVolumeReclaimPolicy": "Delete"}
OTHER_CLAIM = {"claimRef": {"namespace": "a", "name": "other"}}

MOUNT, TOKEN = {"name": "v", "mountPath": "/v"}, {"name": "token", "mountPath": "/token"}


def pod(tolerations: str, image: str, *mounts: Object, **filled_in: Any) -> Object:
    container = {"name": "c", "image": image, "volumeMounts": [MOUNT, *mounts], **filled_in}
    return {"tolerations": [{"key": key} for key in tolerations], "volumes": [{"name": "v"}], "containers": [container]}


def admitted(tolerations: str, image: str) -> Object:
    """A pod with what admission and scheduler filled in."""
    made = pod(tolerations, image, TOKEN, imagePullPolicy="Always")
    made["volumes"].append({"name": "token", "projected": {}})
    made["containers"].insert(0, {"name": "sidecar"})
    return {**made, "nodeName": "node", "serviceAccountName": "default"}


SKIP = {"insecureSkipTLSVerify": True}


def conversion(**client: str) -> Object:
    return {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client}}}


NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
MINE, THEIRS = {"key": "mine", "effect": "NoSchedule"}, {"key": "theirs", "effect": "NoSchedule"}
NODE: list[Row] = [
    ({}, {"taints": [NOT_READY, THEIRS], "podCIDR": "p"}, {"taints": [NOT_READY], "podCIDR": "p"}),
    ({"taints": [MINE]}, {"taints": [NOT_READY, MINE]}, {"taints": [NOT_READY, MINE]}),
    ({"taints": [{**MINE, "value": "v"}]}, {"taints": [MINE]}, {"taints": [{**MINE, "value": "v"}]}),
    ({"taints": [MINE]}, {"taints": [NOT_READY]}, {"taints": [NOT_READY, MINE]}),
    ({"taints": [MINE]}, {}, {"taints": [MINE]}),
    ({"providerID": "a"}, {"providerID": "b", "unschedulable": True}, {"providerID": "a"}),
    ({"taints": "?"}, {"taints": [NOT_READY]}, {"taints": "?"}),
    ({}, {"taints": [{"key": [], "effect": {}}]}, {}),
]
HELD = {"holderIdentity": "h"}
SPECS: dict[str, list[Row]] = {
    **{
        kind: [(TEMPLATE, {"replicas": 7, "template": {"metadata": {"annotations": RESTARTED}}}, TEMPLATE)]
        for kind in ("apps/v1 ReplicaSet", "v1 ReplicationController")
    },
    "batch/v1 Job": [(JOBS[0], JOBS[1], JOBS[2])],
    "v1 Service": SERVICE,
    "v1 PersistentVolumeClaim": [
        (REQUESTS, CLAIMED, {"volumeName": "pv", **FILLED_IN, **REQUESTS}),
        ({"volumeName": "mine"}, CLAIMED, {"volumeName": "mine", **FILLED_IN}),
    ],
    "v1 PersistentVolume": [
        ({}, BOUND, {"claimRef": CLAIM}),
        ({"claimRef": {"namespace": "a", "name": "b"}}, BOUND, {"claimRef": CLAIM}),
        (OTHER_CLAIM, BOUND, OTHER_CLAIM),
    ],
    "v1 Pod": [(pod("b", "i:2"), admitted("a", "i:1"), admitted("ab", "i:2"))],
    # certificates that were injected, unless none is wanted
    "apiregistration.k8s.io/v1 APIService": [
        ({}, {"caBundle": "B"}, {"caBundle": "B"}),
        ({"caBundle": BUNDLE}, {"caBundle": "B"}, {"caBundle": BUNDLE}),
        *(({"caBundle": each}, {"caBundle": BUNDLE}, {"caBundle": BUNDLE}) for each in PLACEHOLDERS),
        (SKIP, {"caBundle": "B"}, SKIP),
    ],
    "apiextensions.k8s.io/v1 CustomResourceDefinition": [
        (conversion(url="u"), conversion(url="v", caBundle="B"), conversion(url="u", caBundle="B")),
        ({}, conversion(caBundle="B"), conversion(caBundle="B")),
    ],
    "v1 Node": NODE,
    # a lease is its holder's but for what the manifest states
    "coordination.k8s.io/v1 Lease": [
        ({}, HELD, HELD),
        ({"holderIdentity": "m"}, {**HELD, "renewTime": "t"}, {"holderIdentity": "m", "renewTime": "t"}),
    ],
}


@pytest.mark.parametrize(
    ("kind", "manifest", "live", "expected"), [(kind, *row) for kind, rows in SPECS.items() for row in rows]
)
def test_a_spec_keeps_what_others_filled_in(kind: str, manifest: Object, live: Object, expected: Object) -> None:
    assert spec_of(kind, manifest, live) == expected


def test_a_lease_without_a_spec_keeps_that_of_its_holder() -> None:
    kind = "coordination.k8s.io/v1 Lease"
    assert merged(obj(kind, {}), obj(kind, {"spec": HELD}))["spec"] == HELD
