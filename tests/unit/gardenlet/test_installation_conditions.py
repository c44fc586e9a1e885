"""What is reported of an installed extension, by its ManagedResource and by the objects that need it."""

import pytest

from agent.gardenlet.extensions.controller_installation.care import missing, reported
from agent.gardenlet.extensions.controller_installation.required import provided, required
from kube.objects import Object


def managed_resource(observed: int = 1, **statuses: str) -> Object:
    found = [{"type": f"Resources{kind}", "status": status, "message": "m"} for kind, status in statuses.items()]
    return {
        "metadata": {"name": "i", "namespace": "garden", "generation": 1},
        "status": {"observedGeneration": observed, "conditions": found},
    }


@pytest.mark.parametrize(
    ("managed", "said"),
    [
        (
            managed_resource(Applied="True", Healthy="True", Progressing="False"),
            ["True InstallationSuccessful", "True ControllerHealthy", "False ControllerRolledOut"],
        ),
        (
            managed_resource(observed=0, Applied="True", Healthy="True", Progressing="False"),
            ["False InstallationPending", "True ControllerHealthy", "False ControllerRolledOut"],
        ),
        (
            managed_resource(Applied="False", Healthy="Unknown", Progressing="Unknown"),
            ["False InstallationPending", "False ControllerNotHealthy", "True ControllerNotRolledOut"],
        ),
        (
            managed_resource(),
            ["False InstallationPending", "False ControllerNotHealthy", "True ControllerNotRolledOut"],
        ),
    ],
)
def test_conditions_follow_from_those_of_the_managed_resource(managed: Object, said: list[str]) -> None:
    assert [f"{each.status} {each.reason}" for each in reported(managed)] == said


def test_messages_name_the_condition_and_the_managed_resource() -> None:
    applied, healthy, progressing = reported(managed_resource(observed=3, Healthy="False"))
    assert applied.message == "observed generation of managed resource garden/i outdated (3/1)"
    assert healthy.message == "condition ResourcesHealthy of managed resource garden/i is False: m"
    assert (
        progressing.message == "condition ResourcesProgressing for managed resource garden/i has not been reported yet"
    )
    assert {each.status for each in missing("i")} == {"Unknown"}


def test_an_extension_is_required_as_long_as_objects_of_its_types_exist() -> None:
    resources = [{"kind": "Network", "type": "calico"}, {"kind": "Worker", "type": "local"}]
    assert provided({"spec": {"resources": resources}}) == [("Network", "calico"), ("Worker", "local")]
    assert required(["Worker/local", "Network/calico"]).message == (
        "extension objects still exist in the seed: [Network/calico Worker/local]"
    )
    assert (required([]).status, required([]).reason) == ("False", "NoExtensionObjects")
