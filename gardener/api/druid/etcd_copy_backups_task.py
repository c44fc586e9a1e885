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
            "What is copied.",
            {
                "sourceStore*": store("Where the backups are."),
                "targetStore*": store("Where they are copied to."),
                "maxBackupAge": integer("Age in days of the backups at most. Default: any.", at_least=0),
                "maxBackups": integer("How many are copied at most, the newest first. Default: all.", at_least=0),
                "waitForFinalSnapshot": struct(
                    "Whether it waits until the last snapshot is there.",
                    {
                        "enabled*": boolean("Whether it waits."),
                        "timeout": duration("How long at most. Default, and 0: for ever."),
                    },
                ),
                "podLabels": string_map("Further labels of the Pod."),
            },
        ),
        "status": struct(
            "What etcd-druid reports.",
            {
                "conditions": CONDITIONS,
                "observedGeneration": OBSERVED_GENERATION,
                "lastError": string("The error of the last attempt."),
            },
        ),
    },
)
