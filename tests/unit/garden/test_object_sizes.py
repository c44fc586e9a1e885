"""How large objects of the garden API may be, where that is configured."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from config.webhooks.schema import Garden, SizeLimit, Subject
from gardener.api.garden import SHOOTS
from kit.webhooks.requests import request_about
from kube.objects import Object
from webhooks.admission import Allowed, Answer, Denied, Request, User
from webhooks.garden.sizes import limited, size_of

ANN = User("ann")


def of_size(length: int, **more: Any) -> Object:
    """Args: length: bytes that count."""
    obj: Object = {"metadata": {"name": ""}, **more}
    obj["metadata"]["name"] = "a" * (length - size_of(obj))
    return obj


async def allow(_request: Request) -> Answer:
    return Allowed()


def requested(
    limits: Sequence[SizeLimit],
    obj: Object,
    old: Object | None = None,
    *,
    user: User = ANN,
    subresource: str = "",
    subjects: Sequence[Subject] = (),
) -> Answer:
    settings = Garden(size_limits=tuple(limits), unrestricted_subjects=tuple(subjects))
    request = request_about(SHOOTS, obj, old, name="a", namespace="garden-dev", user=user, subresource=subresource)

    async def answer() -> Answer:
        return await limited(allow, SHOOTS, settings)(request)

    return asyncio.run(answer())


KIBIBYTE = SizeLimit(api_groups=("core.gardener.cloud",), resources=("shoots",), size="1Ki")


@pytest.mark.parametrize(
    ("limits", "length", "is_allowed"),
    [
        ([], 5000, True),
        ([KIBIBYTE], 1024, True),
        ([KIBIBYTE], 1025, False),
        ([SizeLimit(size="2Ki"), KIBIBYTE], 1025, False),
        ([SizeLimit(size="1Ki")], 1025, False),
        ([SizeLimit(resources=("seeds",), size="1Ki")], 1025, True),
        ([SizeLimit(api_groups=("security.gardener.cloud",), size="1Ki")], 1025, True),
    ],
)
def test_limits_hold_for_the_resources_that_they_name(
    limits: list[SizeLimit], length: int, *, is_allowed: bool
) -> None:
    assert isinstance(requested(limits, of_size(length)), Allowed) is is_allowed


def test_a_refusal_reports_how_large_the_object_is_and_may_be() -> None:
    refused = requested([KIBIBYTE], of_size(1025))
    assert isinstance(refused, Denied)
    assert "1025 bytes, at most 1024 are allowed for shoots.core.gardener.cloud" in refused.message


def test_what_its_author_does_not_write_does_not_count() -> None:
    fields = [{"manager": "m" * 2000}]
    obj = of_size(1024)
    assert requested([KIBIBYTE], {**obj, "status": {"a": "b" * 2000}}) == Allowed()
    assert requested([KIBIBYTE], {**obj, "metadata": {**obj["metadata"], "managedFields": fields}}) == Allowed()
    assert requested([KIBIBYTE], of_size(2000), of_size(2000), subresource="status") == Allowed()


def test_what_is_too_large_already_may_change_but_not_grow() -> None:
    assert requested([KIBIBYTE], of_size(1500), of_size(1500)) == Allowed()
    assert isinstance(requested([KIBIBYTE], of_size(1501), of_size(1500)), Denied)


@pytest.mark.parametrize(
    ("subject", "is_allowed"),
    [
        (Subject(name="ann"), True),
        (Subject(name="bob"), False),
        (Subject(kind="Group", name="admins"), True),
        (Subject(kind="Group", name="ann"), False),
        (Subject(kind="ServiceAccount", name="ann", namespace="garden"), False),
    ],
)
def test_some_users_may_write_objects_of_any_size(subject: Subject, *, is_allowed: bool) -> None:
    answer = requested([KIBIBYTE], of_size(2000), user=User("ann", ("admins",)), subjects=[subject])
    assert isinstance(answer, Allowed) is is_allowed


def test_a_service_account_is_known_by_its_user_name() -> None:
    subject = Subject(kind="ServiceAccount", name="robot", namespace="garden")
    robot = User("system:serviceaccount:garden:robot")
    assert requested([KIBIBYTE], of_size(2000), user=robot, subjects=[subject]) == Allowed()
