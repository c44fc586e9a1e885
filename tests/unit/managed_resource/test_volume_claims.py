from typing import Any

import pytest

from agent.resource_manager.managed_resource.rules.volume_claims import VolumeClaims
from kube.objects import Object

GIVEN: dict[str, Any] = {
    "volumeClaimTemplates": [{"metadata": {"name": "data"}}, {"metadata": {"name": "logs"}}],
    "selector": {"matchLabels": {"b": "2", "example.com/a": "1"}},
}
CLAIMS = VolumeClaims("b=2,example.com/a=1", ("data", "logs"))


def stateful_set(api_version: str = "apps/v1", *, kind: str = "StatefulSet", **spec: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}, "spec": spec}


@pytest.mark.parametrize(
    ("live", "claims"),
    [
        (stateful_set(**GIVEN), CLAIMS),
        (stateful_set("extensions/v1beta1", **GIVEN), CLAIMS),
        (stateful_set("example.com/v1", **GIVEN), None),
        (stateful_set(kind="Deployment", **GIVEN), None),
        (stateful_set(**{**GIVEN, "volumeClaimTemplates": []}), None),
        (stateful_set(**{**GIVEN, "selector": {"matchLabels": {}}}), None),
        (stateful_set(volumeClaimTemplates=GIVEN["volumeClaimTemplates"]), None),
        (stateful_set(), None),
    ],
)
def test_claims_are_those_that_the_stateful_set_selects(live: Object, claims: VolumeClaims | None) -> None:
    assert VolumeClaims.of(live) == claims


def test_claims_are_noted_in_the_reference_of_their_stateful_set_alone() -> None:
    web = {"apiVersion": "apps/v1", "kind": "StatefulSet", "namespace": "n", "name": "web", "annotations": {"x": "y"}}
    other = {**web, "name": "other"}
    noted, untouched = CLAIMS.note_in([web, other], "apps/StatefulSet/n/web")
    assert VolumeClaims.noted(noted) == CLAIMS
    assert noted["annotations"]["x"] == "y"
    assert untouched == other
    assert VolumeClaims.noted(other) is None
    assert VolumeClaims.noted({"name": "web"}) is None
    assert CLAIMS.note_in([noted, other], "apps/StatefulSet/n/web") == [noted, other]


@pytest.mark.parametrize(
    ("claim", "is_its"),
    [
        ("data-web-0", True),
        ("logs-web-12", True),
        ("data-web-x", False),
        ("data-web", False),
        ("data-my-web-0", False),
        ("data-web-new-0", False),
        ("other-web-0", False),
    ],
)
def test_a_claim_belongs_to_a_stateful_set_by_its_name(claim: str, is_its: bool) -> None:
    assert CLAIMS.has(claim, stateful_set="web") is is_its
