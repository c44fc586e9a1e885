from typing import Any

import pytest
from hypothesis import strategies as st

from config.resource_manager.webhooks import ProjectedTokenMount
from gardener.keys import PROJECTED_TOKEN_EXPIRATION
from kit.objects import obj
from kit.webhooks.mutating import (
    mapping,
    mutated,
    one_of,
    pods,
    record,
    refusal,
    several,
    state_of,
    well_behaved,
    words,
)
from kube.errors import NotFound
from webhooks.admission import Denied
from webhooks.handlers import projected_token_mount

ACCOUNTS = {
    "mounts-none": {"automountServiceAccountToken": False},
    "mounts": {"automountServiceAccountToken": True},
    "says-nothing": {},
    "default": {"automountServiceAccountToken": False},
}
accounts = state_of(*(obj("v1 ServiceAccount", f"ns/{name}", **fields) for name, fields in ACCOUNTS.items()))
mutation = projected_token_mount.mutation(ProjectedTokenMount(enabled=True), accounts)
NAME, PATH = "kube-api-access-gardener", "/var/run/secrets/kubernetes.io/serviceaccount"
MOUNT = {"name": NAME, "mountPath": PATH, "readOnly": True}
OWN = {"volumeMounts": [{"name": "own", "mountPath": PATH}]}
NO_NUMBER = {PROJECTED_TOKEN_EXPIRATION: "x"}


def volume(seconds: int = 43200) -> Any:
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": seconds, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"fieldRef": field, "path": "namespace"}]}},
    ]
    return {"name": NAME, "projected": {"defaultMode": 420, "sources": sources}}


def pod(*, annotations: Any = None, **spec: Any) -> Any:
    return {
        "metadata": {"annotations": annotations},
        "spec": {"serviceAccountName": "mounts-none", "containers": [{"name": "c"}], **spec},
    }


def test_all_containers_get_the_token() -> None:
    other = {"name": "other", "mountPath": "/other"}
    before = pod(
        volumes=[{"name": "other"}],
        containers=[{"name": "c"}, {"volumeMounts": [other]}],
        initContainers=[{"volumeMounts": None}],
        ephemeralContainers=[{"name": "e"}],
        securityContext={"fsGroup": 1},
    )
    after = pod(
        volumes=[{"name": "other"}, volume()],
        containers=[{"name": "c", "volumeMounts": [MOUNT]}, {"volumeMounts": [other, MOUNT]}],
        initContainers=[{"volumeMounts": [MOUNT]}],
        ephemeralContainers=[{"name": "e"}],
        securityContext={"fsGroup": 1},
    )
    assert mutated(mutation, before) == after


@pytest.mark.parametrize("path", [PATH, f"{PATH}/", "/var/run//secrets/kubernetes.io/serviceaccount"])
def test_a_container_that_mounts_something_of_its_own_there_keeps_it(path: str) -> None:
    own = {"volumeMounts": [{"name": "own", "mountPath": path}]}
    before = pod(containers=[own, {"name": "c"}], initContainers=[own, {"name": "i"}])
    after = pod(
        volumes=[volume()],
        containers=[own, {"name": "c", "volumeMounts": [MOUNT]}],
        initContainers=[own, {"name": "i", "volumeMounts": [MOUNT]}],
    )
    assert mutated(mutation, before) == after


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(pod(automountServiceAccountToken=True), id="the pod wants a token"),
        pytest.param(pod(automountServiceAccountToken=None), id="the pod says nothing"),
        pytest.param(pod(volumes=[{"name": "kube-api-acces"}]), id="another volume"),
    ],
)
def test_pods_get_it_also_if(changed: Any) -> None:
    assert mutated(mutation, changed)["spec"]["volumes"][-1] == volume()


@pytest.mark.parametrize(
    "unchanged",
    [
        pytest.param({}, id="no spec"),
        pytest.param(pod(serviceAccountName=""), id="no ServiceAccount"),
        pytest.param(pod(serviceAccountName=None, serviceAccount="mounts-none"), id="the alias does not count"),
        pytest.param(pod(serviceAccountName="default"), id="the default ServiceAccount"),
        pytest.param(pod(serviceAccountName="mounts"), id="the ServiceAccount mounts its token"),
        pytest.param(pod(serviceAccountName="says-nothing"), id="the ServiceAccount mounts its token by default"),
        pytest.param(pod(automountServiceAccountToken=False), id="the pod wants no token"),
        pytest.param(pod(volumes=[{"name": "kube-api-access-x"}]), id="there is a token"),
        pytest.param(pod(containers=[OWN]), id="all containers mount something of their own there"),
        pytest.param(pod(annotations=NO_NUMBER, automountServiceAccountToken=False), id="no need to parse"),
    ],
)
def test_pods_are_left_alone_if(unchanged: Any) -> None:
    assert mutated(mutation, unchanged) == unchanged


def test_the_service_account_is_looked_up_in_the_namespace_of_the_request() -> None:
    with pytest.raises(NotFound, match='^serviceaccounts "mounts-none" not found$'):
        mutated(mutation, pod(), namespace="elsewhere")


@pytest.mark.parametrize(
    "unneeded", [{"automountServiceAccountToken": False}, {"volumes": [{"name": "kube-api-access-x"}]}]
)
def test_a_missing_service_account_is_an_error_even_if_no_token_is_wanted(unneeded: Any) -> None:
    with pytest.raises(NotFound, match='^serviceaccounts "missing" not found$'):
        mutated(mutation, pod(serviceAccountName="missing", **unneeded))


@pytest.mark.parametrize(
    ("text", "seconds"), [("600", 600), ("+3600", 3600), ("0086400", 86400), ("4294967296", 2**32)]
)
def test_an_annotation_overrides_the_expiration(text: str, seconds: int) -> None:
    changed = mutated(mutation, pod(annotations={PROJECTED_TOKEN_EXPIRATION: text}))
    assert changed["spec"]["volumes"] == [volume(seconds)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", 'strconv.ParseInt: parsing "": invalid syntax'),
        (None, 'strconv.ParseInt: parsing "": invalid syntax'),
        ("1h", 'strconv.ParseInt: parsing "1h": invalid syntax'),
        ("1_000", 'strconv.ParseInt: parsing "1_000": invalid syntax'),
        (" 600", 'strconv.ParseInt: parsing " 600": invalid syntax'),
        ("٣٦٠٠", 'strconv.ParseInt: parsing "٣٦٠٠": invalid syntax'),
        ("9" * 30, f'strconv.ParseInt: parsing "{"9" * 30}": value out of range'),
        ("9223372036854775808", 'strconv.ParseInt: parsing "9223372036854775808": value out of range'),
        ("599", "must be between 600 and 4294967296 seconds, got 599"),
        ("-600", "must be between 600 and 4294967296 seconds, got -600"),
        ("4294967297", "must be between 600 and 4294967296 seconds, got 4294967297"),
    ],
)
def test_an_expiration_that_cannot_be_is_refused(text: str, problem: str) -> None:
    message = f'annotation "projected-token-mount.resources.gardener.cloud/expiration-seconds": {problem}'
    assert refusal(mutation, pod(annotations={PROJECTED_TOKEN_EXPIRATION: text})) == Denied(message)


containers = several(record(name=words, volumeMounts=several(record(name=words, mountPath=one_of("/v", PATH)))))
some_pods = pods(
    record(annotations=mapping(PROJECTED_TOKEN_EXPIRATION)),
    serviceAccountName=one_of("default", "mounts", "mounts-none", "missing"),
    automountServiceAccountToken=st.booleans(),
    volumes=several(record(name=one_of("v", "kube-api-access-1"))),
    containers=containers,
    initContainers=containers,
)

test_it_behaves_well = well_behaved(
    mutation,
    some_pods,
    touches=["spec.volumes", "spec.containers[].volumeMounts", "spec.initContainers[].volumeMounts"],
)
