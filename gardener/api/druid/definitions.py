"""The kinds of etcd-druid, one description each."""

from gardener.api.definition import Definition
from gardener.api.druid.etcd import ETCD
from gardener.api.druid.etcd_copy_backups_task import ETCD_COPY_BACKUPS_TASK
from gardener.api.druid.etcd_ops_task import ETCD_OPS_TASK

DEFINITIONS: tuple[Definition, ...] = (ETCD, ETCD_COPY_BACKUPS_TASK, ETCD_OPS_TASK)
