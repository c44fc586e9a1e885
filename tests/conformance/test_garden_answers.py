"""Single requests to the garden API are answered as one of two releases of the original answered them.

An answer is right if the object that is stored is the same, or if both refuse for the same fields. Codes and words may
differ: many rules are rules of CEL here. Where fields differ, `garden_differences` states why.
"""

import uuid

import pytest

from conformance.api_cases import Case, cases, is_right, play, prelude, put, wait_for_project
from conformance.garden_differences import BETTER, OTHER_FIELDS
from kit.garden import Garden

pytestmark = [pytest.mark.timeout(600)]

PLAYED = frozenset(
    f"api-{area}"
    for area in (
        *("backup", "bastion", "controllerdeployment", "controllerinstallation", "controllerregistration"),
        *("credentialsbinding", "exposureclass", "internalsecret", "project", "quota", "secretbinding", "shootstate"),
        *("seed", "shoot", "cloudprofile", "gardenlet", "managedseed", "managedseedset", "namespacedcloudprofile"),
        "workloadidentity",
    )
)
"""The areas whose kinds are complete."""


@pytest.fixture(scope="session")
def furnished(garden: Garden) -> Garden:
    """With what all cases expect to be there, and as the user that they were recorded with."""
    for obj in prelude():
        put(garden, obj, "garden")
    return garden.as_user("admin", "system:masters")


@pytest.mark.parametrize("case", [pytest.param(each, id=each.name) for each in cases() if each.area in PLAYED])
def test_a_request_is_answered_as_by_the_original(furnished: Garden, case: Case) -> None:
    project = f"c{uuid.uuid4().hex[:7]}"
    if case.has_project:
        furnished.place(project)
        wait_for_project(furnished, project)
    answer = play(furnished, case, project)
    if case.name in BETTER:
        assert not answer.is_refused, "the reason does not hold any more"
    elif case.name in OTHER_FIELDS:
        assert answer.is_refused
        assert any("object" not in expected for expected in case.answers)
        assert not any(is_right(answer, expected) for expected in case.answers), "the reason does not hold any more"
    else:
        assert any(is_right(answer, expected) for expected in case.answers), answer
