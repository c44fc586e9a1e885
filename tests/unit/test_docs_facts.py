"""Limits, defaults and periods in the documents are those of the code.

A fact is the text of a document as the code's constants make it. Every size, every number of four digits or more and every
period in a document has to be part of a fact, or of a document or section of measurements.
"""

import inspect
import math
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType

import pytest
import yaml as yaml_documents

from agent.resource_manager.common import changes
from agent.resource_manager.garbage_collector import reconcile as garbage_collector
from agent.resource_manager.health import conditions as health_conditions
from agent.resource_manager.health import evaluation
from agent.resource_manager.health import reconcile as health
from agent.resource_manager.istio_cluster_configuration import patches
from agent.resource_manager.managed_resource import (
    change_set,
    contests,
    plans,
    reconcile,
    record,
    removal,
    remove,
    report,
    unwatched,
)
from agent.resource_manager.node.agent_reconciliation_delay import reconcile as delays
from agent.resource_manager.status_page import listing
from agent.resource_manager.token_invalidator import reconcile as token_invalidator
from agent.shared.network_policy import limits, policies
from agent.shared.token_requestor import memory, targets, token_spec
from agent.shared.token_requestor import reconcile as token_reconcile
from agent.shared.token_requestor import rules as token_rules
from config import blocks, document
from config.resource_manager.schema import ResourceManagerConfiguration
from gardener.health.checks import expressions
from gardener.kinds import MANAGED_RESOURCES
from gardener.managed_resource import (
    decode,
    dependencies,
    history,
    history_limit,
    ignored_fields,
    messages,
    warnings,
)
from gardener.managed_resource.plan import LIMITS
from kube import connection, kept, kind_shares, queue, yaml
from kube.resources import CONFIG_MAPS
from kube.watch import Timings
from process import listener, tracing
from process import server as http_server
from process.logging import Sampling
from webhooks import beside, bounds, patch, review, server, state, tls, turns
from webhooks.certificates import rules
from webhooks.garden import access
from webhooks.handlers import crd_deletion_protection, projected_token_mount
from webhooks.handlers.extension_validation import difference, metadata
from webhooks.handlers.extension_validation import rules as extension_rules

CONFIG = ResourceManagerConfiguration()
PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
OUTAGES = (PROJECT / "benchmarks" / "OUTAGES.md").read_text()
COMPONENTS = PROJECT / "manifests" / "components"
HPA, ALERTS = (
    yaml_documents.safe_load((COMPONENTS / file).read_text())["spec"]
    for file in ("horizontal-pod-autoscaler/horizontal-pod-autoscaler.yaml", "alerts/prometheus-rule.yaml")
)
RULES = ALERTS["groups"]


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def size(value: int) -> str:
    """Bytes in the largest unit that gives a whole number."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value % factor == 0:
            return f"{value // factor} {unit}"
    return f"{value:,} bytes"


_SPELLED = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def spelled(value: float) -> str:
    return _SPELLED[int(value)] if value in range(len(_SPELLED)) else f"{value:g}"


def span(seconds: float) -> str:
    """A time in words."""
    if seconds == 0.5:
        return "half a second"
    for unit, factor in (("hour", 3600), ("minute", 60), ("second", 1)):
        if seconds >= factor and seconds % factor == 0:
            return f"{spelled(seconds / factor)} {unit}{'s' if seconds > factor else ''}"
    return f"{seconds:g} seconds"


def argument(of: ModuleType, name: str) -> float:
    """The one number that is given to a parameter, or is its default."""
    (found,) = set(re.findall(rf"\b{name}(?:: float)? ?= ?([\d.]+)", inspect.getsource(of)))
    return float(found)


WORKLOAD_REMOVAL_TIMEOUT = span(CONFIG.controllers.managed_resource.workload_removal_timeout)


def shares_of_lifetime() -> str:
    """When tokens are renewed."""
    earliest, latest = (token_rules.renew_after(timedelta(seconds=1000), jitter=jitter) for jitter in (0, 1))
    return f"{earliest.total_seconds() / 10:g} % to {latest.total_seconds() / 10:g} % of their lifetime"


def first_pauses() -> str:
    """Between requests of tokens for one Secret."""
    pace, now, pauses = memory.Pace(), 0.0, []
    for _ in range(3):
        pace.note(now)
        pauses.append(pace.wait(now))
        now += pauses[-1]
    return f"delayed by {', '.join(map(spelled, pauses))} seconds"


def expiry_of_pod_tokens() -> float:
    golden = (PROJECT / "tests/golden/runtime.yaml").read_text()
    (seconds,) = set(re.findall(r"serviceAccountToken:\n(?: +audience: .*\n)? +expirationSeconds: (\d+)", golden))
    return int(seconds)


def recovery() -> str:
    """After outages of 30 s of what the source consists of."""
    rows = re.findall(r"^\| (?:API server|etcd) \w+ \| 30 s \| ([\d.]+) s", OUTAGES, re.MULTILINE)
    assert len(rows) == 4
    times = [float(row) for row in rows]
    return f"of 30 s, changes are applied again within {math.floor(min(times))} to {math.ceil(max(times))} s"


FACTS: dict[str, tuple[str, ...]] = {
    "configuration": (
        f"larger than {size(document._LARGEST_FILE)}. -",
        f"greater than {blocks.JITTER_FACTOR:g} times `retryPeriod`",
    ),
    "garbage-collection": (
        f"in portions of {garbage_collector._PORTION}, {garbage_collector._AT_ONCE} at once",
        f"up to {garbage_collector._SHOWN} for each kind and namespace",
    ),
    "kubelet-certificates": (),
    "migration": (
        f"or within about {span(memory.REVIEW_SECONDS).replace('one ', 'an ')}",
        f"removed with them, for {WORKLOAD_REMOVAL_TIMEOUT} at most",
    ),
    "network-policies": (
        f"longer than {policies._LONGEST_LABEL} characters",
        f"its first {policies._KEPT_OF_LABEL}, a dash, and {spelled(policies._HASH_DIGITS)} digits",
        f"{limits.MOST_PORTS} ports with those of annotations, {limits.MOST_PORTS} for the world",
        f"{limits.MOST_SELECTORS} namespace selectors with {limits.MOST_REQUIREMENTS} labels and expressions",
        f"and {limits.MOST_VALUES:,} values, {limits.MOST_GATEWAYS} Gateways, {limits.MOST_POLICIES:,} policies",
        f"{limits.MOST_WATCHES} selectors of Gateways",
        f"{patches.MOST_PATCHES:,} ports of Services",
        f"one writes {limits.WRITES_BEFORE_OTHERS} policies at a time",
    ),
    "install": (f"({spelled(HPA['minReplicas'])} to {spelled(HPA['maxReplicas'])} replicas at half a core each)",),
    "nodes": (
        f"computed {span(delays.QUIET_SECONDS)} after the last change".replace("1 second", "one second"),
        f"or every {span(delays.LONGEST_WAIT_SECONDS)} while",
    ),
    "operations": (
        recovery(),
        f"reopened every {Timings().server_timeout / 60:g} to {2 * Timings().server_timeout / 60:g} minutes",
        f"read again once {span(connection._TOKEN_FILE_SECONDS).replace('one ', 'a ')}",
        f"within about {span(connection._FILES_SECONDS)}",
        f"{Sampling.FIRST} a second are written, then every {Sampling.THEREAFTER}th",
        f"names up to {health._LOGGED} (`findings`)",
        f"#resourceshealthy) for {health._LASTING.seconds} s",
        f"(default {CONFIG.server.metrics.managed_resource_series_limit}, 0 for none)",
        f"(default {CONFIG.graceful_shutdown_timeout:g} s)",
        f"after `renewDeadline` ({CONFIG.leader_election.renew_deadline:g} s)",
        f"for `leaseDuration` ({CONFIG.leader_election.lease_duration:g} s)",
        f"Port {CONFIG.server.health_probes.port} by default",
        f"Port {CONFIG.server.metrics.port} by default",
        f"priority `{queue.CHANGE}`: changes, `{queue.REMOVAL}`: deletions of ManagedResources,",
        f"`{queue.RESYNC}`: initial lists and resyncs, `{queue.LAST}`: postponed",
        f"within grace period of {CONFIG.graceful_shutdown_timeout:g}s",
        f"sync within {CONFIG.controllers.cache_sync_timeout / 60:g}m0s",
    ),
    "tokens": (
        shares_of_lifetime(),
        first_pauses(),
        f"lifetimes of more than {'a day' if token_rules._LONGEST_LIFETIME == 24 * 3600 * 10**9 else '?'} count as a day",
        f"at least `{token_spec.LEAST_SECONDS // 60}m`, default `{token_spec.DEFAULT_SECONDS // 3600}h`",
        f"up to a minute. {'' if memory.LONGEST_PAUSE == 60 else '?'}",
        f"up to {spelled(targets.MOST_BY_NAME)} of them by name",
        f"about once {span(memory.REVIEW_SECONDS).replace('one ', 'an ')}",
        f"every {span(token_reconcile.INVALID_SECONDS)}. -",
        f"every {token_invalidator.IN_USE_SECONDS:g} seconds",
    ),
    "managed-resources": (
        f"counts as a failure only after {span(report._TRANSIENT_SECONDS).replace('1 ', 'one ')}",
        f"at the latest {span(record._SETTLING_SECONDS).replace('1 ', 'one ')} after everything was applied",
        f"errors for {span(report._STUCK_SECONDS).replace('one ', 'a ')}, or",
        f"read every {span(health_conditions.EVENTS_KEPT_FOR.total_seconds())}",
        f"decompressed: {size(LIMITS.total_bytes)}, {LIMITS.documents:,} documents, {LIMITS.values:,} values.",
        f"One document: {size(decode.LARGEST_DOCUMENT)}; YAML also {yaml.MAX_NODES:,} values",
        f"and {yaml.MAX_DEPTH} levels of nesting",
        f"One object as JSON: {size(decode.LARGEST_OBJECT)}.",
        f"ManagedResources of {size(plans._LARGE)} and more are processed after",
        f"cut after {messages.MAX_LENGTH:,} characters",
        f"remembers up to {warnings.MOST_STORED >> 10} KiB of this",
        f"kind by kind, up to {spelled(reconcile._AT_ONCE)} objects",
        f"The first {spelled(change_set._TOLD_OBJECTS)} objects are named",
        f"each with its first {spelled(change_set._TOLD_FIELDS)} fields; the log names {report._LOGGED}",
        f"when the deletion has taken {span(removal._NO_NEWS.total_seconds()).replace('3', 'three')}",
        f"the agent spends {span(remove._KEEP_SECONDS).replace('5', 'five')} on that at most",
        f"the old agent waits {span(removal.HAND_OVER_SECONDS)}",
        f"more than {dependencies.MOST} entries or {dependencies._LONGEST:,} characters",
        f"waits up to {span(removal._CLAIM_SECONDS)}",
        f"or {span(removal._UNSEEN_SECONDS)} if no agent has handled that one yet",
        f"after {span(removal._NO_NEWS.total_seconds()).replace('3', 'three')} so does the Event `RemovalHeldBack`",
        f"After {span(removal._CLAIM_SECONDS)}, the object is deleted",
        f"tries again after {span(contests.SECONDS)}",
        f"more than {dependencies.MOST} entries",
        f"{expressions.LONGEST_EXPRESSION:,} characters an expression, {size(expressions.LARGEST_OBJECT)} an object",
        f"An object that needs {expressions.LONGEST_SECONDS} seconds of",
        f"or {evaluation.MEMORY >> 20} MiB, is not evaluated for {span(evaluation.BLAMED_SECONDS).replace('10', 'ten')}",
        f"after {spelled(evaluation.MOST_OBJECTS)} such objects",
        f"after {spelled(evaluation.MOST_NAMESPACES)} such namespaces",
        f"`resources.gardener.cloud/history-limit` (0 to {history_limit.MOST})",
        f"larger than a Secret, {size(decode.LARGEST_SECRET)} when compressed",
        f"of more than {history._LONGEST_LABEL} characters is shortened",
        f"At most {ignored_fields.MOST_RULES} rules with {ignored_fields.MOST_POINTERS} pointers",
        f"pointers of {ignored_fields._LONGEST:,} characters each",
        f"`controllers.managedResource.workloadRemovalTimeout` ({WORKLOAD_REMOVAL_TIMEOUT}) at most",
    ),
    "performance": (
        f"| {CONFIG.source_client_connection.qps:g}, {CONFIG.source_client_connection.burst} |",
        f"`controllers.health.syncPeriod` | {CONFIG.controllers.health.sync_period / 60:g}m |",
        f"`controllers.managedResource.concurrentSyncs` | {CONFIG.controllers.managed_resource.concurrent_syncs} |",
        f"`controllers.health.concurrentSyncs` | {CONFIG.controllers.health.concurrent_syncs} |",
        f"SeriesLimit` | {CONFIG.server.metrics.managed_resource_series_limit} |",
    ),
    "scaling": (
        f"default of {CONFIG.source_client_connection.qps:g} requests a second",
        f"A Lease of {CONFIG.leader_election.lease_duration:g} seconds".replace("A Lease", "a Lease"),
        f"both changes within {span(removal.HAND_OVER_SECONDS)}",
        f"one refused call in {span(unwatched._FORBIDDEN_SECONDS)}",
    ),
    "security": (
        f"{spelled(kind_shares.MOST_OF_A_KIND)} requests of a kind, {spelled(kind_shares.MOST_OF_ALL)} of all, may wait",
        f"for more than {kind_shares.patience(MANAGED_RESOURCES):g} s",
        f"of kinds of Kubernetes {kind_shares.patience(CONFIG_MAPS):g} s",
        f"it is deleted after {span(removal._CLAIM_SECONDS)} otherwise",
        f"of each at most {size(kept._UNPACKED)} is kept",
        f"expires after {span(expiry_of_pod_tokens())} or with the pod",
        f"bound to the pod and expires after {span(expiry_of_pod_tokens())}",
        f"size of a body | {size(review.TOO_LARGE)} |",
        f"lists and objects | {bounds.MAX_VALUES:,} |",
        f"operations of a patch | {patch.MAX_OPERATIONS:,} |",
        f"all clients | {size(server.MAX_BUFFERED)} |",
        f"connections | {server.MAX_CONNECTIONS:,} |",
        f"reading the answer | {server._READ_AND_ANSWER_SECONDS:g} s |",
        f"of one object | {bounds.MAX_VALUES_OF_OBJECT:,} |",
        f"reviews above {size(turns.LARGE)} that wait for an API server | {size(turns._WAITING_AT_ONCE)}, or one",
        f"such reviews of one user | {turns.MOST_OF_A_USER} |",
        f"processor time of a step of a review | {beside.LONGEST_SECONDS:g} s |",
        f"rights that a request needs | {access.MOST_RIGHTS} |",
        f"reviews of rights of one user | {access.MOST_AT_ONCE} at a time, {access.MOST_WAITING} with those that wait |",
        f"handshakes in progress | {listener._HANDSHAKES}, each {listener._HANDSHAKE_SECONDS:g} s |",
        f"characters of a message | {review._MESSAGE_LENGTH:,} |",
    ),
    "status-page": (f"each has {listing.PAGE}", f"The last {changes.KEPT:,} changes"),
    "tracing": (
        f"sends spans every {span(tracing._SEND_EVERY_SECONDS)}; at most {tracing._QUEUE} wait",
        f"cut after {tracing._LONGEST_VALUE} characters",
        f"at most once {span(tracing._LOG_EVERY_SECONDS).replace('one ', 'a ')} for each type of error",
        f"the default {CONFIG.tracing.sampling_rate_per_million} is 1 %",
        f"{'a fifth' if tracing._FLUSH_SHARE == 0.2 else '?'} of `gracefulShutdownTimeout`",
    ),
    "webhooks": (
        f"body of {size(review.TOO_LARGE)} or more",
        f"limit is {review.TOO_LARGE} bytes",
        f"checked every {span(tls._LOOK_EVERY_SECONDS)}",
        f"still missing {span(tls._PATIENCE_SECONDS)} after the start",
        f"header of a new connection | {argument(http_server, 'header_timeout'):g} s |",
        f"idle connection | {argument(server, 'idle_timeout'):g} s |",
        f"limit is {bounds.MAX_VALUES}`",
        f"reading a body and answering | {server._READ_AND_ANSWER_SECONDS:g} s,",
        f"(default {CONFIG.graceful_shutdown_timeout:g} s)",
    ),
    "webhooks-installing": (
        f"valid for {'a year' if rules.CA_LIFETIME.days == 365 else '?'}",
        f"certificate for {rules.SERVING_LIFETIME.days} days",
        f"{span(rules.SETTLED.total_seconds())} later the server's certificate",
    ),
    "webhooks-mutating": (
        f"up to {span(state._ARRIVAL_SECONDS)}. If Hvpas",
        f"between {projected_token_mount._SHORTEST_SECONDS} and {projected_token_mount._LONGEST_SECONDS} seconds",
    ),
    "webhooks-validating": (
        f"within {crd_deletion_protection._DEADLINE_SECONDS:g} seconds",
        f"cached for {span(crd_deletion_protection._BELIEVED_SECONDS)}",
        f"annotations ({size(metadata._MOST_ANNOTATION_BYTES)} in all)",
        f"names up to {spelled(difference._MOST_ENTRIES)} differences",
        f"after {difference._LONGEST_VALUE} characters, and at most {extension_rules._MOST_ERRORS} errors",
    ),
}

OF_OTHERS = {
    "configuration": ("such as `300ms`, `15s` or", "`0`, `0s` and"),
    "kubelet-certificates": ("it has a second common name",),
    "migration": (
        *("leads within a second", "expires after up to 20 seconds"),
        *("a second, invalid mount", "(1000 s)", "after up to 4.4 s"),
    ),
    "nodes": ("the defaults (`0s` and `5m`) these are `0s`, `1m40s`",),
    "operations": (
        *("while 3,000 ManagedResources were deleted", "drift was restored after 0.21 s"),
        "a second SIGTERM",
    ),
    "managed-resources": (
        "limits a Secret to 1 MiB",
        "etcd: 1.5 MiB, about 9,500 objects",
        "10,000 steps of all loops",
    ),
    "security": ("a second implementation",),
    "tracing": ("10 MiB more", "10 to 20 MiB more", "about 1.5 ms", "0.2 ms more", "0.6 ms more"),
    "webhooks-installing": ("for a Job once a day", "has a second entry"),
    "webhooks-validating": ("costs one list a second",),
}
"""Limits of Kubernetes and the original, examples, and what was measured."""

MEASURED = {"performance", "scaling"}
"""Documents of measurements; sections of them say so in their headings."""


@pytest.mark.parametrize(("document", "fact"), [(name, fact) for name, facts in FACTS.items() for fact in facts])
def test_a_fact_is_what_the_code_says(document: str, fact: str) -> None:
    assert fact in flat((DOCS / f"{document}.md").read_text())


def numbers(text: str) -> Iterator[re.Match[str]]:
    sizes = r"\d[\d,.]* ?(?:[KMG]iB|bytes)\b|\b\d{1,3}(?:,\d{3})+\b"
    spelled_out = "|".join(["half a", "an?", *_SPELLED[1:]])
    periods = rf"(?<![\w.`-])(?:\d[\d.]*|{spelled_out}) (?:seconds?|minutes?|hours?|days?|ms|s)\b|`\d+(?:ms|s|m|h)`"
    return re.finditer(f"{sizes}|{periods}", text)


@pytest.mark.parametrize("document", sorted(FACTS.keys() - MEASURED))
def test_every_limit_is_a_fact(document: str) -> None:
    whole = (DOCS / f"{document}.md").read_text()
    text = flat(
        re.sub(
            r"<!-- reference: begin.*reference: end -->|^```.*?^```$|^## [^\n]*, measured\n.*?(?=^## |\Z)",
            "",
            whole,
            flags=re.MULTILINE | re.DOTALL,
        )
    )
    facts = (*FACTS[document], *OF_OTHERS.get(document, ()))
    assert [fact for fact in OF_OTHERS.get(document, ()) if fact not in text] == []
    known = [(match.start(), len(fact)) for fact in facts for match in re.finditer(re.escape(fact), text)]
    unknown = [
        text[max(0, number.start() - 40) : number.end() + 20]
        for number in numbers(text)
        if not any(start <= number.start() < start + length for start, length in known)
    ]
    assert unknown == []


THRESHOLDS = {
    "ResourceManagerRestartsOften": ("[30m]) > 2", "more than twice within half an hour"),
    "ResourceManagerMemoryNearLimit": ("> 0.85", "more than 85 %"),
    "ManagedResourcesMostlyNotApplied": ("> 0.5", "More than half of all"),
    "ManagedResourceOutdated": ("> 3 * 3600", "for three hours"),
    "ManagedResourceDriftStorm": (">= 10", "ten times or more"),
    "ManagedResourceIgnored": ("> 7 * 86400", "more than a week"),
    "ResourceManagerReconcileErrors": ("> 0.2", "More than a fifth"),
    "ResourceManagerQueueGrows": ("> 100", "More than 100 keys"),
    "ResourceManagerQueueSlow": ("> 10", "One of ten keys waits for more than 10 seconds"),
    "ResourceManagerWorkerStuck": ("> 600", "more than 10 minutes"),
    "ResourceManagerCertificateRequestsDenied": ("[30m]", "within half an hour"),
    "ResourceManagerThrottled": ("> 0.1", "more than one request in ten seconds"),
    "ResourceManagerOwnRateLimit": ("> 1", "One of ten requests waits for more than a second"),
    "ResourceManagerRequestErrors": ("> 0.05", "More than 5 %"),
    "ResourceManagerWebhookErrors": ("> 0.01", "More than 1 %"),
    "ResourceManagerWebhookRefusals": ("[15m]) ) > 20", "more than 20 requests in 15 minutes"),
    "ResourceManagerWebhookSlow": ("> 1", "One of a hundred requests takes more than a second"),
    "ResourceManagerCertificateNotRenewed": ("< 4 * 86400", "within four days"),
    "ResourceManagerCertificateExpiring": ("< 86400", "within a day"),
}
"""By alert: what its expression contains, and how the document says it."""


@pytest.mark.parametrize("alert", THRESHOLDS)
def test_the_threshold_of_an_alert_is_that_of_its_rule(alert: str) -> None:
    (rule,) = (rule for group in RULES for rule in group["rules"] if rule["alert"] == alert)
    expression, text = THRESHOLDS[alert]
    assert expression in flat(rule["expr"])
    section = (DOCS / "monitoring.md").read_text().partition(f"#### {alert}\n")[2].partition("\n#")[0]
    assert text in flat(section)


@pytest.mark.parametrize("group", RULES, ids=lambda group: group["name"])
def test_the_severity_of_an_alert_is_that_of_its_rule(group: dict[str, list[dict[str, dict[str, str]]]]) -> None:
    text = (DOCS / "monitoring.md").read_text()
    for rule in group["rules"]:
        assert f"#### {rule['alert']}\n\n*{rule['labels']['severity'].capitalize()}.*" in text


@pytest.mark.parametrize(
    "rule",
    [rule for group in RULES for rule in group["rules"] if rule.get("for")],
    ids=lambda rule: rule["alert"],
)
def test_an_alert_fires_after_the_time_that_is_told(rule: dict[str, str]) -> None:
    section = (DOCS / "monitoring.md").read_text().partition(f"#### {rule['alert']}\n")[2].partition("\n#")[0]
    told = re.findall(r"\bfor (\d+ minutes|half an hour|an hour)\b", flat(section), re.IGNORECASE)
    times = {"half an hour": "30m", "an hour": "1h"}
    assert {times.get(time) or time.replace(" minutes", "m") for time in told} <= {rule["for"]}
