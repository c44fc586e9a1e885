"""What to do about what an API server reports, in the words in which API servers report it."""

import time

import pytest

from gardener.managed_resource.messages import apply_error_text, apply_message
from gardener.managed_resource.remedies import (
    remedies_of_failure,
    remedies_of_warnings,
    remedy_of,
    unserved_error,
    unserved_remedy,
    with_remedy,
)
from kube.errors import ApiError, BadRequest, Conflict, Forbidden, Invalid, KindNotServed, ServerFailure, TooLarge
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, SERVICES, Resource

USER = 'User "system:serviceaccount:garden:agent" cannot'

TEXTS = {
    'deployments.apps "d" is forbidden: exceeded quota: small, requested: count/deployments.apps=1, used: '
    "count/deployments.apps=1, limited: count/deployments.apps=1": "raise the ResourceQuota small, or request less",
    'pods "p" is forbidden: failed quota: small: must specify cpu for: c': "the ResourceQuota small requires them",
    'pods "p" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (…)': (
        "lower the level restricted of that Namespace"
    ),
    'would violate PodSecurity "baseline:v1.30": privileged': "lower the level baseline of that Namespace",
    'admission webhook "guard.example.com" denied the request: exceeded quota: none, requested: x': (
        "change the field that the webhook guard.example.com rejects"
    ),
    'Internal error occurred: failed calling webhook "guard.example.com": failed to call webhook: Post "https://a": '
    "dial tcp: no such host": "the server of the webhook guard.example.com is reachable",
    "configmaps \"c\" is forbidden: ValidatingAdmissionPolicy 'no-latest' with binding 'all' denied request: no": (
        "the ValidatingAdmissionPolicy no-latest rejects"
    ),
    f'deployments.apps is forbidden: {USER} create resource "deployments" in API group "apps" in the namespace "shop"': (
        "allow system:serviceaccount:garden:agent to create deployments.apps in namespace shop, in the target cluster"
    ),
    f'namespaces is forbidden: {USER} create resource "namespaces" in API group "" at the cluster scope': (
        "allow system:serviceaccount:garden:agent to create namespaces in the whole cluster"
    ),
    'clusterroles "x" is forbidden: user "agent" (groups=["system:authenticated"]) is attempting to grant RBAC '
    "permissions not currently held:\n{APIGroups:[apps]}": "give agent these permissions, or the verbs escalate and bind",
    'clusterroles "x" is forbidden: must have cluster-admin privileges to use the aggregationRule': (
        "remove the aggregationRule, or grant the verb escalate"
    ),
    'pods "p" is forbidden: maximum cpu usage per Container is 1, but limit is 2': "within the LimitRange",
    'configmaps "c" is forbidden: unable to create new content in namespace shop because it is being terminated': (
        "wait until that Namespace is deleted"
    ),
    'namespaces "shop" not found': "add the Namespace shop to the objects",
    'pods "p" is forbidden: error looking up service account shop/robot: serviceaccount "robot" not found': (
        "add the ServiceAccount robot"
    ),
    'pods "p" is forbidden: no PriorityClass with name high was found': "add the PriorityClass high",
    'Deployment.apps "d" is invalid: spec.selector: Invalid value: {}: field is immutable': (
        "undo the change of spec.selector, or have the object recreated by the annotation "
        "resources.gardener.cloud/delete-on-invalid-update"
    ),
    "StatefulSet.apps \"s\" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas' …": (
        "undo the change"
    ),
    'RoleBinding "x" is invalid: roleRef: Invalid value: {}: cannot change roleRef': "undo the change",
    'Service "s" is invalid: spec.clusterIPs[0]: Invalid value: ["10.0.0.1"]: may not change once set': "undo the change",
    'PriorityClass.scheduling.k8s.io "p" is invalid: value: Forbidden: may not be changed in an update.': (
        "undo the change of value, or have the object recreated by the annotation "
        "resources.gardener.cloud/delete-on-invalid-update"
    ),
    'VolumeAttributesClass.storage.k8s.io "v" is invalid: driverName: Forbidden: updates to driverName are forbidden.': (
        "undo the change of driverName, or have the object recreated"
    ),
    'Node "n" is invalid: spec.providerID: Forbidden: node updates may not change providerID except from "" to valid': (
        "undo the change of spec.providerID"
    ),
    'CustomResourceDefinition.apiextensions.k8s.io "w.example.com" is invalid: status.storedVersions[0]: Invalid value: '
    '"v1alpha1": missing from spec.versions; v1alpha1 was previously a storage version, and must remain in spec.versions '
    "until a storage migration ensures no data remains persisted in v1alpha1 and removes v1alpha1 from "
    "status.storedVersions": (
        "keep v1alpha1 in spec.versions, or write all stored objects again in another storage version (migration), "
        "and then take v1alpha1 out of status.storedVersions of the live object"
    ),
    'PersistentVolumeClaim "c" is invalid: spec: Forbidden: spec is immutable after creation except resources.requests': (
        "undo the change of spec, or have the object recreated by the annotation "
        "resources.gardener.cloud/delete-on-invalid-update, which loses the data on its volume, so make a copy first"
    ),
    'CustomResourceDefinition.apiextensions.k8s.io "w.example.com" is invalid: spec.scope: Invalid value: "Cluster": '
    "field is immutable": "undo the change of spec.scope, or have the object recreated by the annotation "
    "resources.gardener.cloud/delete-on-invalid-update, which loses all objects of its kind, so make a copy first",
    'W.example.com "w" is invalid: status.phase: Unsupported value: "x": supported values: "a"': (
        "correct status.phase in the live object"
    ),
    "stores.shop.example.com \"fixed\" is forbidden: ValidatingAdmissionPolicy 'fixed-size' with binding 'fixed-size' "
    "denied request: spec.size: field is immutable": (
        "undo the change of the field, or delete the object, which is then recreated (the annotation "
        "resources.gardener.cloud/delete-on-invalid-update needs the answer Invalid)"
    ),
    'admission webhook "w.example.com" denied the request: size is immutable': "needs the answer Invalid",
    "Store.shop.example.com \"fixed\" is invalid: : ValidatingAdmissionPolicy 'p' with binding 'b' denied request: size is "
    "immutable": "undo the change of the field, or have the object recreated by the annotation",
    'Deployment.apps "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0': (
        "correct spec.replicas"
    ),
    'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "spec.replica"': (
        "correct the name of the field spec.replica"
    ),
    'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field '
    "ConfigMap.data of type string": "quote strings",
    'strict field validation: field "spec.a" was not stored, by the API server or by admission': "remove the field spec.a",
    'no matches for kind "Widget" in version "example.com/v1"': "install the CustomResourceDefinition",
    'no matches for kind "Deploymnet" in version "apps/v1"; did you mean Deployment?': "did you mean Deployment?",
    'no matches for kind "DeviceClass" in version "resource.k8s.io/v1"': "this version of Kubernetes does not serve it",
    "policy/v1beta1 PodSecurityPolicy is deprecated in v1.21+, unavailable in v1.25+": "upgraded to Kubernetes 1.25",
    'pods "p" is forbidden: some plugin that is unknown': "",
    "this is unknown": "",
}


@pytest.mark.parametrize(("text", "remedy"), TEXTS.items())
def test_each_text_has_its_own_remedy(text: str, remedy: str) -> None:
    found = remedy_of(text)
    assert remedy in found
    assert bool(found) == bool(remedy)


@pytest.mark.parametrize(("text", "remedy"), [pair for pair in TEXTS.items() if pair[1]])
def test_a_remedy_is_found_again_in_a_condition(text: str, remedy: str) -> None:
    shown = text if "; did you mean" in text else with_remedy(text, Conflict(409, message=text))
    first = apply_error_text("v1/ConfigMap/shop/a", shown)
    other = apply_error_text("v1/ConfigMap/shop/b", 'namespaces "elsewhere" not found')
    assert [f"ConfigMap/shop/a: {remedy_of(text)}"] == remedies_of_failure(apply_message([first]))
    assert remedies_of_failure(apply_message([first, other]))[0] == f"ConfigMap/shop/a: {remedy_of(text)}"
    assert len(remedies_of_failure(apply_message([first, other]))) == 2


def test_equal_remedies_stand_once_and_are_not_many() -> None:
    texts = [apply_error_text(f"v1/ConfigMap/shop/{n}", f'namespaces "{n % 9}" not found') for n in range(50)]
    assert len(remedies_of_failure(apply_message(texts))) == 3
    assert len(remedies_of_failure(apply_message(texts[:1] * 9))) == 1


def test_warnings_have_remedies_too() -> None:
    text = 'apps/v1/Deployment/a/d: unknown field "spec.a", unknown field "spec.b"; v1/Pod/a/p: what else there is'
    assert [remedy.partition(",")[0] for remedy in remedies_of_warnings(text)] == [
        "Deployment/a/d: correct the name of the field spec.a",
        "Deployment/a/d: correct the name of the field spec.b",
    ]


def test_a_remedy_of_several_objects_names_them() -> None:
    texts = [apply_error_text(f"v1/ConfigMap/shop/{n}", 'namespaces "a" not found') for n in range(5)]
    assert remedies_of_failure(apply_message(texts)) == [
        "ConfigMap/shop/0, ConfigMap/shop/1, ConfigMap/shop/2 and 2 more: add the Namespace a to the objects, or create it"
    ]


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (TooLarge(413, message="too much"), "divide the object"),
        (Forbidden(403, message="no"), ""),
        (
            Invalid(422, message="no", details={"causes": [{"field": "spec.a"}, {"field": "spec.b"}]}),
            "correct spec.a, spec.b",
        ),
        (BadRequest(400, message="no"), ""),
        (ServerFailure(500, message="no"), ""),
        (ServerFailure(500, message="etcdserver: request timed out"), "check the log"),
        (ServerFailure(504, message="no"), "check the log"),
        (ApiError(418, message="no"), ""),
        (Conflict(409, message="no"), ""),
    ],
)
def test_of_unknown_texts_the_reason_of_the_answer_decides(error: ApiError, remedy: str) -> None:
    text = with_remedy(str(error), error)
    assert remedy in text
    assert ("; " in text) == bool(remedy)


def test_however_long_a_text_is_it_is_looked_at_quickly() -> None:
    for text in ("exceeded quota: " * 100_000, 'User "' * 100_000, 'user "a" (groups=' * 50_000):
        started = time.thread_time()
        assert remedy_of(text) == ""
        assert time.thread_time() - started < 1, "of processor time; it needs about 0.01 s"


# --- kinds that are not served

SERVED = (
    *(DEPLOYMENTS, SERVICES, CUSTOM_RESOURCE_DEFINITIONS),
    Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", namespaced=True),
    Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", namespaced=True),
    Resource(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        namespaced=False,
    ),
    Resource("cert-manager.io", "v1", "Certificate", "certificates", namespaced=True),
)


@pytest.mark.parametrize(
    ("api_version", "kind", "remedy"),
    [
        ("apps/v1", "Deploymnet", "did you mean Deployment?"),
        ("apps/v1", "deployment", "did you mean Deployment?"),
        ("apps/v1", "Deployments", "did you mean Deployment?"),
        ("app/v1", "Deployment", "did you mean Deployment of apps/v1?"),
        ("v1", "Deployment", "did you mean Deployment of apps/v1?"),
        ("extensions/v1beta1", "Deployment", "did you mean Deployment of apps/v1?"),
        ("policy/v1beta1", "PodDisruptionBudget", "did you mean PodDisruptionBudget of policy/v1?"),
        ("networking.k8s.io/v1", "NetworkPolicies", "did you mean NetworkPolicy?"),
        ("certmanager.io/v1", "Certificate", "did you mean Certificate of cert-manager.io/v1?"),
        # Names may be alike and mean different things.
        ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", "this version of Kubernetes does not serve it"),
        ("networking.k8s.io/v1", "ServiceCIDR", "this version of Kubernetes does not serve it"),
        ("resource.k8s.io/v1", "DeviceClass", "this version of Kubernetes does not serve it"),
        ("cert.gardener.cloud/v1alpha1", "Certificate", "install the CustomResourceDefinition"),
        ("snapshot.storage.k8s.io/v1", "VolumeSnapshot", "install the CustomResourceDefinition"),
        ("example.com/v1", "Widget", "install the CustomResourceDefinition"),
    ],
)
def test_a_kind_that_is_not_served_comes_with_what_may_be_meant(api_version: str, kind: str, remedy: str) -> None:
    assert unserved_remedy(api_version, kind, SERVED).startswith(remedy)
    shown = str(unserved_error(KindNotServed(api_version, kind), SERVED))
    assert shown.startswith(f'no matches for kind "{kind}" in version "{api_version}"; {remedy}')
    assert remedy_of(shown).startswith(remedy)


def test_nothing_is_known_of_what_is_served() -> None:
    assert "does not serve it" in unserved_remedy("apps/v1", "Deploymnet", ())
    assert "CustomResourceDefinition" in unserved_remedy("example.com/v1", "Widget", ())
