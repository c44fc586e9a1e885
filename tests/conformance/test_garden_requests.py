"""Recorded requests of the original's API of the garden are answered here as there."""

import pytest

from conformance.garden_differences import BETTER, OTHER_FIELDS
from conformance.garden_requests import Case, cases, fields, is_equal, played

AREAS = (
    *("api-cloudprofile", "api-gardenlet", "api-managedseed", "api-managedseedset", "api-namespacedcloudprofile"),
    *("api-seed", "api-shoot"),
)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in cases(*AREAS)])
def test_an_answer_is_that_of_the_original(case: Case) -> None:
    outcome = played(case)
    if case.id in BETTER:
        assert outcome.status is None
        return
    is_about_status = case.request.get("sub") == "status"
    assert any(is_equal(outcome, answer, status=is_about_status) for answer in case.answers), outcome
    if outcome.status is not None and case.id not in OTHER_FIELDS:
        assert outcome.fields in [fields(answer) for answer in case.answers]
