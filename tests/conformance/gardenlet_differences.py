"""Where a gardenlet leaves something else than the original, and why."""

from conformance.scenario_data import Observations

_RENEWED = "it goes on with the new certificate, and is not restarted"
_HALF = "a token is renewed after half of its life, since an outage of the garden may outlast a fifth of it"
_RUNS, _LATER = {"ended well": "running"}, {"<now+5h>": "<now+3h>"}

_OUTDATED = "Extension extension ($TID/e) reports an outdated health status (last updated: "

OTHERWISE: dict[str, tuple[str, dict[str, str]]] = {
    "bootstrap/renew-by-annotation": (_RENEWED, _RUNS),
    "bootstrap/renew-keeps-subject-and-sans": (_RENEWED, _RUNS),
    "bootstrap/renewed-by-deadline": (_RENEWED, _RUNS),
    "shoot-care/extension-heartbeat-missing": (
        "an extension that was never seen has not been seen in the year 1",
        {f"{_OUTDATED}<duration> ago at <time>).": f"{_OUTDATED}never)."},
    ),
    "token-requestor-workload-identity/context-object-nonsense": (_HALF, _LATER),
    "token-requestor-workload-identity/identity-missing": (_HALF, _LATER),
    "token-requestor-workload-identity/renew-in-the-future-without-token": (_HALF, _LATER),
    "token-requestor-workload-identity/timestamp-removed": (_HALF, _LATER),
    "token-requestor-workload-identity/token": (_HALF, _LATER),
    "token-requestor-workload-identity/token-removed": (_HALF, _LATER),
}
"""By the scenario, why a value is another one than the original's, and which; all else is as recorded."""

_AUTHORITY = {"certificate-authority-data": "<CA of the garden>"}
_BUCKET = "core.gardener.cloud/v1beta1 BackupBucket $P"
_ENTRY = "BackupEntry $TID--<uid>"
_BASTION, _ASKED_BASTION = (
    "operations.gardener.cloud/v1alpha1 Bastion b",
    "extensions.gardener.cloud/v1alpha1 Bastion $TID/b",
)
_INSTALLATION = "core.gardener.cloud/v1beta1 ControllerInstallation $P"
_SHOOT = "core.gardener.cloud/v1beta1 Shoot s"
_MANAGED_SEED = "seedmanagement.gardener.cloud/v1alpha1 ManagedSeed garden/$P"
_MERGED = {
    "controllers": {
        "managedSeed": {"concurrentSyncs": 5, "syncJitterPeriod": "5m0s", "waitSyncPeriod": "3s"},
        "seedCare": {
            "conditionThresholds": [{"duration": "8s", "type": "SeedSystemComponentsHealthy"}],
            "syncPeriod": "3s",
        },
        "shoot": {"concurrentSyncs": 7, "dnsEntryTTLSeconds": 120, "retryDuration": "12h0m0s"},
    },
    "gardenClientConnection": {
        "bootstrapKubeconfig": {"name": "gardenlet-kubeconfig-bootstrap", "namespace": "garden"},
        "kubeconfig": None,
        "kubeconfigSecret": {"name": "gardenlet-kubeconfig", "namespace": "garden"},
        "qps": 200,
    },
    "resources": {"capacity": {"shoots": "250"}},
    "seedConfig": {"metadata": {"name": "$P"}, "spec": {"ingress": {"domain": "ingress.$P.garden.conf.example.com"}}},
    "server": {"metrics": {"bindAddress": "127.0.0.1", "port": "<port>"}},
    "shootClientConnection": {"burst": 150, "qps": 100},
}
_NO_SECRET = {
    "state": "Error",
    "type": "Reconcile",
    "description": 'Failed to get backup secret $NS/bb: secrets "bb" not found',
}

BETTER: dict[str, tuple[str, Observations]] = {
    "registration/self-upgrade-object-broken": (
        "the gardenlet reports a Gardenlet that can't be created by an Event, and works without it",
        {"ended": {"gardenlet": "running"}},
    ),
    "backupbucket/delete-secret-gone": (
        "the copy of the Secret in the seed is enough to delete a bucket",
        {
            "stuck": {_BUCKET: "absent", "seed:extensions.gardener.cloud/v1alpha1 BackupBucket $P": "absent"},
            "gone": {_BUCKET: "absent"},
        },
    ),
    "backupbucket/secret-gone": (
        "the status reports that the Secret is gone, until it is there again",
        {
            "error": {_BUCKET: {"status": {"lastOperation": _NO_SECRET}}},
            "there-again": {_BUCKET: {"status": {"lastError": None, "lastOperation": {"state": "Succeeded"}}}},
        },
    ),
    "bootstrap/cluster-ca-none": (
        "a kubeconfig that works is not replaced because of a configured authority that does not",
        {
            "rewritten": {
                "gardenlet": "running",
                "seed:v1 Secret garden/$P-kubeconfig": {
                    "data": {"kubeconfig": {"kubeconfig": {"cluster": {"c": _AUTHORITY}}}}
                },
            }
        },
    ),
    "bootstrap/renew-denied": (
        "an Event reports that the request was denied",
        {"still-up": {"gardenlet": "running", "requests for gardener.cloud:system:seed:$P": [{"issued": False}]}},
    ),
    "controllerinstallation-required/installed-later": (
        "what is required already when it is installed is so from the start",
        {"nothing-yet": {_INSTALLATION: {"status": {"conditions": [{"type": "Required", "status": "True"}]}}}},
    ),
    "controllerinstallation/deployment-missing": (
        "a ControllerDeployment that comes later is installed when it comes",
        {
            "ignored": {_INSTALLATION: {"metadata": {"finalizers": None}}},
            "unnoticed": {"seed:v1 Namespace extension-$P": {"metadata": {"name": "extension-$P"}}},
            "installed": {_INSTALLATION: {"status": {"conditions": [{"type": "Valid", "status": "True"}]}}},
        },
    ),
    "managedseed/merge-with-parent": (
        "each release has settings of its own, and a child gets all those of its parent",
        {
            "registered": {
                _MANAGED_SEED: {"status": {"conditions": [{"type": "SeedRegistered", "status": "True"}]}},
                "shoot:v1 ConfigMap garden/gardenlet-configmap-<hash>": {
                    "data": {"config.yaml": _MERGED},
                    "metadata": {"labels": {"resources.gardener.cloud/garbage-collectable-reference": "true"}},
                },
            }
        },
    ),
    "managedseed/renew-kubeconfig": (
        "the kubeconfig of the parent is not given to the child",
        {
            "renewed": {
                _MANAGED_SEED: {"status": {"conditions": [{"type": "SeedRegistered", "status": "True"}]}},
                "shoot:v1 Secret garden/gardenlet-kubeconfig-bootstrap": {"type": "Opaque"},
                "shoot:v1 Secret garden/gardenlet-kubeconfig-garden-<hash>": {"$not": {"type": "Opaque"}},
                f"events of {_MANAGED_SEED}": [
                    "Normal Reconciling: Renewing gardenlet kubeconfig secret due to operation annotation"
                ],
            }
        },
    ),
    "seed-lease/seed-deleted": (
        "that there is no Seed is no fault of the gardenlet",
        {"gone": {"GET /healthz": {"code": 200}, "gardenlet": "running"}},
    ),
    "shoot-care/conditions-of-others-kept": (
        "what others report in the status of a Shoot stays",
        {
            "seen": {
                _SHOOT: {
                    "status": {
                        "conditions": [{"type": "Mine", "status": "False"}],
                        "constraints": [{"type": "MyConstraint", "status": "False"}],
                    }
                }
            }
        },
    ),
    "shoot-state/timestamp-nonsense": (
        "a state without a time that can be read is saved again",
        {
            "kept": {
                "core.gardener.cloud/v1beta1 ShootState s": {
                    "metadata": {"annotations": {"gardener.cloud/timestamp": "<now>"}},
                    "spec": {"gardener": [{"type": "secret", "name": "ca"}]},
                }
            }
        },
    ),
    "shoot-care/never-touched-by-a-gardenlet": (
        "a Shoot is checked, whichever version of a gardenlet was there before",
        {"seen": {_SHOOT: {"status": {"conditions": [{"type": "APIServerAvailable", "status": "True"}]}}}},
    ),
}
"""By the scenario: the reason, and the part of the observations that is right."""

EITHER: dict[str, tuple[str, Observations]] = {
    "backupentry/bucket-provider-status-changes": (
        "while an extension has not answered to what is new, the entry has not succeeded",
        {
            "passed-on": {
                f"core.gardener.cloud/v1beta1 {_ENTRY}": {"status": {"lastOperation": {"state": "Processing"}}},
                f"seed:extensions.gardener.cloud/v1alpha1 {_ENTRY}": {
                    "metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}},
                    "spec": {"backupBucketProviderStatus": {"id": "7"}},
                },
            }
        },
    ),
    "bastion/extension-spec-changed-by-hand": (
        "any pass restores a spec that was changed by hand, also one that comes for another reason",
        {
            "repaired": {
                f"seed:{_ASKED_BASTION}": {
                    "metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}},
                    "spec": {"ingress": [{"ipBlock": {"cidr": "10.1.2.0/24"}}]},
                }
            }
        },
    ),
    "bastion/namespace-missing": (
        "after a while the status reports what is missing now, instead of what was missing before",
        {
            "error": {_BASTION: {"status": {"conditions": [{"message": 'namespaces "$TID" not found'}]}}},
            "there": {
                _BASTION: {"status": {"conditions": [{"reason": "FailedReconciling", "status": "False"}]}},
                f"seed:{_ASKED_BASTION}": {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}},
            },
        },
    ),
    "token-requestor/purpose-removed": (
        "a Secret that is not to have a token any more gets none, also if it has been requested already",
        {"left-alone": {"v1 ServiceAccount seed-conf/sa-$P": "absent"}},
    ),
}
"""By the scenario: the reason, and the part of the observations that is right besides what was recorded."""
