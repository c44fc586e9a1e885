"""Roll-outs that a person completes, and Jobs that have not completed: conditions, and what depends on them."""

from typing import Any

import pytest

from kit.objects import CONTAINERS, config_map, deployment, obj, stateful_set
from kit.rig import Rig
from kube.objects import Object

DEPENDS_ON = "resources.gardener.cloud/depends-on"
SETTLED = ("True", "True", "False")
BY_PARTITION = (
    "1 of 3 replica(s) have been updated, since spec.updateStrategy.rollingUpdate.partition is 2: "
    "lower the partition to update the others"
)


def pods(image: str) -> Object:
    return {"containers": [{"name": "c", "image": image}], "terminationGracePeriodSeconds": 0}


def parted(image: str, **spec: Any) -> Object:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    return stateful_set("parted", replicas=3, pod=pods(image), updateStrategy=strategy, volumeClaimTemplates=[], **spec)


def on_delete(image: str) -> Object:
    strategy = {"type": "OnDelete"}
    return stateful_set("byhand", replicas=2, pod=pods(image), updateStrategy=strategy, volumeClaimTemplates=[])


def agents(image: str) -> Object:
    labels = {"app": "agents"}
    template = {"metadata": {"labels": labels}, "spec": pods(image)}
    return obj(
        "apps/v1 DaemonSet",
        "agents",
        spec={"selector": {"matchLabels": labels}, "updateStrategy": {"type": "OnDelete"}, "template": template},
    )


def paused(image: str) -> Object:
    return deployment("web", replicas=1, pod=pods(image), paused=image == "i:v2")


def image_of(rig: Rig, kind: str, name: str) -> str:
    return str(rig.get(kind, name)["spec"]["template"]["spec"]["containers"][0]["image"])


@pytest.mark.parametrize(
    ("make", "kind", "name", "expected"),
    [
        (
            parted,
            "StatefulSet",
            "parted",
            BY_PARTITION,
        ),
        (
            lambda image: parted(image, ordinals={"start": 5}),
            "StatefulSet",
            "parted",
            BY_PARTITION,
        ),
        (
            on_delete,
            "StatefulSet",
            "byhand",
            "since spec.updateStrategy.type is OnDelete: delete the other pods to update them",
        ),
        (agents, "DaemonSet", "agents", "since spec.updateStrategy.type is OnDelete: delete the other pods"),
        (
            paused,
            "Deployment",
            "web",
            "0 of 1 replica(s) have been updated, since spec.paused is true: set it to false to update the others",
        ),
    ],
    ids=["partition", "partition-of-later-ordinals", "on-delete", "daemon-set", "paused"],
)
def test_a_roll_out_that_a_person_completes_is_over_and_reports_what_is_left(
    make: Any, kind: str, name: str, expected: str, rig: Rig
) -> None:
    rig.apply("mr", make("i:v1"))
    rig.until(lambda: rig.statuses("mr") == SETTLED, "it to be ready")
    rig.write_secret("mr", make("i:v2"))
    rig.until(lambda: image_of(rig, kind, name) == "i:v2", "the change")

    def says_what_is_left() -> bool:
        message = rig.condition("mr", "ResourcesProgressing").get("message", "")
        return rig.statuses("mr") == SETTLED and f'{kind} "{rig.namespace}/{name}": ' in message and expected in message

    rig.until(says_what_is_left, "it to be ready again, and to report what is left")
    rig.write_secret("next", config_map("next"))
    rig.write_managed_resource("next", annotated={DEPENDS_ON: "mr:healthy"})
    rig.until_applied("next")


@pytest.fixture
def job() -> Object:
    template = {"spec": {"restartPolicy": "Never", "nodeSelector": {"nowhere": "1"}, "containers": CONTAINERS}}
    return obj("Job", "schema", spec={"template": template})


def test_what_depends_on_a_job_waits_until_it_has_completed(rig: Rig, job: Object) -> None:
    rig.write_secret("next", config_map("next"))
    rig.write_managed_resource("next", annotated={DEPENDS_ON: "mr:healthy"})
    rig.apply("mr", job)

    def is_progressing() -> bool:
        found = rig.condition("mr", "ResourcesProgressing")
        return (found.get("status"), found.get("reason")) == ("True", "JobProgressing") and (
            f"; cause: Pod/{rig.namespace}/schema-" in found["message"]
            and "is not scheduled: " in found["message"]
            and "node affinity" in found["message"]
        )

    rig.until(is_progressing, "the Job to be in progress, and why")
    rig.until_failed("next", f"{rig.namespace}/mr, which is not rolled out", reason="WaitingForDependencies")
    assert rig.find("ConfigMap", "next") is None
    # Nothing is left to be done.
    rig.write_secret(
        "mr", {**job, "metadata": {**job["metadata"], "name": "other"}, "spec": {**job["spec"], "completions": 0}}
    )
    rig.until_applied("next")
    rig.until(lambda: rig.statuses("mr") == SETTLED, "it to be ready")
