"""EtcdOpsTask: one operation on an etcd that runs, such as a snapshot on demand."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.druid import ETCD_OPS_TASKS
from gardener.api.druid.common import LAST_ERRORS, LAST_OPERATION
from gardener.api.extensions.common import PROTECTED
from gardener.api.schema import boolean, immutable, integer, rule, string, struct, time

_SNAPSHOT = struct(
    "A snapshot on demand.",
    {
        "type*": string("Type of the snapshot.", enum=["full", "delta"]),
        "isFinal": boolean("Whether it is the last snapshot; only full ones can be."),
        "timeoutSeconds": integer("Timeout of the snapshot, in seconds. Default: 60.", default=60, at_least=1),
    },
    rules=[
        rule("self.type != 'delta' || !has(self.isFinal)", "must not be set for delta snapshots", field="isFinal"),
    ],
)

ETCD_OPS_TASK = Definition(
    resource=ETCD_OPS_TASKS,
    description="One operation on an etcd.",
    labels=PROTECTED,
    fields={
        "spec*": struct(
            "Operation. Immutable.",
            {
                "config*": {
                    **struct("The operation: exactly one.", {"onDemandSnapshot": _SNAPSHOT}),
                    "minProperties": 1,
                    "maxProperties": 1,
                },
                "etcdName": string("Name of the Etcd."),
                "ttlSecondsAfterFinished": integer(
                    "Seconds after which a finished task is deleted. Default: 3600.", default=3600, at_least=1
                ),
            },
            rules=[immutable("config"), immutable("etcdName"), immutable("ttlSecondsAfterFinished")],
        ),
        "status": struct(
            "State that etcd-druid reports.",
            {
                "state": string(
                    "State of the task.", enum=["Pending", "InProgress", "Succeeded", "Failed", "Rejected"]
                ),
                "lastTransitionTime": time("Time of the last change of `state`."),
                "startedAt": time("Time of the start of the operation."),
                "lastErrors": LAST_ERRORS,
                "lastOperation": LAST_OPERATION,
            },
        ),
    },
    columns=(
        Column("State", ".status.state"),
        Column("Etcd", ".spec.etcdName"),
        AGE,
        Column("Operation State", ".status.lastOperation.state", priority=1),
        Column("TTL", ".spec.ttlSecondsAfterFinished", "integer", priority=1),
    ),
)
