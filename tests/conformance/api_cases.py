"""Recorded requests to the garden API: what is in them, how one is sent, and when two answers are the same.

`garden_requests.json.gz` states what is in the garden, and has the cases: objects that are made before, one request, and
what two releases of the original answered, `seed` and `newest`. Names and times are placeholders (`garden_placeholders`).
What needs no API server is replayed without one in `tests/conformance/test_garden_requests.py`.
"""

import copy
import gzip
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conformance.garden_placeholders import OLDEST_MINOR, filled
from gardener.api import garden as resources
from kit.eventually import eventually
from kit.garden import Garden
from kit.kinds import custom_resource
from kube import resources as kubernetes
from kube.errors import AlreadyExists, ApiError, Forbidden
from kube.objects import Object, annotations, labels, metadata
from kube.resources import Resource

_FILE = Path(__file__).parent / "garden_requests.json.gz"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_WINDOW = re.compile(r"\d{6}[+-]\d{4}")
_NO_ROLE = re.compile(r"cannot \w+ resource")
_BOOKKEEPING = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "generateName")
_TASKS = "shoot.gardener.cloud/tasks"
_OF_USERS = ("gardener.cloud/created-by", "gardener.cloud/timestamp")
_KNOWN = {
    (of.group, of.kind): of
    for module in (resources, kubernetes)
    for of in vars(module).values()
    if isinstance(of, Resource)
}


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    """`<area>/<what>`."""
    setup: tuple[Object, ...]
    request: Object
    has_project: bool
    answers: tuple[Object, ...]
    """Of the releases; each is right."""

    @property
    def area(self) -> str:
        return self.name.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Answer:
    """An object as stored, in normal form, or the fields of a refusal."""

    object: Any = None
    fields: frozenset[str] | None = None
    message: str = ""

    @property
    def is_refused(self) -> bool:
        return self.fields is not None


def _recorded() -> Object:
    with gzip.open(_FILE) as file:
        found: Object = json.load(file)
    return found


def prelude() -> list[Object]:
    return [filled(obj, "prelude") for obj in _recorded()["prelude"]]


def cases() -> list[Case]:
    return [
        Case(
            name=each["id"],
            setup=tuple(each.get("setup", ())),
            request=each["request"],
            has_project=each.get("project", True),
            answers=tuple(expected["answer"] for expected in each["expect"].values()),
        )
        for each in _recorded()["cases"]
    ]


# --- placeholders


def _unfilled(text: str, project: str) -> str:
    text = _TIME.sub("<time>", text).replace(f"garden-{project}", "$NS").replace(project, "$P")
    return re.sub(r"(?<![\d.])1\.(2[89]|3[0-2])(?=\.\d|\b)", lambda match: f"$M{int(match[1]) - OLDEST_MINOR}", text)


# --- sending


def resource(api_version: str, kind: str) -> Resource:
    group, _, version = api_version.rpartition("/")
    known = _KNOWN.get((group, kind))
    if known is not None:
        return replace(known, version=version)
    return custom_resource(group, kind, version=version, namespaced=kind in {"Role", "RoleBinding"})


def put(garden: Garden, obj: Object, namespace: str) -> None:
    """Creates it, with its status; or adds it to what is there under its name."""
    of = resource(obj["apiVersion"], obj["kind"])
    place = (metadata(obj).get("namespace") or namespace) if of.namespaced else ""
    fields = {name: value for name, value in obj.items() if name not in {"apiVersion", "kind", "metadata", "status"}}
    name = obj["metadata"]["name"]
    try:
        garden.create(of, name, namespace=place, metadata={**metadata(obj)}, **fields)
    except AlreadyExists:
        garden.patch(of, name, {**fields, "metadata": _kept(obj)}, namespace=place)
    if "status" in obj:
        garden.patch(of, name, {"status": obj["status"]}, namespace=place, status=True)


def _kept(obj: Object) -> Object:
    return {"labels": labels(obj), "annotations": annotations(obj)}


def play(garden: Garden, case: Case, project: str) -> Answer:
    """What the garden answers to the request of a case."""
    namespace = f"garden-{project}"
    for obj in case.setup:
        put(garden, filled(obj, project), namespace)
    request = filled(case.request, project)
    if user := request.get("as"):
        garden = garden.as_user(user, *request["groups"][:1])
    try:
        stored = _sent_with_rights(garden, request, namespace)
    except ApiError as error:
        causes = (error.details or {}).get("causes") or []
        fields = frozenset(cause.get("field", "") for cause in causes) - {"<nil>"}
        return Answer(fields=frozenset(_unfilled(field, project) for field in fields), message=str(error))
    if stored is None:
        return Answer("ok")
    if request.get("sub") != "status":
        stored.pop("status", None)
    return Answer(_normal(stored, project))


def _sent_with_rights(garden: Garden, request: Object, namespace: str) -> Object | None:
    """As soon as the API server has heard of the roles that the case has made. Raises: ApiError."""

    def attempt() -> list[Object | None] | None:
        try:
            return [_sent(garden, request, namespace)]
        except Forbidden as error:
            if _NO_ROLE.search(str(error)):
                return None
            raise

    return eventually(attempt)[0]


def _sent(garden: Garden, request: Object, namespace: str) -> Object | None:
    """Raises: ApiError."""
    if request["verb"] == "create":
        obj = request["object"]
        of = resource(obj["apiVersion"], obj["kind"])
        fields = {name: value for name, value in obj.items() if name not in {"apiVersion", "kind", "metadata"}}
        place = (metadata(obj).get("namespace") or namespace) if of.namespaced else ""
        return garden.create(of, obj["metadata"]["name"], namespace=place, metadata={**metadata(obj)}, **fields)
    api_version, kind, name = request["ref"].split(" ")
    of = resource(api_version, kind)
    place, _, name = name.rpartition("/")
    place = (place or namespace) if of.namespaced else ""
    match request["verb"]:
        case "delete":
            garden.delete(of, name, namespace=place)
            return None
        case "bind":
            version = garden.get(of, name, namespace=place)["metadata"]["resourceVersion"]
            patch = {"metadata": {"resourceVersion": version}, "spec": {"seedName": request["seed"]}}
            return garden.patch(of, name, patch, namespace=place)
        case _:
            return garden.patch(of, name, request["body"], namespace=place, status=request.get("sub") == "status")


def wait_for_project(garden: Garden, project: str) -> None:
    """Its namespace is there with the account that objects are created with."""
    account = f"/api/v1/namespaces/garden-{project}/serviceaccounts/default"
    eventually(lambda: garden.cluster.api.raw("GET", account)[0] == 200)


# --- comparing


def is_right(answer: Answer, expected: Object) -> bool:
    """Both refuse, for the same fields; or what is stored is the same."""
    if "object" not in expected:
        fields = frozenset(cause["field"] for cause in expected.get("causes", ()))
        return answer.is_refused and answer.fields == fields
    return not answer.is_refused and answer.object == _without_empty(_timeless(expected["object"]))


def _normal(obj: Object, project: str) -> Any:
    obj = copy.deepcopy(obj)
    obj.pop("operation", None)
    meta = obj["metadata"]
    for name in _BOOKKEEPING:
        meta.pop(name, None)
    for reference in meta.get("ownerReferences") or []:
        reference.pop("uid", None)
    written = meta.get("annotations") or {}
    for name in _OF_USERS:
        written.pop(name, None)
    if _TASKS in written:
        written[_TASKS] = ",".join(sorted(written[_TASKS].split(",")))
    return _without_empty(_renamed(obj, project))


def _renamed(value: Any, project: str) -> Any:
    match value:
        case {"begin": str(begin), "end": str()} if len(value) == 2 and _WINDOW.fullmatch(begin):
            return "<window>"
        case dict():
            return {_unfilled(name, project): _renamed(inner, project) for name, inner in value.items()}
        case list():
            return [_renamed(inner, project) for inner in value]
        case str():
            return _unfilled(value, project)
        case _:
            return value


def _timeless(value: Any) -> Any:
    """Recorded times are relative, `<now-1h>`; here all are alike."""
    match value:
        case dict():
            return {name: _timeless(inner) for name, inner in value.items()}
        case list():
            return [_timeless(inner) for inner in value]
        case str():
            return re.sub(r"<now[^>]*>", "<time>", value)
        case _:
            return value


def _without_empty(value: Any) -> Any:
    """Who writes empty values, and who leaves them out, is a matter of the serializer."""
    match value:
        case dict():
            kept = {name: _without_empty(inner) for name, inner in value.items()}
            return {name: inner for name, inner in kept.items() if inner not in (None, "", {}, [])}
        case list():
            return [_without_empty(inner) for inner in value]
        case _:
            return value
