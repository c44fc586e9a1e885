"""Programs of each version of Kubernetes know all flags that are passed to them: with another, they do not start.

The table is made from the sources of 1.28.15, 1.29.15, 1.30.14, 1.31.4, 1.32.2, 1.33.13, 1.34.4, 1.35.8 and 1.36.3:
k8s.io/apiserver/pkg/server/options, k8s.io/component-base, k8s.io/controller-manager, pkg/kubeapiserver/options,
pkg/controlplane/apiserver/options, cmd/kube-controller-manager/app/options, cmd/kube-scheduler/app/options. `tests/cluster/test_shoot_command_lines.py`
queries programs themselves.
"""

import pytest

from kit.shoot_components import (
    WITH_ALL_SETTINGS,
    api_server_arguments,
    controller_manager_arguments,
    flags_in,
    scheduler_arguments,
)

MINORS = range(28, 37)
API_SERVER = {
    *(
        "admission-control-config-file",
        "advertise-address",
        "allow-privileged",
        "anonymous-auth",
        "api-audiences",
        "audit-log-maxbackup",
    ),
    *("audit-log-maxsize", "audit-log-path", "audit-policy-file", "authorization-mode", "client-ca-file"),
    *("default-not-ready-toleration-seconds", "default-unreachable-toleration-seconds", "default-watch-cache-size"),
    *("disable-admission-plugins", "enable-admission-plugins", "enable-aggregator-routing"),
    *("enable-bootstrap-token-auth", "encryption-provider-config", "etcd-cafile", "etcd-certfile", "etcd-keyfile"),
    *("etcd-servers", "etcd-servers-overrides", "event-ttl", "external-hostname", "feature-gates"),
    *("kubelet-certificate-authority", "kubelet-client-certificate", "kubelet-client-key"),
    *(
        "http2-max-streams-per-connection",
        "kubelet-preferred-address-types",
        "livez-grace-period",
        "max-mutating-requests-inflight",
    ),
    *("max-requests-inflight", "oidc-ca-file", "oidc-client-id", "oidc-groups-claim", "oidc-groups-prefix"),
    *("oidc-issuer-url", "oidc-required-claim", "oidc-signing-algs", "oidc-username-claim", "oidc-username-prefix"),
    *("profiling", "proxy-client-cert-file", "proxy-client-key-file", "requestheader-client-ca-file"),
    *("requestheader-extra-headers-prefix", "requestheader-group-headers", "requestheader-username-headers"),
    *("runtime-config", "secure-port", "service-account-extend-token-expiration", "service-account-issuer"),
    *("service-account-key-file", "service-account-max-token-expiration", "service-account-signing-key-file"),
    *("service-cluster-ip-range", "shutdown-delay-duration", "tls-cert-file", "tls-cipher-suites"),
    *("tls-private-key-file", "token-auth-file", "v", "vmodule", "watch-cache-sizes"),
}
"""Known to all of these versions."""
SINCE = {"authentication-config": 29}
"""Minor versions."""
CONTROLLER_MANAGER = {
    *("allocate-node-cidrs", "attach-detach-reconcile-sync-period", "cluster-cidr", "concurrent-deployment-syncs"),
    *("authentication-kubeconfig", "authorization-kubeconfig", "cluster-name", "cluster-signing-duration"),
    *("concurrent-replicaset-syncs", "concurrent-statefulset-syncs", "leader-elect", "node-cidr-mask-size"),
    *(
        f"cluster-signing-{signer}-{file}-file"
        for signer in ("kube-apiserver-client", "kubelet-client", "kubelet-serving", "legacy-unknown")
        for file in ("cert", "key")
    ),
    *(
        f"horizontal-pod-autoscaler-{what}"
        for what in ("cpu-initialization-period", "downscale-stabilization", "initial-readiness-delay", "sync-period")
    ),
    *("horizontal-pod-autoscaler-tolerance", "node-monitor-grace-period"),
    *("concurrent-endpoint-syncs", "concurrent-gc-syncs", "concurrent-namespace-syncs"),
    *("concurrent-resource-quota-syncs", "concurrent-service-endpoint-syncs", "concurrent-serviceaccount-token-syncs"),
    *("controllers", "feature-gates", "kubeconfig", "profiling", "root-ca-file", "secure-port"),
    *("service-account-private-key-file", "service-cluster-ip-range", "tls-cert-file", "tls-cipher-suites"),
    *("tls-private-key-file", "use-service-account-credentials", "v"),
}
SCHEDULER = {
    *("authentication-kubeconfig", "authorization-kubeconfig", "client-ca-file", "config", "feature-gates"),
    *("secure-port", "tls-cert-file", "tls-private-key-file", "v"),
}


@pytest.mark.parametrize("minor", MINORS)
def test_each_version_knows_all_flags(minor: int) -> None:
    known = API_SERVER | {name for name, since in SINCE.items() if since <= minor}
    assert flags_in(api_server_arguments(f"1.{minor}.0")) - known == set()
    assert flags_in(controller_manager_arguments(f"1.{minor}.0")) - CONTROLLER_MANAGER == set()
    assert flags_in(scheduler_arguments(f"1.{minor}.0")) - SCHEDULER == set()


def test_the_table_has_no_flag_that_is_passed_to_none() -> None:
    passed = {name for minor in MINORS for name in flags_in(api_server_arguments(f"1.{minor}.0"))}
    passed |= flags_in(api_server_arguments("1.30.0", {**WITH_ALL_SETTINGS, "authentication": ""}))
    assert {*API_SERVER, *SINCE} - passed == set()
    assert {
        name for minor in MINORS for name in flags_in(controller_manager_arguments(f"1.{minor}.0"))
    } == CONTROLLER_MANAGER
    assert flags_in(scheduler_arguments("1.30.0")) == SCHEDULER
