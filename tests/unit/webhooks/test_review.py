import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from kube.objects import Object
from webhooks.admission import Allowed, Answer, Changed, Denied, Errored, Failure, Handler, Kind, Request, ResourceName
from webhooks.generic import defaulter
from webhooks.review import TOO_LARGE, Reviewer, read

JSON = "application/json"
REQUEST: Object = {
    "uid": "u1",
    "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
    "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
    "operation": "CREATE",
    "name": "n",
    "namespace": "ns",
    "object": {"metadata": {}},
    "oldObject": None,
    "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    "dryRun": True,
}

NO_REVIEW = "unable to decode into AdmissionReview:"
EXPECTED = "expected AdmissionReview of admission.k8s.io/v1"
STATUS = {"status": "Failure", "code": 404, "reason": "NotFound", "message": "m", "details": {"name": "n"}}


def body(request: Any = REQUEST, **review: Any) -> bytes:
    whole = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request, **review}
    return json.dumps({name: value for name, value in whole.items() if value is not ...}).encode()


def answering(answer: Answer) -> Handler:
    async def handle(_: Request) -> Answer:
        return answer

    return handle


async def reviewed(answer: Answer, content: bytes | None = None, *, content_type: str = JSON) -> Any:
    reviewer = Reviewer("test", answering(answer), path="/test")
    return json.loads(await reviewer(body() if content is None else content, content_type))


def test_a_request_is_read_with_all_that_handlers_see() -> None:
    review = read(body())
    assert review.api_version == "admission.k8s.io/v1"
    assert review.request == Request(
        uid="u1",
        kind=Kind("apps", "v1", "Deployment"),
        resource=ResourceName("apps", "v1", "deployments"),
        operation="CREATE",
        name="n",
        namespace="ns",
        object={"metadata": {}},
        old_object=None,
        options={"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        dry_run=True,
    )


def test_nulls_and_missing_fields_are_empty() -> None:
    nothing = read(body(dict.fromkeys(REQUEST))).request
    assert nothing == read(body({"anything": {}})).request
    assert nothing == Request(
        uid="", kind=Kind("", "", ""), resource=ResourceName("", "", ""), operation="", name="", namespace=""
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "request body is empty"),
        (b"{", "unexpected end of data: line 1 column 2 (char 1)"),
        (b'"text"', f"{NO_REVIEW} Expected `object`, got `str`"),
        (b"\xff", "str is not valid UTF-8: surrogates not allowed: line 1 column 1 (char 0)"),
        (body(None), "AdmissionReview has no request"),
        (b"{}", "AdmissionReview has no request"),
        (body(kind="Pod"), f'no kind "Pod" is registered for version "admission.k8s.io/v1"; {EXPECTED}'),
        (body(apiVersion="v1"), f'no kind "AdmissionReview" is registered for version "v1"; {EXPECTED}'),
        (body({"uid": 3}), f"{NO_REVIEW} Expected `str | null`, got `int` - at `$.request.uid`"),
        (body({"dryRun": "yes"}), f"{NO_REVIEW} Expected `bool | null`, got `str` - at `$.request.dryRun`"),
    ],
)
async def test_what_is_no_review_is_answered_without_a_uid(content: bytes, message: str) -> None:
    answer = await reviewed(Allowed(), content)
    assert answer == {"response": {"uid": "", "allowed": False, "status": {"code": 400, "message": message}}}


@pytest.mark.parametrize("content_type", [JSON, "application/json; charset=utf-8", "Application/JSON;charset=UTF-8"])
async def test_parameters_of_the_content_type_do_not_matter(content_type: str) -> None:
    assert (await reviewed(Allowed(), content_type=content_type))["response"]["allowed"]


@pytest.mark.parametrize("content", [body(), b"{"])
@pytest.mark.parametrize("content_type", ["", "text/plain", "application/yaml", "application/json-patch+json"])
async def test_other_content_types_are_refused_whatever_the_content(content_type: str, content: bytes) -> None:
    status = (await reviewed(Allowed(), content, content_type=content_type))["response"]["status"]
    assert status == {"code": 400, "message": f"contentType={content_type}, expected application/json"}


async def test_a_body_of_seven_mebibytes_is_too_large_and_one_byte_less_is_not() -> None:
    filled = body({**REQUEST, "object": "x"})
    filled = filled.replace(b'"x"', b'"' + b"x" * (TOO_LARGE - len(filled)) + b'"')
    assert len(filled) == TOO_LARGE - 1
    assert (await reviewed(Allowed(), filled))["response"]["allowed"]
    for content_type in (JSON, "x"):  # size is checked before it
        response = (await reviewed(Allowed(), filled + b" ", content_type=content_type))["response"]
        assert response["status"] == {"code": 413, "message": "request entity is too large; limit is 7340032 bytes"}


async def test_millions_of_values_are_too_many() -> None:
    millions = body({**REQUEST, "object": {}}).replace(b"{}", b"[" + b",".join([b"{}"] * 2_000_000) + b"]")
    response = (await reviewed(Allowed(), millions))["response"]
    assert response["status"] == {"code": 413, "message": "too many values: limit is 250000"}


@pytest.mark.parametrize("count", [10_000, 10_001])
async def test_a_patch_has_so_many_operations_and_no_more(count: int) -> None:
    before: Object = {f"{number}": {} for number in range(count)}
    after: Object = {name: {"a": 1} for name in before}
    response = (await reviewed(Changed(before, after)))["response"]
    assert ("patch" in response) is response["allowed"] is (count == 10_000)
    if count > 10_000:
        message = "the patch would have more than 10000 operations"
        assert response == {"uid": "u1", "allowed": False, "status": {"code": 413, "message": message}}


async def test_what_is_quoted_is_not_quoted_whole() -> None:
    long = "x" * 1_000_000
    for answer, content in ((Denied(long), body()), (Errored(400, long), body()), (Allowed(), body(kind=long))):
        response = (await reviewed(answer, content))["response"]
        assert len(response["status"]["message"]) == 32 * 1024 + 1


@pytest.mark.parametrize(
    ("requested", "answered"),
    [
        ("admission.k8s.io/v1beta1", "admission.k8s.io/v1beta1"),
        *((requested, "admission.k8s.io/v1") for requested in ("admission.k8s.io/v1", ..., None)),
    ],
)
async def test_the_answer_is_in_the_version_of_the_question(requested: Any, answered: str) -> None:
    answer = await reviewed(Allowed(), body(apiVersion=requested, kind=... if requested is ... else "AdmissionReview"))
    response = {"uid": "u1", "allowed": True, "status": {"code": 200}}
    assert answer == {"apiVersion": answered, "kind": "AdmissionReview", "response": response}


@pytest.mark.parametrize(
    ("answer", "allowed", "status"),
    [
        (Allowed(), True, {"code": 200}),
        (Allowed("as it is"), True, {"code": 200, "message": "as it is"}),
        (Changed({"a": 1}, {"a": 1}), True, {"code": 200}),
        (Denied("no"), False, {"code": 403, "reason": "Forbidden", "message": "no"}),
        (Errored(500, "broken"), False, {"code": 500, "message": "broken"}),
        (Failure(STATUS), False, STATUS),
    ],
)
async def test_answers_without_a_patch(answer: Answer, allowed: bool, status: Any) -> None:
    assert (await reviewed(answer))["response"] == {"uid": "u1", "allowed": allowed, "status": status}


async def test_a_change_is_answered_with_its_patch() -> None:
    before: Object = {"spec": {"containers": []}}
    after = {"spec": {"containers": [], "schedulerName": "bin-packing-scheduler"}}
    patch = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMvc2NoZWR1bGVyTmFtZSIsInZhbHVlIjoiYmluLXBhY2tpbmctc2NoZWR1bGVyIn1d"
    changed = {"uid": "u1", "allowed": True, "patchType": "JSONPatch", "patch": patch, "status": {"code": 200}}
    assert (await reviewed(Changed(before, after)))["response"] == changed


async def test_a_patch_may_be_nested_as_deeply_as_a_request() -> None:
    nested: Any = {}
    for _ in range(600):
        nested = {"a": nested}
    response = (await reviewed(Changed({}, nested)))["response"]
    assert json.loads(base64.b64decode(response["patch"])) == [{"op": "add", "path": "/a", "value": nested["a"]}]


async def test_a_crash_is_answered_and_counted() -> None:
    async def crash(_: Request) -> Answer:
        raise KeyError("spec")

    before = REGISTRY.get_sample_value("controller_runtime_webhook_panics_total") or 0
    answer = json.loads(await Reviewer("test", crash, path="/test")(body(), JSON))
    status = {"code": 500, "message": "panic: 'spec' [recovered]"}
    response = {"uid": "u1", "allowed": False, "status": status}
    assert answer == {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    assert REGISTRY.get_sample_value("controller_runtime_webhook_panics_total") == before + 1


def refusals(code: int) -> float:
    series = {"webhook": "/test", "code": str(code)}
    return REGISTRY.get_sample_value("resource_manager_webhook_refusals_total", series) or 0.0


@pytest.mark.parametrize(
    ("answer", "content", "code"),
    [
        (Denied("no"), None, 403),
        (Errored(400, "no"), None, 400),
        (Failure({"code": 422, "message": "no"}), None, 422),
        (Failure({"message": "no"}), None, 403),
        (Allowed(), b"", 400),
        (Allowed(), b"{}", 400),
    ],
)
async def test_what_is_not_allowed_is_counted(answer: Answer, content: bytes | None, code: int) -> None:
    before = refusals(code)
    await reviewed(answer, content)
    assert refusals(code) == before + 1
    await reviewed(Allowed())
    assert refusals(code) == before + 1


async def _touch(_: Request, obj: Any) -> None:
    obj["metadata"]["labels"]["touched"] = "true"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
reviews = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.sampled_from(["admission.k8s.io/v1", "admission.k8s.io/v1beta1"]) | json_values,
        "kind": st.just("AdmissionReview") | json_values,
        "request": st.fixed_dictionaries({}, optional=dict.fromkeys(REQUEST, json_values)) | json_values,
    },
).map(lambda review: json.dumps(review).encode())


@settings(max_examples=300)
@given(st.binary(max_size=200) | reviews, st.just(JSON) | st.text(max_size=20))
async def test_whatever_is_sent_is_answered_with_a_code(content: bytes, content_type: str) -> None:
    for handler in (defaulter(_touch), answering(Allowed())):
        response = json.loads(await Reviewer("test", handler, path="/test")(content, content_type))["response"]
        assert isinstance(response["uid"], str)
        assert response["allowed"] is (response["status"]["code"] == 200)
