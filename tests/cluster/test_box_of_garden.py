"""`python -m devcluster up --garden --demo-data`: what it holds, and what its roles let people do.

One control plane of this module's own: roles and webhooks of a garden concern all of a cluster.
"""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pytest

from devcluster.__main__ import main
from devcluster.api import Api
from devcluster.cluster import Cluster
from devcluster.garden import objects
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api import garden as resources
from kit.eventually import eventually
from kit.objects import role, role_binding, rule, user
from kit.signing.requests import CLIENT, csr_object, signing_request
from kube.errors import ApiError, Forbidden
from kube.objects import Object
from kube.resources import (
    CERTIFICATE_SIGNING_REQUESTS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    RBAC_GROUP,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)
from webhooks.garden.offline import report

pytestmark = pytest.mark.timeout(600)

PROJECT = "garden-dev"
MEMBER, VIEWER, MANAGER = "member", "viewer", "serviceaccountmanager"
OPERATORS = {"olga": "administrators", "vera": "viewers", "paul": "project-creation"}
"""Who has which role in all of the garden."""


@pytest.fixture(scope="module")
def box(devcluster_run: RunClusters) -> Iterator[Cluster]:
    """Ann, Bob and Carl have the roles of a project in the project of the demo data; Olga, Vera and Paul those of all."""
    name = f"box-{os.getpid()}"
    with Cluster(name=name) as cluster:
        assert main(["up", "--garden", "--demo-data", "--name", name]) == 0
        for person, held in {"ann": MEMBER, "bob": VIEWER, "carl": MANAGER}.items():
            given = f"gardener.cloud:system:project-{held}"
            bound = role_binding(person, user(person), of=CLUSTER_ROLES, to=given, namespace=PROJECT)
            cluster.api.create(ROLE_BINDINGS.path(namespace=PROJECT), bound)
        for person, held in OPERATORS.items():
            bound = role_binding(person, user(person), of=CLUSTER_ROLES, to=f"gardener.cloud:system:{held}")
            cluster.api.create(CLUSTER_ROLE_BINDINGS.path(), bound)
        for person, verb, resource in (
            ("olga", "get", "shoots"),
            ("vera", "get", "shoots"),
            ("paul", "create", "projects"),
        ):
            eventually(partial(Person(cluster, person).may, verb, resource, namespace=""), f"the role of {person}")
        for person, resource in {"ann": "shoots", "bob": "shoots", "carl": "serviceaccounts"}.items():
            eventually(partial(Person(cluster, person).may, "get", resource), f"the role of {person}")
        yield cluster


_GROUPS = {
    **dict.fromkeys(("configmaps", "events", "namespaces", "resourcequotas", "secrets", "serviceaccounts"), ""),
    **dict.fromkeys(("clusterrolebindings", "clusterroles", "rolebindings", "roles"), RBAC_GROUP),
    "bastions": resources.OPERATIONS_GROUP,
    "certificatesigningrequests": "certificates.k8s.io",
    "credentialsbindings": resources.SECURITY_GROUP,
    "customresourcedefinitions": "apiextensions.k8s.io",
    "leases": "coordination.k8s.io",
    "managedseeds": resources.SEED_MANAGEMENT_GROUP,
    "openidconnectpresets": resources.SETTINGS_GROUP,
    "tokenreviews": "authentication.k8s.io",
    "workloadidentities": resources.SECURITY_GROUP,
}
"""Of all others it is that of most kinds of a garden."""


@dataclass(frozen=True)
class Person:
    cluster: Cluster
    name: str

    def request(self, method: str, path: str, body: Object | None = None) -> Object:
        headers = {"Impersonate-User": self.name, "Impersonate-Group": "system:authenticated"}
        answer: Object = self.cluster.api.request(method, path, body, headers=headers)
        return answer

    def create(self, resource: Resource, obj: Object, *, namespace: str = PROJECT) -> Object:
        """Nothing is stored."""
        typed = {**resource.type_meta, **obj}
        return self.request("POST", f"{resource.path(namespace=namespace)}?dryRun=All", typed)

    def read(self, resource: Resource, *, namespace: str = PROJECT) -> list[Object]:
        items: list[Object] = self.request("GET", resource.path(namespace=namespace))["items"]
        return items

    def may(self, verb: str, resource: str, *, group: str | None = None, namespace: str = PROJECT) -> bool:
        name, _, subresource = resource.partition("/")
        attributes = {
            "verb": verb,
            "group": _GROUPS.get(name, resources.CORE_GROUP) if group is None else group,
            "resource": name,
            "subresource": subresource,
            "namespace": namespace,
        }
        review = {"spec": {"resourceAttributes": attributes}}
        answer = self.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        return bool(answer["status"]["allowed"])


def quota(name: str) -> Object:
    scope = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project"}
    return {"metadata": {"name": name}, "spec": {"scope": scope, "metrics": {"cpu": "10"}}}


def test_the_demo_data_went_through_the_webhooks_and_may_be_applied_again(box: Cluster) -> None:
    assert {"webhooks", "kube-apiserver", "kube-controller-manager"} <= box.component_states().keys()
    project = box.api.get(resources.PROJECTS.path(name="dev"))
    assert project["spec"]["owner"]["name"] == "devcluster-admin"
    assert main(["up", "--garden", "--demo-data", "--name", box.name]) == 0
    assert box.api.get(resources.PROJECTS.path(name="dev"))["metadata"]["generation"] == 1


def test_what_refers_to_something_that_admission_does_not_see_yet_is_applied_again(box: Cluster) -> None:
    (deployment,) = [each for each in objects.demo_data() if each["kind"] == "ControllerDeployment"]
    deployment["metadata"]["name"] = "late"
    references = [{"name": "late"}]
    registration = {
        **resources.CONTROLLER_REGISTRATIONS.type_meta,
        "metadata": {"name": "late"},
        "spec": {"deployment": {"deploymentRefs": references}},
    }
    with ThreadPoolExecutor() as pool:
        applied = pool.submit(objects.apply, box.api, registration)
        with pytest.raises(Forbidden, match='"late" not found'):
            box.api.apply(objects.path(registration), registration)
        objects.apply(box.api, deployment)
        assert applied.result()["spec"]["deployment"]["deploymentRefs"] == references


def test_demo_data_need_a_garden(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--demo-data", "--name", "nothing"]) == 1
    assert "--demo-data needs --garden" in capsys.readouterr().err


def test_a_controller_deployment_is_served_in_both_versions(box: Cluster) -> None:
    old = resources.CONTROLLER_DEPLOYMENTS.path(name="local").replace("/v1/", "/v1beta1/")
    eventually(lambda: box.api.raw("GET", old)[0] == 200)
    assert box.api.get(old)["type"] == "local"


def test_a_member_works_in_the_project_and_nowhere_else(box: Cluster) -> None:
    ann = Person(box, "ann")
    assert ann.create(SECRETS, {"metadata": {"name": "s"}})
    assert ann.create(resources.QUOTAS, quota("q"))
    assert ann.read(resources.SHOOTS) == []
    for resource, obj in ((SECRETS, {"metadata": {"name": "s"}}), (resources.QUOTAS, quota("q"))):
        with pytest.raises(Forbidden):
            ann.create(resource, obj, namespace="garden")
    with pytest.raises(Forbidden):
        ann.read(resources.INTERNAL_SECRETS)
    assert not ann.may("update", "shoots/binding")
    assert not ann.may("update", "shoots/status")
    assert ann.may("create", "shoots/adminkubeconfig")


def test_a_member_gives_no_user_rights_that_he_does_not_have(box: Cluster) -> None:
    may_read = role("reads", rule("", "configmaps", "get"), kind=CLUSTER_ROLES)["rules"]
    assert Person(box, "ann").create(ROLES, {"metadata": {"name": "reads"}, "rules": may_read})
    all_rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    with pytest.raises(Forbidden, match="attempting to grant"):
        Person(box, "ann").create(ROLES, {"metadata": {"name": "all"}, "rules": all_rules})


def test_a_viewer_reads_all_but_secrets(box: Cluster) -> None:
    bob = Person(box, "bob")
    for resource in (resources.SHOOTS, resources.CREDENTIALS_BINDINGS, CONFIG_MAPS):
        bob.read(resource)
    with pytest.raises(Forbidden):
        bob.read(SECRETS)
    with pytest.raises(Forbidden):
        bob.create(resources.QUOTAS, quota("q"))
    assert bob.may("create", "shoots/viewerkubeconfig")
    assert not bob.may("create", "shoots/adminkubeconfig")


def test_a_service_account_manager_manages_these_only(box: Cluster) -> None:
    carl = Person(box, "carl")
    assert carl.create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot"}})
    assert carl.may("create", "serviceaccounts/token")
    with pytest.raises(Forbidden):
        carl.read(resources.SHOOTS)


def test_who_has_no_role_reads_what_is_for_all(box: Cluster) -> None:
    zoe = Person(box, "zoe")
    assert [obj["metadata"]["name"] for obj in zoe.read(resources.CLOUD_PROFILES)] == ["local"]
    assert zoe.read(resources.SEEDS) == []
    for resource in (resources.PROJECTS, resources.CONTROLLER_REGISTRATIONS, resources.SHOOTS):
        with pytest.raises(Forbidden):
            zoe.read(resource)


def test_a_role_with_the_label_is_added_to_that_of_all_members(box: Cluster) -> None:
    ann, bob = Person(box, "ann"), Person(box, "bob")
    assert not ann.may("get", "widgets", group="example.com")
    added = role("widgets-of-projects", rule("example.com", "widgets", "get"), kind=CLUSTER_ROLES)
    added["metadata"]["labels"] = {"rbac.gardener.cloud/aggregate-to-project-member": "true"}
    box.api.create(CLUSTER_ROLES.path(), added)
    eventually(lambda: ann.may("get", "widgets", group="example.com"), "the role to be aggregated")
    assert not bob.may("get", "widgets", group="example.com")


ALL = "create delete deletecollection get list patch update watch"
READ = "get list watch"
OWN = "bastions configmaps credentialsbindings openidconnectpresets quotas rolebindings roles secretbindings shoots"
SEEN = "events resourcequotas serviceaccounts"


@pytest.mark.parametrize(
    ("who", "namespace", "verbs", "what", "others"),
    [
        ("ann", PROJECT, ALL, f"{OWN} secrets", ""),
        ("ann", PROJECT, ALL.replace("deletecollection ", ""), "namespacedcloudprofiles", "deletecollection"),
        ("ann", PROJECT, READ, SEEN, "create delete patch update"),
        ("ann", PROJECT, "create", "shoots/adminkubeconfig shoots/viewerkubeconfig", "get update"),
        ("ann", PROJECT, "", "internalsecrets shootstates shoots/binding shoots/status serviceaccounts/token", ALL),
        ("ann", "garden", "", f"{OWN} {SEEN} secrets shoots/adminkubeconfig shoots/viewerkubeconfig", ALL),
        ("bob", PROJECT, READ, f"{OWN} {SEEN} namespacedcloudprofiles", "create delete deletecollection patch update"),
        ("bob", PROJECT, "create", "shoots/viewerkubeconfig", "get update"),
        ("bob", PROJECT, "", "secrets internalsecrets shoots/adminkubeconfig serviceaccounts/token", ALL),
        ("bob", "garden", "", f"{OWN} {SEEN} shoots/viewerkubeconfig", ALL),
        ("carl", PROJECT, ALL, "serviceaccounts", ""),
        ("carl", PROJECT, "create", "serviceaccounts/token", "get update"),
        ("carl", PROJECT, "", f"{OWN} secrets shoots/viewerkubeconfig", ALL),
        ("carl", "garden", "", "serviceaccounts serviceaccounts/token", ALL),
        ("olga", "", ALL, f"{OWN} secrets events namespaces resourcequotas internalsecrets shootstates", ""),
        ("olga", "", ALL, "projects seeds cloudprofiles managedseeds workloadidentities customresourcedefinitions", ""),
        ("olga", "", ALL, "leases certificatesigningrequests clusterroles clusterrolebindings", ""),
        ("olga", "", "create", "shoots/adminkubeconfig serviceaccounts/token", ""),
        ("vera", "", READ, f"{OWN} projects seeds managedseeds leases namespaces", "create delete patch update"),
        ("vera", "", "create", "shoots/viewerkubeconfig", "get update"),
        ("vera", "", "", "secrets internalsecrets shootstates shoots/adminkubeconfig", ALL),
        ("paul", "", "create", "projects", "get list delete update"),
        ("paul", "", "", "shoots secrets managedseeds", ALL),
        ("zoe", "", READ, "cloudprofiles exposureclasses seeds customresourcedefinitions", "create delete update"),
        ("zoe", "", "create", "tokenreviews", "get"),
        ("zoe", "", "", "projects shoots secrets managedseeds", ALL),
    ],
)
def test_each_role_permits_what_it_is_for_and_nothing_else(
    box: Cluster, who: str, namespace: str, verbs: str, what: str, others: str
) -> None:
    """Others: verbs that are not permitted."""
    person = Person(box, who)
    requested = [
        (verb, each, verb in verbs.split()) for each in what.split() for verb in (*verbs.split(), *others.split())
    ]
    wrong = [
        f"{verb} {each}: {'denied' if expected else 'allowed'}"
        for verb, each, expected in requested
        if person.may(verb, each, namespace=namespace) is not expected
    ]
    assert wrong == []


def test_operators_have_the_rights_of_members_everywhere(box: Cluster) -> None:
    administrators = box.api.get(CLUSTER_ROLES.path(name="gardener.cloud:system:administrators"))
    granted = {resource for each in administrators["rules"] for resource in each["resources"]}
    assert {"shoots/adminkubeconfig", "serviceaccounts/token", "secrets", "customresourcedefinitions"} <= granted


def test_a_bootstrap_token_is_good_for_asking_for_a_certificate(box: Cluster) -> None:
    identity, secret = "abcdef", "0123456789abcdef"
    data = {
        "token-id": identity,
        "token-secret": secret,
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": "system:bootstrappers:gardenlet",
    }
    token = {"type": "bootstrap.kubernetes.io/token", "metadata": {"name": f"bootstrap-token-{identity}"}}
    box.api.create(SECRETS.path(namespace="kube-system"), {**token, "stringData": data})
    gardenlet = Api(url=box.url, ca=box.ca, token=f"{identity}.{secret}")
    csr = csr_object(signing_request("gardener.cloud:system:seed:one"), name="seed-one", signer=CLIENT)

    def ask() -> bool:
        """It takes a moment until the API server knows the token."""
        try:
            return bool(gardenlet.create(CERTIFICATE_SIGNING_REQUESTS.path(), csr))
        except ApiError:
            return False

    eventually(ask, "the token to be known")
    assert gardenlet.get(CERTIFICATE_SIGNING_REQUESTS.path(name="seed-one"))
    with pytest.raises(Forbidden):
        gardenlet.get(resources.SHOOTS.path())


MEMBERS = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann", "roles": ["unknown"]}]


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("much-too-long", {}),
        ("fits", {"members": MEMBERS, "tolerations": {"whitelist": [{"key": "a"}, {"key": "a"}]}}),
    ],
    ids=["schema", "webhooks"],
)
def test_manifests_are_refused_offline_with_the_same_words(box: Cluster, name: str, spec: Object) -> None:
    of = resources.PROJECTS
    obj = {**of.type_meta, "metadata": {"name": name}, "spec": spec}
    status, refused = box.api.raw("POST", f"{of.path()}?dryRun=All", obj)
    assert status == 422
    causes = [f"{cause['field']}: {cause['message']}" for cause in json.loads(refused)["details"]["causes"]]
    assert [str(finding) for finding in report(obj).findings] == causes
