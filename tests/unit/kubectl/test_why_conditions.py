"""What to do about conditions of Shoots and Seeds: the command is about the object that the check names."""

import pytest

from components import kube_apiserver
from gardener import conditions as types
from kit.garden_objects import shoot
from kubectl.garden.why.checks import of_seed, of_shoot

SEED = "shoot--n--s"
SHOOT = shoot("n/s", status={"technicalID": SEED})
RESTORED = "it is restored automatically; if the problem persists, contact the operator of its Seed; "


@pytest.mark.parametrize(
    ("type_", "reason", "message", "remedy"),
    [
        (
            types.API_SERVER_AVAILABLE,
            "HealthzRequestError",
            "API server /healthz endpoint request failed: no answer",
            (
                "check whether webhooks or clients overload it; if it does not respond at all, contact the operator of its Seed; "
                f"in the seed: kubectl describe deployment {kube_apiserver.NAME} -n {SEED}"
            ),
        ),
        (
            types.CONTROL_PLANE_HEALTHY,
            "DeploymentUnhealthy",
            'Deployment "kube-controller-manager" is unhealthy: condition "Available" has invalid status False',
            f"{RESTORED}in the seed: kubectl describe deployment kube-controller-manager -n {SEED}",
        ),
        (
            types.CONTROL_PLANE_HEALTHY,
            "DeploymentUnhealthy",
            'Deployment "--all" is unhealthy: it is named like an option',
            f"{RESTORED}in the seed: kubectl mr get -n {SEED}",
        ),
        (
            types.CONTROL_PLANE_HEALTHY,
            "EtcdUnhealthy",
            'Etcd extension resource "etcd-main" is unhealthy: etcd "etcd-main" is not ready yet',
            f"{RESTORED}in the seed: kubectl describe etcd etcd-main -n {SEED}",
        ),
        (
            types.CONTROL_PLANE_HEALTHY,
            "HibernatedControlPlaneScaled",
            'Deployment "kube-apiserver" has 1 replicas though the Shoot is hibernated',
            f"{RESTORED}in the seed: kubectl describe deployment kube-apiserver -n {SEED}",
        ),
        (
            types.CONTROL_PLANE_HEALTHY,
            "DeploymentMissing",
            "Missing required deployments: [kube-scheduler]",
            f"{RESTORED}to have it made again: kubectl annotate shoot s -n n --overwrite gardener.cloud/operation=reconcile",
        ),
        (
            types.CONTROL_PLANE_HEALTHY,
            "ExtensionUnhealthyReport",
            f"Extension extension ({SEED}/audit) reports failing health check: it is full",
            f"{RESTORED}in the seed: kubectl describe extension audit -n {SEED}",
        ),
        (
            types.CONTROL_PLANE_HEALTHY,
            "BackupEntryUnhealthyReport",
            f"BackupEntry extension ({SEED}--uid) reports failing health check: it is full",
            f"{RESTORED}in the seed: kubectl describe backupentry {SEED}--uid",
        ),
        (
            types.CONTROL_PLANE_HEALTHY,
            "ExtensionOutdatedHealthCheckReport",
            f"Extension extension ({SEED}/audit) reports an outdated health status (last updated: never).",
            "see whether the extension runs: kubectl get controllerinstallations",
        ),
        (
            types.SYSTEM_COMPONENTS_HEALTHY,
            "ApplyFailed",
            "could not apply ConfigMap a/b",
            (
                "see the object that the message names, in the Shoot: kubectl describe KIND NAME; "
                f"in the seed: kubectl mr get -n {SEED}"
            ),
        ),
        (
            types.SYSTEM_COMPONENTS_HEALTHY,
            "ProgressingRolloutStuck",
            "ManagedResource shoot-core is progressing for more than 1h",
            (
                "see the object that the message names, in the Shoot: kubectl describe KIND NAME; "
                f"in the seed: kubectl mr describe shoot-core -n {SEED}"
            ),
        ),
        (
            types.SYSTEM_COMPONENTS_HEALTHY,
            "ConditionCheckError",
            'Could not initialize Shoot client for health check: error creating new ClientSet for key "n/s": token',
            (
                "in the seed, see whether its resource manager runs, which renews the token in Secret gardener: "
                f"kubectl describe deployment gardener-resource-manager -n {SEED}"
            ),
        ),
        (
            types.EVERY_NODE_READY,
            "NodeUnhealthy",
            'Node "a-1" is unhealthy: condition Ready is False due to KubeletNotReady: x',
            "in the Shoot: kubectl describe node a-1",
        ),
        (
            types.EVERY_NODE_READY,
            "KubeletVersionMismatch",
            'Node "a-1" runs kubelet v1.30.1, expected v1.30.4',
            "in the Shoot: kubectl describe node a-1",
        ),
        (
            types.EVERY_NODE_READY,
            "OperatingSystemConfigOutdated",
            'The Secret with the configuration of worker pool "a" does not exist.',
            "see the nodes that the message names: kubectl describe node",
        ),
        (
            types.SYSTEM_COMPONENTS_HEALTHY,
            "DeploymentUnhealthy",
            'Deployment "kube-system/coredns" is unhealthy: no replica is available',
            (
                "see the object that the message names, in the Shoot: kubectl describe KIND NAME; "
                f"in the seed: kubectl mr get -n {SEED}"
            ),
        ),
        (
            types.SYSTEM_COMPONENTS_HEALTHY,
            "DeploymentMissing",
            'Required Deployment "coredns" in namespace "kube-system" is missing',
            "see the object that the message names, in the Shoot: kubectl describe KIND NAME",
        ),
        (
            types.CONTROL_PLANE_HEALTHY,
            "ConditionCheckError",
            "Shoot control plane has not been fully created yet.",
            "it is checked once the control plane runs",
        ),
        (
            types.HIBERNATION_POSSIBLE,
            "ProblematicWebhooks",
            'ValidatingWebhookConfiguration "of-me" is problematic: webhook "a.b.c" with failurePolicy "Fail"',
            (
                "correct or remove the webhook that the message names, in the Shoot; "
                "kubectl edit validatingwebhookconfiguration of-me"
            ),
        ),
        (
            types.CA_CERTIFICATE_VALIDITIES_ACCEPTABLE,
            "ExpiringCACertificates",
            'Some CA certificates are expiring in less than 8760h, you should rotate them: "ca"',
            "rotate them: kubectl annotate shoot s -n n --overwrite gardener.cloud/operation=rotate-ca-start",
        ),
        (
            types.OLD_CA_CERTIFICATE_UNUSED,
            "UsersOfOldCACertificate",
            "These trust only the old certificate authority and will fail once its rotation is completed; update them: Secret a",
            (
                "have each of them trust the CAs in ConfigMap s.ca-cluster, then: "
                "kubectl annotate shoot s -n n --overwrite gardener.cloud/operation=rotate-ca-complete"
            ),
        ),
        (types.CONTROL_PLANE_HEALTHY, "Other", "something", RESTORED.removesuffix("; ")),
        ("Mine", "Other", "something", ""),
    ],
)
def test_what_to_do_about_a_shoot(type_: str, reason: str, message: str, remedy: str) -> None:
    found = {"type": type_, "status": "False", "reason": reason, "message": message}
    assert of_shoot(SHOOT)(found) == remedy


def test_nothing_is_shown_of_a_namespace_that_is_not_known() -> None:
    found = {"type": types.CONTROL_PLANE_HEALTHY, "reason": "EtcdUnhealthy", "message": 'Etcd "etcd-main" is'}
    assert of_shoot(shoot("n/s"))(found) == RESTORED.removesuffix("; ")


def test_every_condition_of_a_seed_has_a_remedy() -> None:
    for type_ in (
        types.GARDENLET_READY,
        types.BACKUP_BUCKETS_READY,
        types.EXTENSIONS_READY,
        types.SEED_SYSTEM_COMPONENTS_HEALTHY,
        types.GARDENLET_CERTIFICATE,
    ):
        assert of_seed({"type": type_, "status": "False"})
