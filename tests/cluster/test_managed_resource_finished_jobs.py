"""Jobs that are cleaned up when they have finished: they ran, and are neither missed nor run again."""

import pytest

from kit.objects import CONTAINERS, config_map, obj
from kit.rig import Agent, Rig
from kube.objects import Object


@pytest.fixture
def job(rig: Rig) -> Object:
    """It has nothing to do, so it is complete at once, and then deleted."""
    template = {"spec": {"restartPolicy": "Never", "containers": CONTAINERS}}
    return obj("Job", "job", spec={"completions": 0, "ttlSecondsAfterFinished": 0, "template": template})


def events_of_jobs(rig: Rig) -> int:
    """How many Jobs were complete."""
    listed = rig.cluster.api.get(f"/api/v1/namespaces/{rig.namespace}/events?fieldSelector=involvedObject.kind=Job")
    return sum(event.get("count") or 1 for event in listed["items"] if event["reason"] == "Completed")


def until_over(rig: Rig, runs: int) -> None:
    rig.until(lambda: events_of_jobs(rig) == runs, f"{runs} runs")
    rig.until_gone("Job", "job")


def test_a_job_that_has_finished_and_was_cleaned_up_is_not_run_again(rig: Rig, job: Object) -> None:
    rig.apply("mr", job, config_map("c"))
    until_over(rig, runs=1)
    rig.patch("ConfigMap", "c", {"data": {"by": "hand"}})  # the pass that puts it right looks at all objects
    rig.until_data("c", {"k": "v"})
    rig.until(lambda: rig.statuses("mr")[1] == "True", "it to be healthy")
    assert rig.find("Job", "job") is None
    assert events_of_jobs(rig) == 1


def test_a_finished_job_is_not_run_again_after_a_restart(rig: Rig, job: Object) -> None:
    own = Agent(rig.cluster, resource_class=f"c-{rig.namespace[-10:]}")
    with own.start():
        rig.apply("mr", job, config_map("c"), resource_class=own.resource_class)
        until_over(rig, runs=1)
        rig.until(lambda: rig.statuses("mr")[1] == "True", "it to be healthy")
    before = rig.condition("mr", "ResourcesHealthy")
    rig.patch("ConfigMap", "c", {"data": {"k": "by hand"}})
    with own.start():
        rig.until_data("c", {"k": "v"})
        rig.until_applied("mr")
        assert events_of_jobs(rig) == 1
        assert rig.condition("mr", "ResourcesHealthy")["lastTransitionTime"] == before["lastTransitionTime"]
    # Others that fail, and another manifest of them meanwhile.
    rig.write_secret("mr", job, config_map("d"), {**config_map("refused"), "immutable": "what"})
    with own.start():
        rig.until(lambda: rig.find("ConfigMap", "d"), "the new object")
        rig.until_failed("mr", "refused")
    with own.start():
        rig.delete("ConfigMap", "d")
        rig.until(lambda: rig.find("ConfigMap", "d"), "another pass")
        assert events_of_jobs(rig) == 1
        rig.write_secret("mr", {**job, "spec": {**job["spec"], "backoffLimit": 3}})
        until_over(rig, runs=2)
        rig.delete_managed_resource("mr")


def test_a_status_without_the_list_of_jobs_is_enough_if_all_was_applied(rig: Rig, job: Object) -> None:
    """As under the CustomResourceDefinition of the original, which has no such field."""
    own = Agent(rig.cluster, resource_class=f"c-{rig.namespace[-10:]}")
    with own.start():
        rig.apply("mr", job, config_map("c"), resource_class=own.resource_class)
        until_over(rig, runs=1)
        rig.until(lambda: rig.statuses("mr")[1] == "True", "it to be healthy")
    rig.patch("ManagedResource", "mr", {"status": {"jobs": None}}, subresource="status")
    rig.patch("ConfigMap", "c", {"data": {"k": "by hand"}})
    with own.start():
        rig.until_data("c", {"k": "v"})
        rig.until(lambda: rig.statuses("mr")[:2] == ("True", "True"), "it to be healthy")
        assert rig.find("Job", "job") is None
        assert events_of_jobs(rig) == 1
        rig.delete_managed_resource("mr")


def test_another_manifest_is_run(rig: Rig, job: Object) -> None:
    rig.apply("mr", job)
    until_over(rig, runs=1)
    changed = {**job, "spec": {**job["spec"], "backoffLimit": 3}}
    rig.write_secret("mr", changed)
    until_over(rig, runs=2)
    rig.delete_managed_resource("mr")
