"""What node agents may do, and how SubjectAccessReviews are read and answered."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardener.keys import NODE_AGENT_USER_PREFIX, NODE_AGENTS_GROUP
from gardener.rights.requests import Attributes, Requirement, Selector
from kit.objects import secret
from kube.errors import NotFound
from kube.objects import Object
from webhooks.authorizers.decisions import ALLOW, NO_OPINION, Decision, deny
from webhooks.authorizers.review import V1, V1BETA1, Unreadable, decode, encode, encode_error
from webhooks.handlers.node_agent_authorizer.files import Reference, references
from webhooks.handlers.node_agent_authorizer.rules import (
    COMMON_SECRETS,
    CONTROL_PLANE_SECRETS,
    authorize,
    equalities,
)

USER = f"{NODE_AGENT_USER_PREFIX}m1"
LEASES, CSRS = "leases.coordination.k8s.io", "certificatesigningrequests.certificates.k8s.io"
JSON = "application/json"
VERBS = "only the following verbs are allowed for this resource type: "
SUBRESOURCES = "only the following subresources are allowed for this resource type: "
NOT_ITS_LEASE = deny(
    'this gardener-node-agent can only access leases [gardener-node-agent-n1 osc-1] in "kube-system" namespace'
)
NOT_ITS_REQUEST = deny(f'gardener-node-agent is only allowed to read or request CSRs for its own user "{USER}"')
NOT_ITS_SECRET = deny(
    f'gardener-node-agent can only access secrets [{" ".join(COMMON_SECRETS)} osc-1 referred] in "kube-system" namespace'
)
ITS_LEASE = deny('this gardener-node-agent can only access leases [gardener-node-agent-n1] in "kube-system" namespace')
COMMON_ONLY = deny(
    f'gardener-node-agent can only access secrets [{" ".join(COMMON_SECRETS)}] in "kube-system" namespace'
)
NEEDS_SELECTOR = deny("can only list/watch pods with spec.nodeName=n1 field selector")
RESOURCE = {
    "verb": "list",
    "version": "v1",
    "resource": "pods",
    "namespace": "ns",
    "fieldSelector": {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n1"]}]},
}
NO_REQUIREMENT = {"fieldSelector": {"requirements": [1]}}


@dataclass
class Known:
    """Machine m1 is node n1, with pod ns/p."""

    nodes: dict[str, str] = field(default_factory=lambda: {"m1": "n1"})
    machines_exist: bool = True
    requested: list[str] = field(default_factory=list)

    async def node_of(self, machine: str) -> str | None:
        self.requested.append(f"node {machine}")
        return self.nodes.get(machine)

    async def configs_of(self, machine: str) -> Sequence[str] | None:
        self.requested.append(f"configs {machine}")
        return ["osc-1"] if self.machines_exist else None

    async def secrets_of(self, machine: str) -> Sequence[str] | None:
        self.requested.append(f"secrets {machine}")
        return ["osc-1", "referred"] if self.machines_exist else None

    async def user_of_request(self, name: str) -> str:
        self.requested.append(f"csr {name}")
        if name == "unknown":
            raise NotFound(404, message="not there")
        return USER if name == "mine" else "other"

    async def node_name_of_pod(self, namespace: str, name: str) -> str:
        self.requested.append(f"pod {namespace}/{name}")
        return "n1" if name == "p" else "n2"


def wants(verb: str, kind: str, name: str = "", namespace: str = "", **others: Any) -> Attributes:
    resource, _, subresource = kind.partition("/")
    plural, _, group = resource.partition(".")
    return Attributes(
        user=others.pop("user", USER),
        groups=others.pop("groups", ("system:authenticated", NODE_AGENTS_GROUP)),
        verb=verb,
        group=group,
        resource=plural,
        subresource=subresource,
        name=name,
        namespace=namespace,
        **others,
    )


async def decided(requested: Attributes, known: Known | None = None, *, with_selectors: bool = False) -> Decision:
    return await authorize(requested, known or Known(), with_selectors=with_selectors)


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        (wants("get", "nodes", user="system:node:n1"), NO_OPINION),
        (wants("get", "nodes", groups=("system:authenticated",)), NO_OPINION),
        (wants("get", "nodes", groups=()), NO_OPINION),
        (wants("get", "nodes", user=NODE_AGENT_USER_PREFIX), deny()),
        (wants("list", "nodes"), ALLOW),
        (wants("get", "configmaps"), deny()),
        (wants("get", "pods.metrics.k8s.io"), deny()),
        (wants("get", "", is_resource_request=False), deny()),
        (wants("delete", "nodes"), deny(f"{VERBS}[get list watch patch update]")),
        (wants("delete", "nodes/proxy"), deny(f"{SUBRESOURCES}[status]")),
        (wants("create", "pods"), deny(f"{VERBS}[get list watch delete]")),
        (wants("get", "pods/log"), deny(f"{SUBRESOURCES}[]")),
        (wants("update", "secrets"), deny(f"{VERBS}[get list watch]")),
        (wants("delete", LEASES), deny(f"{VERBS}[get list watch create update]")),
        (wants("list", CSRS), deny(f"{VERBS}[get create]")),
        (wants("create", f"{CSRS}/approval"), deny(f"{SUBRESOURCES}[]")),
        (wants("get", "events"), deny(f"{VERBS}[create patch]")),
        (wants("update", "events.events.k8s.io"), deny(f"{VERBS}[create patch]")),
        (wants("create", "events"), ALLOW),
        (wants("patch", "events.events.k8s.io"), ALLOW),
        (wants("watch", "nodes"), ALLOW),
        (wants("create", CSRS), ALLOW),
    ],
)
async def test_decisions_that_need_no_look_at_any_cluster(requested: Attributes, expected: Decision) -> None:
    known = Known()
    assert await decided(requested, known) == expected
    assert known.requested == []


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        (wants("get", CSRS, "mine"), ALLOW),
        (wants("get", CSRS, "other"), NOT_ITS_REQUEST),
        (wants("get", LEASES, "gardener-node-agent-n1", "kube-system"), ALLOW),
        (wants("update", LEASES, "osc-1", "kube-system"), ALLOW),
        (wants("create", LEASES, "", "kube-system"), ALLOW),
        (wants("create", LEASES, "", "default"), NOT_ITS_LEASE),
        (wants("get", LEASES, "gardener-node-agent-n1", "default"), NOT_ITS_LEASE),
        (wants("update", LEASES, "gardener-node-agent-n2", "kube-system"), NOT_ITS_LEASE),
        (wants("list", LEASES, "", "kube-system"), NOT_ITS_LEASE),
        (wants("get", "nodes", "n1"), ALLOW),
        (wants("patch", "nodes/status", "n1"), ALLOW),
        (wants("update", "nodes", "n2"), deny('this gardener-node-agent can only access node "n1"')),
        (wants("get", "nodes", "m1"), deny('this gardener-node-agent can only access node "n1"')),
        (wants("get", "pods", "p", "ns"), ALLOW),
        (wants("delete", "pods", "p", "ns"), ALLOW),
        (wants("delete", "pods", "q", "ns"), deny('pod "ns/q" does not belong to node "n1"')),
        (wants("list", "pods"), ALLOW),
        (wants("get", "secrets", "gardener-valitail", "kube-system"), ALLOW),
        (wants("get", "secrets", "osc-1", "kube-system"), ALLOW),
        (wants("watch", "secrets", "referred", "kube-system"), ALLOW),
        (wants("get", "secrets", "referred", "default"), NOT_ITS_SECRET),
        (wants("get", "secrets", "other", "kube-system"), NOT_ITS_SECRET),
        (wants("list", "secrets", "", "kube-system"), NOT_ITS_SECRET),
    ],
)
async def test_an_agent_may_read_and_write_its_own_and_nothing_else(requested: Attributes, expected: Decision) -> None:
    assert await decided(requested) == expected


@pytest.mark.parametrize(
    "requested",
    [
        *(wants("get", LEASES, "gardener-node-agent-n1", "kube-system"), wants("get", "nodes", "m1")),
        *(wants("get", "pods", "p", "ns"), wants("list", "pods")),
    ],
)
async def test_without_a_node_there_is_nothing_of_its_own(requested: Attributes) -> None:
    assert await decided(requested, Known(nodes={})) == deny('no node for "m1" found')


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        (wants("get", LEASES, "gardener-node-agent-n1", "kube-system"), ALLOW),
        (wants("get", LEASES, "osc-1", "kube-system"), NO_OPINION),
        (wants("get", LEASES, "osc-1", "default"), ITS_LEASE),
        (wants("list", LEASES, "", "kube-system"), ITS_LEASE),
        (wants("get", "secrets", "gardener-valitail", "kube-system"), ALLOW),
        (wants("get", "secrets", "osc-1", "kube-system"), NO_OPINION),
        (wants("get", "secrets", "referred", "kube-system"), NO_OPINION),
        (wants("get", "secrets", "osc-1", "default"), COMMON_ONLY),
        (wants("list", "secrets", "", "kube-system"), COMMON_ONLY),
    ],
)
async def test_where_no_machine_reports_what_is_its_own_others_may_decide(
    requested: Attributes, expected: Decision
) -> None:
    assert await decided(requested, Known(machines_exist=False)) == expected


@pytest.mark.parametrize("name", COMMON_SECRETS)
async def test_a_name_that_is_neither_a_machine_nor_a_node_learns_nothing(name: str) -> None:
    requested = wants("get", "secrets", name, "kube-system")
    assert await decided(requested, Known(nodes={}, machines_exist=False)) == NO_OPINION
    assert await decided(requested, Known(nodes={})) == ALLOW, "its Machine is about to become a Node"


@pytest.mark.parametrize("name", CONTROL_PLANE_SECRETS)
@pytest.mark.parametrize("machines_exist", [False, True])
async def test_no_agent_is_an_administrator_by_being_one(name: str, machines_exist: bool) -> None:
    known = Known(machines_exist=machines_exist)
    assert await decided(wants("get", "secrets", name, "kube-system"), known) == NO_OPINION


async def test_what_cannot_be_found_out_is_an_error() -> None:
    with pytest.raises(NotFound):
        await decided(wants("get", CSRS, "unknown"))


def selecting(operator: str, *values: str, key: str = "spec.nodeName") -> Selector:
    return Selector(requirements=(Requirement(key, operator, values),))


@pytest.mark.parametrize(
    ("selector", "name", "expected"),
    [
        (selecting("In", "n1"), "", ALLOW),
        (Selector(raw="spec.nodeName=n1"), "", ALLOW),
        (Selector(raw="status.phase!=Failed,spec.nodeName==n1"), "", ALLOW),
        (selecting("In", "n2"), "", NEEDS_SELECTOR),
        (selecting("NotIn", "n1"), "", NEEDS_SELECTOR),
        (selecting("In", "n1", key="metadata.name"), "", NEEDS_SELECTOR),
        (Selector(raw="spec.nodeName!=n1"), "", NEEDS_SELECTOR),
        (Selector(), "", NEEDS_SELECTOR),
        (Selector(), "p", ALLOW),
        (Selector(), "q", deny('pod "ns/q" does not belong to node "n1"')),
    ],
)
@pytest.mark.parametrize("verb", ["list", "watch"])
async def test_pods_are_listed_by_node_if_selectors_count(
    verb: str, selector: Selector, name: str, expected: Decision
) -> None:
    requested = wants(verb, "pods", name, "ns", field_selector=selector)
    assert await decided(requested, with_selectors=True) == expected
    assert await decided(requested) == ALLOW


@pytest.mark.parametrize(
    "selector",
    [
        *(selecting(*requested) for requested in (("In",), ("In", "n1", "n2"), ("Exists",), ("Like", "n1"))),
        Selector(raw="spec.nodeName"),
    ],
)
async def test_an_invalid_selector_is_an_error(selector: Selector) -> None:
    with pytest.raises(ValueError, match="error parsing field selector"):
        await decided(wants("list", "pods", field_selector=selector), with_selectors=True)


@given(st.text())
def test_whatever_a_selector_reports_it_is_read_or_refused(raw: str) -> None:
    try:
        found = equalities(Selector(raw=raw))
    except ValueError:
        return
    assert len(found) <= raw.count("=")


def config(text: str) -> Object:
    return secret("kube-system/osc", {"osc.yaml": text})


def test_the_secrets_of_files_are_found() -> None:
    text = """
        spec:
          files:
          - {path: /a, content: {secretRef: {name: a, dataKey: x}}}
          - {path: /b, content: {inline: {data: b}}}
          - {path: /c, hostName: host-1, content: {secretRef: {name: c}}}
        status:
          extensionFiles:
          - {path: /d, content: {secretRef: {name: d}}}
    """
    assert references(config(text)) == (Reference("a", ""), Reference("c", "host-1"), Reference("d", ""))
    assert references(config("spec: {}")) == ()
    assert references({"data": None}) == ()


@pytest.mark.parametrize(
    "text",
    [
        *("[", "- a", "spec: 1", "spec: {files: 1}", "a: &a [1]\nb: *a", "[" * 100 + "]" * 100, "spec: {files: [1]}"),
        pytest.param("spec: {files: [" + "{}," * 300_000 + "]}", id="too many values"),
    ],
)
def test_a_config_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(ValueError, match='^osc.yaml of secret "kube-system/osc" is not an OperatingSystemConfig$'):
        references(config(text))


MEMBERS = st.sampled_from(["verb", "fieldSelector", "requirements", "values", "key"])


def review(api_version: str, **spec: Any) -> bytes:
    return orjson.dumps({"apiVersion": api_version, "kind": "SubjectAccessReview", "spec": spec})


@pytest.mark.parametrize(("api_version", "groups"), [(V1, "groups"), (V1BETA1, "group")])
@pytest.mark.parametrize("content_type", [JSON, "application/json; charset=utf-8"])
def test_a_review_is_read(api_version: str, groups: str, content_type: str) -> None:
    body = review(api_version, user="u", resourceAttributes=RESOURCE, **{groups: ["g"]})
    read = decode(body, content_type)
    assert read.api_version == api_version
    of_pods = wants("list", "pods", namespace="ns", field_selector=selecting("In", "n1"))
    assert read.attributes == replace(of_pods, user="u", groups=("g",))


def test_a_request_for_a_path_is_no_resource_request() -> None:
    read = decode(review(V1, user="u", nonResourceAttributes={"path": "/healthz", "verb": "get"}), JSON)
    assert not read.attributes.is_resource_request
    assert (read.attributes.verb, read.attributes.path) == ("get", "/healthz")


@pytest.mark.parametrize(
    ("body", "content_type", "code", "text"),
    [
        (b"", JSON, 422, "request body is empty"),
        (b"{}", "text/plain", 400, "contentType=text/plain, expected application/json"),
        (b"{}", "", 400, "contentType=, expected application/json"),
        (b"{", JSON, 400, "couldn't get version/kind"),
        (b"[]", JSON, 400, "not a SubjectAccessReview"),
        (b'{"apiVersion":"v1","kind":"Pod"}', JSON, 400, 'no kind "Pod" is registered'),
        (review(V1, user=1), JSON, 400, "user must be a string"),
        (review(V1, groups="g"), JSON, 400, "groups must be a list of strings"),
        (review(V1, resourceAttributes=[]), JSON, 400, "resourceAttributes must be an object"),
        (review(V1, resourceAttributes=NO_REQUIREMENT), JSON, 400, "requirements must be a list of objects"),
        pytest.param(review(V1, groups=[{}] * 1_000_000), JSON, 413, "limit is 250000", id="too many values"),
    ],
)
def test_what_is_no_review_is_an_error(body: bytes, content_type: str, code: int, text: str) -> None:
    with pytest.raises(Unreadable) as error:
        decode(body, content_type)
    assert error.value.code == code
    assert text in str(error.value)


@pytest.mark.parametrize("api_version", [V1, V1BETA1])
@pytest.mark.parametrize(
    ("decision", "status"),
    [
        (ALLOW, {"allowed": True}),
        (deny("no"), {"allowed": False, "denied": True, "reason": "no"}),
        (deny(), {"allowed": False, "denied": True}),
        (NO_OPINION, {"allowed": False}),
    ],
)
def test_a_decision_is_written(api_version: str, decision: Decision, status: dict[str, Any]) -> None:
    answer = orjson.loads(encode(api_version, decision))
    assert (answer["apiVersion"], answer["kind"], answer["status"]) == (api_version, "SubjectAccessReview", status)


def test_an_error_is_written() -> None:
    answer = orjson.loads(encode_error(V1, 500, "it broke"))
    assert answer["status"] == {"allowed": False, "evaluationError": "500 it broke"}


@given(
    st.binary(max_size=200)
    | st.dictionaries(
        st.sampled_from(["user", "groups", "resourceAttributes", "nonResourceAttributes"]),
        st.recursive(
            st.none() | st.integers(-5, 5) | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MEMBERS, inner),
        ),
    ).map(lambda spec: review(V1, **spec))
)
def test_garbage_is_refused(body: bytes) -> None:
    try:
        assert decode(body, JSON).api_version == V1
    except Unreadable as error:
        assert error.code in {400, 422}
