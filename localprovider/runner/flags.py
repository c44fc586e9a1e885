"""Permitted flags and variables of the programs of a control plane, and their permitted values.

A Deployment defines the arguments of its program. In a seed that is a Shoot, its owner can write any Deployment, so
flags that are not listed are refused: a flag may name a local file, write one, or run a program. Flags for addresses
and output files of a server are not taken from the Deployment; see `commands`. Variables that are not listed have no
effect, and the Deployment reports them; most describe the place of a pod. Contents of files are checked by
`gardener.tenant_files.mounted`, which has to know each flag that names a file with paths in it.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from agent.gardenlet.common.image_overwrites import COMPONENTS_VARIABLE, VARIABLE
from kube.objects import Object, mappings, text
from localprocesses.confined import OutsideError
from localprovider.runner.addresses import Here
from localprovider.runner.volumes import Refused

Rule = Callable[[str, Here], str | None]
"""Function that returns the local value; None to drop the flag. Raises Refused, OutsideError."""
_FLAG = re.compile(r"--([a-z][a-z0-9-]{0,99})(?:=(.*))?", re.DOTALL)
_MOST, _SHOWN = 500, 100
_ETCDS = ("etcd-main-client", "etcd-events-client")
"""Names of Services."""


# --- rules of values


def _matching(pattern: str) -> Rule:
    expression = re.compile(pattern)

    def rule(value: str, _: Here) -> str:
        if not expression.fullmatch(value):
            raise Refused("has a value that is not allowed here")
        return value

    return rule


def _file(value: str, here: Here) -> str:
    """Permit mounted files."""
    return str(here.file(value))


def _without(_value: str, _here: Here) -> None:
    """Drop a flag that the runner decides, or that has no effect here."""
    return


def _etcds(value: str, here: Here) -> str:
    """Permit URLs of etcds; overrides have a resource before the address."""
    resource, mark, urls = value.rpartition("#")
    if mark and not re.fullmatch(r"[a-z0-9.]*/[a-z0-9.]+", resource):
        raise Refused("has a resource that is not allowed here")
    return f"{resource}{mark}{here.service(urls, _ETCDS)}"


def _written(value: str, here: Here) -> str:
    """Permit a file that the program writes."""
    return str(here.temporary_file(value))


_text = _matching(r"[^\x00-\x1f\x7f]{0,10000}")
_number = _matching(r"\d{1,9}")
_share = _matching(r"\d{1,9}(\.\d{1,9})?")
_duration = _matching(r"0|(\d{1,9}(\.\d{1,9})?(ns|us|ms|s|m|h))+")
_switch = _matching("true|false")
_names = _matching(r"[A-Za-z0-9*._/=:,#-]{0,10000}")
_networks = _matching(r"[0-9a-fA-F.:/,]{1,200}")


def _flags(rule: Rule, names: str) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


_OF_ALL: Mapping[str, Rule] = {
    **_flags(_names, "feature-gates tls-cipher-suites tls-min-version vmodule"),
    **_flags(_number, "v"),
    **_flags(_file, "client-ca-file tls-cert-file tls-private-key-file requestheader-client-ca-file"),
    **_flags(_switch, "profiling contention-profiling"),
    **_flags(_without, "bind-address secure-port cert-dir leader-elect"),
}
APISERVER_FLAGS: Mapping[str, Rule] = {
    **_OF_ALL,
    **_flags(
        _names,
        "authorization-mode disable-admission-plugins enable-admission-plugins external-hostname "
        "kubelet-preferred-address-types oidc-signing-algs requestheader-allowed-names "
        "requestheader-extra-headers-prefix requestheader-group-headers requestheader-username-headers runtime-config "
        "watch-cache-sizes",
    ),
    **_flags(
        _text,
        "api-audiences oidc-client-id oidc-groups-claim oidc-groups-prefix oidc-issuer-url oidc-required-claim "
        "oidc-username-claim oidc-username-prefix service-account-issuer",
    ),
    **_flags(
        _number,
        "default-not-ready-toleration-seconds default-unreachable-toleration-seconds "
        "default-watch-cache-size http2-max-streams-per-connection max-mutating-requests-inflight "
        "max-requests-inflight min-request-timeout",
    ),
    **_flags(
        _duration,
        "event-ttl livez-grace-period request-timeout service-account-max-token-expiration",
    ),
    **_flags(
        _switch,
        "allow-privileged anonymous-auth enable-aggregator-routing enable-bootstrap-token-auth "
        "service-account-extend-token-expiration",
    ),
    **_flags(_share, "goaway-chance"),
    **_flags(_networks, "service-cluster-ip-range"),
    **_flags(
        _file,
        "audit-policy-file etcd-cafile etcd-certfile etcd-keyfile kubelet-certificate-authority "
        "kubelet-client-certificate kubelet-client-key oidc-ca-file proxy-client-cert-file proxy-client-key-file "
        "service-account-key-file service-account-signing-key-file token-auth-file",
    ),
    **_flags(_etcds, "etcd-servers etcd-servers-overrides"),
    **_flags(_written, "audit-log-path"),
    "admission-control-config-file": _file,
    "authentication-config": _file,
    "encryption-provider-config": _file,
    # No pod is behind the Service `kubernetes`, no tunnel leads to nodes, and the audit log is bounded here.
    **_flags(
        _without,
        "advertise-address audit-log-maxbackup audit-log-maxsize egress-selector-config-file endpoint-reconciler-type "
        "shutdown-delay-duration",
    ),
}
CONTROLLER_MANAGER_FLAGS: Mapping[str, Rule] = {
    **_OF_ALL,
    **_flags(_file, "authentication-kubeconfig authorization-kubeconfig kubeconfig"),
    **_flags(_names, "cluster-name controllers"),
    **_flags(_networks, "cluster-cidr service-cluster-ip-range"),
    **_flags(
        _number,
        "concurrent-deployment-syncs concurrent-endpoint-syncs concurrent-gc-syncs concurrent-namespace-syncs "
        "concurrent-replicaset-syncs concurrent-resource-quota-syncs concurrent-service-endpoint-syncs "
        "concurrent-serviceaccount-token-syncs concurrent-statefulset-syncs node-cidr-mask-size "
        "node-cidr-mask-size-ipv4 node-cidr-mask-size-ipv6",
    ),
    **_flags(
        _duration,
        "attach-detach-reconcile-sync-period cluster-signing-duration "
        "horizontal-pod-autoscaler-cpu-initialization-period horizontal-pod-autoscaler-downscale-stabilization "
        "horizontal-pod-autoscaler-initial-readiness-delay horizontal-pod-autoscaler-sync-period "
        "node-monitor-grace-period node-monitor-period node-startup-grace-period pod-eviction-timeout",
    ),
    **_flags(_share, "horizontal-pod-autoscaler-tolerance"),
    **_flags(_switch, "allocate-node-cidrs use-service-account-credentials"),
    **_flags(
        _file,
        "cluster-signing-kube-apiserver-client-cert-file cluster-signing-kube-apiserver-client-key-file "
        "cluster-signing-kubelet-client-cert-file cluster-signing-kubelet-client-key-file "
        "cluster-signing-kubelet-serving-cert-file cluster-signing-kubelet-serving-key-file "
        "cluster-signing-legacy-unknown-cert-file cluster-signing-legacy-unknown-key-file root-ca-file "
        "service-account-private-key-file",
    ),
    **_flags(_without, "flex-volume-plugin-dir"),
}
SCHEDULER_FLAGS: Mapping[str, Rule] = {
    **_OF_ALL,
    **_flags(_file, "authentication-kubeconfig authorization-kubeconfig kubeconfig"),
    "config": _file,
}
AGENT_FLAGS: Mapping[str, Rule] = {"config": _file}
MACHINES_KUBECONFIG = "target-kubeconfig"
MACHINES_FLAGS: Mapping[str, Rule] = {MACHINES_KUBECONFIG: _file}

# --- variables: patterns of names

KUBERNETES_VARIABLES: Mapping[str, Rule] = {
    "GOGC": _matching(r"[1-9]\d{0,2}"),
    "GOMAXPROCS": _matching(r"[1-9]\d?"),
    "GOMEMLIMIT": _matching(r"off|\d{1,18}(B|[KMGT]iB)?"),
    "KUBE_FEATURE_[A-Za-z0-9]{1,100}": _matching("(?i)true|false|[tf01]"),
}
AGENT_VARIABLES: Mapping[str, Rule] = {VARIABLE: _file, COMPONENTS_VARIABLE: _file}


def read(arguments: Sequence[str], rules: Mapping[str, Rule], here: Here) -> list[str]:
    """Return the arguments with local values.

    Raises:
        Refused: an argument is not permitted.
    """
    if len(arguments) > _MOST:
        raise Refused(f"it has more than {_MOST} arguments")
    return [*_read(arguments, rules, here)]


def _read(arguments: Sequence[str], rules: Mapping[str, Rule], here: Here) -> Iterable[str]:
    # The original's scheduler has an empty one.
    for each in filter(None, arguments):
        found = _FLAG.fullmatch(each)
        name = found[1] if found else ""
        if found is None or name not in rules:
            raise Refused(
                f"argument {each.partition('=')[0][:_SHOWN]!r} is not allowed here: write --flag=value, with a flag "
                "that control planes of Shoots have"
            )
        value = "true" if found[2] is None else found[2]
        try:
            allowed = rules[name](value, here)
        except (OutsideError, Refused) as error:
            raise Refused(f"--{name}: {error}") from error
        if allowed is not None:
            yield f"--{name}={allowed}"


def variables(container: Object, rules: Mapping[str, Rule], here: Here) -> dict[str, str]:
    """Return the permitted variables, with local values.

    Raises:
        Refused: a value is not permitted.
    """
    found = dict[str, str]()
    for each in mappings(container.get("env")):
        name, value, rule = text(each.get("name")), text(each.get("value")), _rule_of(each, rules)
        if rule is None or not value:
            continue
        try:
            found[name] = text(rule(value, here))
        except (OutsideError, Refused) as error:
            raise Refused(f"variable {name}: {error}") from error
    return found


def without_effect(pod: Object, rules: Mapping[str, Rule]) -> list[str]:
    """Return parts of a pod that have no effect here; `rules` are those of the variables."""
    first, *others = mappings(pod.get("containers")) or [{}]
    given = mappings(first.get("env"))
    return [
        *(f"variable {text(each.get('name'))[:_SHOWN]}" for each in given if _rule_of(each, rules) is None),
        *(["envFrom"] if first.get("envFrom") else []),
        *(f"container {text(each.get('name'))}" for each in others),
        *(f"init container {text(each.get('name'))}" for each in mappings(pod.get("initContainers"))),
    ]


def _rule_of(variable: Object, rules: Mapping[str, Rule]) -> Rule | None:
    """Rule for a value in the Deployment itself; None if the variable has no effect."""
    name = text(variable.get("name"))
    found = (rule for pattern, rule in rules.items() if re.fullmatch(pattern, name))
    return None if "valueFrom" in variable else next(found, None)
