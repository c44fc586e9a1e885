"""EtcdCopyBackupsTask: copies the backups of an etcd to another store, once."""

from gardener.api.definition import Definition
from gardener.api.druid import ETCD_COPY_BACKUPS_TASKS
from gardener.api.druid.common import CONDITIONS, store
from gardener.api.extensions.common import PROTECTED
from gardener.api.garden.common import OBSERVED_GENERATION
from gardener.api.schema import boolean, duration, integer, string, string_map, struct

ETCD_COPY_BACKUPS_TASK = Definition(
    resource=ETCD_COPY_BACKUPS_TASKS,
    description="Copies backups of an etcd from one store to another.",
    labels=PROTECTED,
    fields={
        "spec": struct(
            "Source, target and selection of the backups.",
            {
                "sourceStore*": store("Store to copy from."),
                "targetStore*": store("Store to copy to."),
                "maxBackupAge": integer("Age in days of the backups at most. Default: any.", at_least=0),
                "maxBackups": integer("Maximum number of backups, the newest first. Default: all.", at_least=0),
                "waitForFinalSnapshot": struct(
                    "Settings of the wait for the final snapshot.",
                    {
                        "enabled*": boolean("Whether the task waits for the final snapshot."),
                        "timeout": duration("Maximum time to wait. Default: no limit; the same for 0."),
                    },
                ),
                "podLabels": string_map("Further labels of the Pod."),
            },
        ),
        "status": struct(
            "State that etcd-druid reports.",
            {
                "conditions": CONDITIONS,
                "observedGeneration": OBSERVED_GENERATION,
                "lastError": string("The error of the last attempt."),
            },
        ),
    },
)
