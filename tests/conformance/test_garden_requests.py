"""Recorded requests of the original's API of the garden are answered here as there, and as far as possible offline."""

import pytest

from conformance.garden_differences import BETTER, OTHER_FIELDS
from conformance.garden_requests import Case, areas, cases, fields, is_equal, placed, played
from webhooks.garden.offline import report

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


def _of(area: str, names: str) -> tuple[str, ...]:
    return tuple(f"{area}/{name}" for name in names.split())


NEEDS_OTHER_OBJECTS = frozenset(
    (
        *_of("api-backup", "bucket-no-secret bucket-no-seed bucket-unregistered"),
        *_of("api-bastion", "no-shoot"),
        *_of("api-controllerregistration", "taken"),
        *_of("api-credentialsbinding", "no-identity quota-missing"),
        *_of("api-gardenlet", "with-managedseed"),
        *_of(
            "api-managedseed",
            "domain-differs nginx no-domain no-shoot no-vpa pods-differ provider-differs region-differs workerless",
        ),
        *_of("api-namespacedcloudprofile", "newest-expires no-parent unknown-image user-without-verb"),
        *_of("api-project", "namespace-taken user-whitelist"),
        *_of("api-secretbinding", "no-secret quota-missing user-may-not-read"),
        *_of("api-seed", "unregistered-dns unregistered-provider"),
        *_of(
            "api-shoot",
            "dns-default-domain-wrong dns-secret-missing exposureclass image-unknown quota-second-shoot quota-two-metrics resources-missing seed-full seed-no-networks unknown-extension unknown-profile unknown-region unknown-type unknown-zone version-expired version-unknown",
        ),
    )
)
"""Creations that are refused because of other objects, or of the rights of the user."""


@pytest.mark.parametrize(
    "case", [pytest.param(each, id=each.id) for each in cases(*areas()) if each.request["verb"] == "create"]
)
def test_what_is_refused_for_a_reason_that_needs_no_other_object_is_found_without_a_cluster(case: Case) -> None:
    found = report(placed(case.request["object"]))
    refused = {answer["code"] >= 400 for answer in case.answers}
    if refused == {False}:
        assert found.findings == ()
    elif refused == {True}:
        assert bool(found.findings) is (case.id not in NEEDS_OTHER_OBJECTS)
        assert found.findings or found.left_out
