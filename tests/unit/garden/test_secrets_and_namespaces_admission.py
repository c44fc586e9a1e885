"""InternalSecrets; Namespaces of Projects; Secrets with the internal domain."""

import base64

import pytest

from gardener.api import garden as resources
from kit.objects import obj
from kit.webhooks.garden import Asked
from kube.objects import Object
from kube.resources import NAMESPACES, SECRETS
from webhooks.garden.kinds.domain_secret import DOMAIN_SECRET
from webhooks.garden.kinds.internal_secret import INTERNAL_SECRET
from webhooks.garden.kinds.namespace import NAMESPACE


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_texts_become_data() -> None:
    created = Asked(INTERNAL_SECRET).create({"stringData": {"a": "b"}, "data": {"a": encoded("x"), "c": encoded("d")}})
    assert created.object["data"] == {"a": encoded("b"), "c": encoded("d")}
    assert "stringData" not in created.object


def test_a_type_that_is_not_specified_stays() -> None:
    old = {"type": "t", "data": {}}
    assert Asked(INTERNAL_SECRET).update(old, {"data": {"a": encoded("b")}}).object["type"] == "t"


@pytest.mark.parametrize(
    ("obj", "fields"),
    [
        ({"data": {"a b": encoded("x")}}, {"data[a b]"}),
        ({"data": {"..x": encoded("x")}}, {"data[..x]"}),
        ({"data": {"a": encoded("x" * (1 << 20)), "b": encoded("y")}}, {"data"}),
        ({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}}, {"data[tls.key]"}),
        ({"type": "kubernetes.io/basic-auth"}, {"data[username]", "data[password]"}),
        ({"type": "kubernetes.io/basic-auth", "data": {"username": encoded("u")}}, set()),
        ({"type": "kubernetes.io/ssh-auth"}, {"data[ssh-privatekey]"}),
        ({"type": "kubernetes.io/dockercfg", "data": {".dockercfg": encoded("no")}}, {"data[.dockercfg]"}),
        ({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": encoded("{}")}}, set()),
        (
            {"type": "kubernetes.io/service-account-token"},
            {"metadata.annotations[kubernetes.io/service-account.name]"},
        ),
    ],
)
def test_data_and_types(obj: Object, fields: set[str]) -> None:
    outcome = Asked(INTERNAL_SECRET).create(obj)
    assert outcome.fields == fields, outcome.message
    assert "no" not in [word.strip('"') for word in outcome.message.split()]


def test_what_is_immutable_stays() -> None:
    old = {"data": {"a": encoded("b")}, "immutable": True}
    requested = Asked(INTERNAL_SECRET)
    assert requested.update(old, {**old, "data": {"a": encoded("c")}}).fields == {"data"}
    assert requested.update(old, {"data": old["data"]}).fields == {"immutable"}
    assert requested.update(old, {**old, "metadata": {"labels": {"a": "b"}}}).status is None


# --- namespaces


DELETING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
KEPT = {"namespace.gardener.cloud/keep-after-project-deletion": "true"}
PROJECT, LEAVING = obj(resources.PROJECTS, "dev"), obj(resources.PROJECTS, "dev", **DELETING)
SHOOT = obj(resources.SHOOTS, "garden-dev/s")


@pytest.mark.parametrize(
    ("garden", "meta", "message"),
    [
        ([PROJECT], {}, 'direct deletion of namespace "garden-dev" is not permitted (you must delete the'),
        ([LEAVING, SHOOT], {}, 'deletion of namespace "garden-dev" is not permitted (it still contains Shoots)'),
        ([LEAVING], {"annotations": KEPT}, "is not permitted (it stays when its project goes"),
        ([LEAVING], {"annotations": dict.fromkeys(KEPT, "false")}, ""),
        ([LEAVING], {}, ""),
        ([PROJECT, SHOOT], DELETING, ""),
        ([], {}, ""),
    ],
)
def test_a_namespace_goes_with_its_project(garden: list[Object], meta: Object, message: str) -> None:
    labels = {"project.gardener.cloud/name": "dev"}
    outcome = Asked(NAMESPACE, garden=garden).delete({"metadata": {"name": "garden-dev", "labels": labels, **meta}})
    assert outcome.code == (403 if message else 200)
    assert message in outcome.message


def test_shoots_that_no_watch_has_shown_yet_count() -> None:
    leaving = Asked(NAMESPACE, garden=[LEAVING])
    leaving.reviews.stored = [SHOOT]
    labels = {"project.gardener.cloud/name": "dev"}
    assert leaving.delete({"metadata": {"name": "garden-dev", "labels": labels}}).code == 403
    assert leaving.delete({"metadata": {"name": "garden-other", "labels": labels}}).code == 200
    used = Asked(DOMAIN_SECRET)
    used.reviews.stored = [SHOOT]
    assert used.delete(domain()).code == 403
    assert used.update(domain(), domain(of="other.example.com")).code == 403
    assert used.update(domain(), domain()).code == 200


# --- the internal domain


def domain(
    name: str = "i", of: str = "in.example.com", *, role: str = "internal-domain", namespace: str = "garden"
) -> Object:
    annotations = {"dns.gardener.cloud/domain": of, "dns.gardener.cloud/provider": "local"}
    return obj(SECRETS, f"{namespace}/{name}", labels={"gardener.cloud/role": role}, annotations=annotations)


def test_a_namespace_has_one_internal_domain() -> None:
    assert Asked(DOMAIN_SECRET, garden=[domain()]).create(domain("j")).code == 403
    assert Asked(DOMAIN_SECRET, garden=[domain()]).create(domain()).code == 200
    assert Asked(DOMAIN_SECRET, garden=[domain("d", role="default-domain")]).create(domain()).code == 200


@pytest.mark.parametrize("new", [domain(of="other.example.com"), domain(role="x")])
def test_the_internal_domain_stays_while_there_are_shoots(new: Object) -> None:
    refused = Asked(DOMAIN_SECRET, garden=[domain(), SHOOT]).update(domain(), new)
    assert refused.code == 403
    assert "cannot change domain because there are still shoots left in the system" in refused.message
    assert Asked(DOMAIN_SECRET, garden=[domain()]).update(domain(), new).code == 200
    assert Asked(DOMAIN_SECRET, garden=[domain(), SHOOT]).delete(domain()).code == 403
    assert Asked(DOMAIN_SECRET, garden=[domain()]).delete(domain()).code == 200


def used_seed(field: str, name: str) -> Object:
    return {**SHOOT, field: {"seedName": name}}


SOIL = [obj(resources.SEEDS, "soil"), obj(NAMESPACES, "seed-soil")]
LEFT_BEHIND = obj(NAMESPACES, "seed-soil", **DELETING)


@pytest.mark.parametrize(
    ("namespace", "garden", "code"),
    [
        ("garden-dev", [SHOOT, used_seed("spec", "dev"), obj(NAMESPACES, "garden-dev")], 200),
        ("seed-soil", [*SOIL, SHOOT, used_seed("spec", "sand")], 200),
        ("seed-soil", [*SOIL, used_seed("spec", "soil")], 403),
        ("seed-soil", [*SOIL, used_seed("status", "soil")], 403),
        # That of a Seed that was there, and of one of the same name that has come meanwhile.
        ("seed-soil", [SOIL[1], used_seed("spec", "soil")], 200),
        ("seed-soil", [SOIL[0], LEFT_BEHIND, used_seed("spec", "soil")], 200),
    ],
)
def test_the_internal_domain_is_that_of_the_garden_and_of_a_seed(
    namespace: str, garden: list[Object], code: int
) -> None:
    own, second = domain(namespace=namespace), domain("j", namespace=namespace)
    requested = Asked(DOMAIN_SECRET, garden=[*garden, own])
    assert requested.delete(own).code == code
    assert requested.update(own, domain(of="other.example.com", namespace=namespace)).code == code
    assert requested.update(own, domain(role="x", namespace=namespace)).code == code
    is_of_a_seed = SOIL[0] in garden and SOIL[1] in garden
    assert requested.create(second).code == (403 if is_of_a_seed else 200)
