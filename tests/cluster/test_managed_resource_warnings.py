"""Fields that the API server does not store, and what else it warns of: reported once, or errors if that is requested."""

import copy

import pytest

from devcluster.audit import Audit
from kit.kinds import custom_resource, definition, definition_path, wait_until_served
from kit.managed_resources import GATED_FIELD, with_gated_field, with_unknown_field
from kit.objects import GIBIBYTE, config_map, deployment, obj, stateful_set
from kit.rig import Agent, Rig, stamped_by
from kube.objects import Object

_FIELD_VALIDATION = "resources.gardener.cloud/field-validation"
_STRICT = {_FIELD_VALIDATION: "Strict"}


def name_of(rig: Rig, name: str = "d") -> str:
    return f"apps/v1/Deployment/{rig.namespace}/{name}"


def writes(rig: Rig, audit: Audit, resource: str, *, since: int) -> list[str]:
    """The verbs by which the agent has written objects of a kind."""
    calls = audit.calls(since=since, namespace=rig.namespace, verbs=("create", "update"))
    done = [call for call in calls if call.user == rig.agent.user and call.status < 300]
    return [call.verb for call in done if call.resource == resource]


def test_an_unknown_field_is_reported_once_and_is_no_drift(rig: Rig, audit: Audit) -> None:
    mark = audit.mark()
    rig.apply("mr", with_unknown_field("d"), config_map("good", {}))
    warning = f'{name_of(rig)}: unknown field "spec.replica"'
    rig.until(lambda: bool(rig.events("mr")), "an Event")
    assert rig.applied("mr") == ("True", "ApplySucceeded", f"All resources are applied, with warnings: {warning}")
    # Kubernetes' own controllers write to it, and so does another client.
    rig.until(lambda: "deployment.kubernetes.io/revision" in str(rig.get("Deployment", "d")), "its controller to act")
    rig.patch("Deployment", "d", {"metadata": {"annotations": {"example.com/note": "theirs"}}})
    # A change that is drift shows that what came before has been looked at.
    rig.patch("Deployment", "d", {"spec": {"paused": True}})
    rig.until(lambda: not rig.get("Deployment", "d")["spec"].get("paused"), "the drift to be corrected")
    assert [event["message"] for event in rig.events("mr")] == [warning]
    assert [event["reason"] for event in rig.events("mr")] == ["AppliedWithWarnings"]
    assert writes(rig, audit, "deployments", since=mark) == ["create", "update"]
    repairs = rig.until(lambda: rig.events("mr", event_type="Normal"), "an Event about the drift")
    assert [event.get("count") for event in repairs] == [1]


def test_a_warning_goes_with_its_reason(rig: Rig) -> None:
    rig.apply("mr", with_unknown_field("a"), with_unknown_field("b"))
    rig.apply("mr", with_unknown_field("a"), deployment("b"))
    left = f'All resources are applied, with warnings: {name_of(rig, "a")}: unknown field "spec.replica"'
    rig.until(lambda: rig.applied("mr")[2] == left, "one of two warnings to go")
    rig.apply("mr", deployment("a"), deployment("b"))
    rig.until(lambda: rig.applied("mr")[2] == "All resources are applied.", "all warnings to go")
    assert "warnings" not in rig.get("ManagedResource", "mr")["status"]


def test_what_else_the_api_server_warns_of_is_reported(rig: Rig) -> None:
    twice = [{"name": "LEVEL", "value": "one"}, {"name": "LEVEL", "value": "two"}]
    rig.apply("mr", deployment("d", pod={"containers": [{"name": "c", "image": "i", "env": twice}]}))
    assert 'env[1]: hides previous definition of "LEVEL"' in rig.applied("mr")[2]


def test_warnings_are_reported_while_another_object_fails(rig: Rig, audit: Audit) -> None:
    mark = audit.mark()
    rig.write("mr", with_unknown_field("d"), config_map("Bad_Name"))
    warning = f'{name_of(rig)}: unknown field "spec.replica"'
    rig.until_failed("mr", "is invalid", f"; applied with warnings: {warning}")
    reported = rig.until(lambda: [e for e in rig.events("mr") if e["reason"] == "AppliedWithWarnings"], "an Event")
    assert [(event["message"], event.get("count")) for event in reported] == [(warning, 1)]
    (stored,) = rig.get("ManagedResource", "mr")["status"]["warnings"]
    assert (stored["name"], stored["droppedFields"]) == ("d", ["spec.replica"])
    # What was written is not written again for the sake of the field when the other one is right.
    rig.write("mr", with_unknown_field("d"), config_map("good"))
    rig.until(lambda: rig.applied("mr")[2] == f"All resources are applied, with warnings: {warning}", "success")
    assert writes(rig, audit, "deployments", since=mark) == ["create"]
    assert len([e for e in rig.events("mr") if e["reason"] == "AppliedWithWarnings"]) == 1


def test_strictly_an_unknown_field_keeps_its_object_from_being_applied(rig: Rig) -> None:
    rig.write_secret("mr", with_unknown_field("d"), config_map("good", {}))
    rig.write_managed_resource("mr", annotated=_STRICT)
    rig.until_failed("mr", f'object "{name_of(rig)}"', 'strict decoding error: unknown field "spec.replica"')
    assert rig.find("Deployment", "d") is None
    assert rig.find("ConfigMap", "good") is not None


def test_it_can_become_strict_and_tolerant_again(rig: Rig) -> None:
    rig.apply("mr", with_unknown_field("d"))
    rig.patch("ManagedResource", "mr", {"metadata": {"annotations": _STRICT}})
    rig.until_failed("mr", 'unknown field "spec.replica"')
    rig.patch("ManagedResource", "mr", {"metadata": {"annotations": {_FIELD_VALIDATION: None}}})
    rig.until_applied("mr")
    assert 'unknown field "spec.replica"' in rig.applied("mr")[2]


def test_a_validation_that_does_not_exist_is_explained(rig: Rig) -> None:
    rig.write_secret("mr", config_map("good", {}))
    rig.write_managed_resource("mr", annotated={_FIELD_VALIDATION: "strict"})
    message = rig.until_failed("mr", "Unsupported value")
    assert message == (
        f'metadata.annotations[{_FIELD_VALIDATION}]: Unsupported value: "strict": supported values: "Warn", "Strict"'
    )
    assert rig.find("ConfigMap", "good") is None


# --- fields that are dropped in silence


_NOT_STORED = f'field "{GATED_FIELD}" was not stored, by the API server or by admission'


def test_a_field_that_is_dropped_in_silence_is_reported_and_is_no_drift(rig: Rig, audit: Audit) -> None:
    mark = audit.mark()
    rig.apply("mr", with_gated_field("s"))
    warning = f"apps/v1/StatefulSet/{rig.namespace}/s: {_NOT_STORED}"
    assert rig.applied("mr")[2] == f"All resources are applied, with warnings: {warning}"
    events = rig.until(lambda: rig.events("mr"), "an Event")
    assert [event["message"] for event in events] == [warning]
    rig.patch("StatefulSet", "s", {"metadata": {"annotations": {"example.com/note": "theirs"}}})
    rig.patch("StatefulSet", "s", {"metadata": {"labels": {"resources.gardener.cloud/managed-by": "theirs"}}})
    rig.until(lambda: stamped_by(rig.get("StatefulSet", "s")) == rig.agent.managed_by, "the label to be corrected")
    assert writes(rig, audit, "statefulsets", since=mark) == ["create", "update"]


def test_strictly_a_field_that_is_dropped_in_silence_keeps_its_object_from_being_applied(rig: Rig) -> None:
    rig.write_secret("mr", with_gated_field("s"))
    rig.write_managed_resource("mr", annotated=_STRICT)
    rig.until_failed("mr", f"strict field validation: {_NOT_STORED}")
    assert rig.find("StatefulSet", "s") is None


@pytest.fixture
def pruned(rig: Rig) -> Object:
    """A custom object with a field that its definition does not have."""
    kind = custom_resource(f"{rig.namespace}.example.com", "Widget")
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    found = definition(kind)
    found["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema}
    rig.api.apply(definition_path(kind), found)
    wait_until_served(rig.cluster, kind.path())
    return obj(f"{kind.api_version} Widget", f"{rig.namespace}/w", spec={"size": 1, "color": "red"})


def test_a_field_that_a_definition_gets_later_is_written_then(rig: Rig, pruned: Object) -> None:
    rig.apply("mr", pruned)
    assert 'unknown field "spec.color"' in rig.applied("mr")[2]
    kind = custom_resource(f"{rig.namespace}.example.com", "Widget")
    path = definition_path(kind)
    changed = copy.deepcopy(rig.api.get(path))
    properties = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    properties["color"] = {"type": "string"}
    rig.api.update(path, changed)
    live = kind.path(namespace=rig.namespace, name="w")
    rig.until(lambda: rig.api.get(live)["spec"] == {"size": 1, "color": "red"}, "the field to be stored")
    rig.until(lambda: rig.applied("mr")[2] == "All resources are applied.", "the warning to go")


def test_a_change_that_can_not_be_written_is_reported_as_long_as_it_lasts(rig: Rig) -> None:
    """Also by an agent that starts later, and once only."""

    def sized(storage: str) -> Object:
        resources = {"requests": {"storage": storage}}
        claim = {"metadata": {"name": "data"}, "spec": {**GIBIBYTE, "resources": resources}}
        return stateful_set("f", volumeClaimTemplates=[claim])

    own = Agent(rig.cluster, resource_class=f"c-{rig.namespace[-10:]}")
    rig.write_secret("mr", sized("1Gi"))
    with own.start():
        rig.write_managed_resource("mr", resource_class=own.resource_class)
        rig.until(lambda: rig.applied("mr")[2] == "All resources are applied.", "it to be applied")
        rig.write_secret("mr", sized("2Gi"))
        warning = (
            f'apps/v1/StatefulSet/{rig.namespace}/f: field "spec.volumeClaimTemplates" is not changed: it is immutable, so undo the '
            "change, or delete the StatefulSet with --cascade=orphan, and it is recreated"
        )
        expected = ("True", "ApplySucceeded", f"All resources are applied, with warnings: {warning}")
        rig.until(lambda: rig.applied("mr") == expected, "the warning")
    with own.start():
        rig.patch("StatefulSet", "f", {"spec": {"minReadySeconds": 5}})
        rig.until(lambda: not rig.get("StatefulSet", "f")["spec"].get("minReadySeconds"), "the drift to be corrected")
        assert rig.applied("mr") == expected
        assert [(each["message"], each.get("count", 1)) for each in rig.events("mr")] == [(warning, 1)]
        rig.api.delete(f"{rig.path('StatefulSet', 'f')}?propagationPolicy=Orphan")
        rig.until(lambda: rig.applied("mr")[2] == "All resources are applied.", "the warning to go")
        (template,) = rig.get("StatefulSet", "f")["spec"]["volumeClaimTemplates"]
        assert template["spec"]["resources"]["requests"]["storage"] == "2Gi"
        rig.delete_managed_resource("mr")
