"""Objects with thousands of items in a list: comparing and merging them takes no longer than reading them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kube.differences import is_drifted
from kube.merge import pod as of_pods
from kube.merge.options import MergeOptions
from kube.objects import Object

MANY = 5000


@contextmanager
def at_once() -> Iterator[None]:
    begin = time.thread_time()
    yield
    assert time.thread_time() - begin < 1.5


def pod(*items: Object, field: str = "env", **meta: object) -> Object:
    spec = {"containers": [{"name": "c", "env": [*items]}]} if field == "env" else {field: [*items]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", **meta}, "spec": spec}


def variables(**default: str) -> list[Object]:
    return [{"name": f"e{each}", "valueFrom": {"fieldRef": {"fieldPath": "a", **default}}} for each in range(MANY)]


def managed(manager: str, *names: str) -> Object:
    items: Object = {f'k:{{"name":"{name}"}}': {".": {}, "f:name": {}, "f:valueFrom": {}} for name in names}
    fields = {"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:env": {".": {}, **items}}}}}
    return {"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsV1": fields}


@pytest.mark.parametrize("is_changed", [False, True])
def test_drift_of_thousands_of_variables(is_changed: bool) -> None:
    own = managed("own", *(f"e{each}" for each in range(MANY)))
    others = [managed("other", f"e{MANY - 1}")] if is_changed else []
    live = variables(apiVersion="v1")
    if is_changed:
        live[-1]["valueFrom"]["fieldRef"]["fieldPath"] = "b"
    with at_once():
        found = is_drifted(pod(*variables()), pod(*live, managedFields=[own, *others]), field_manager="own")
    assert found == is_changed


def test_variables_that_were_put_before_thousands() -> None:
    own = managed("own", *(f"e{each}" for each in range(MANY)))
    before = [{"name": f"x{each}"} for each in range(MANY)]
    with at_once():
        assert not is_drifted(pod(*variables()), pod(*before, *variables(), managedFields=[own]), field_manager="own")


def test_thousands_of_tolerations() -> None:
    items = [{"key": f"k{each}", "operator": "Exists"} for each in range(2 * MANY)]
    live, wanted = pod(*items, field="tolerations"), pod(*reversed(items), {"key": "new"}, field="tolerations")
    with at_once():
        merged = of_pods.merge(wanted, live, MergeOptions(field_manager="own"))
    assert merged["spec"]["tolerations"] == [*items, {"key": "new"}]
