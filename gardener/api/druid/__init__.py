"""Names of the kinds of etcd-druid, the operator of etcd."""

from kube.resources import Resource

_GROUP = "druid.gardener.cloud"
_VERSION = "v1alpha1"

ETCDS = Resource(_GROUP, _VERSION, "Etcd", "etcds", namespaced=True)
ETCD_COPY_BACKUPS_TASKS = Resource(_GROUP, _VERSION, "EtcdCopyBackupsTask", "etcdcopybackupstasks", namespaced=True)
ETCD_OPS_TASKS = Resource(_GROUP, _VERSION, "EtcdOpsTask", "etcdopstasks", True, ("eot",))
