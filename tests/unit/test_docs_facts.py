"""Limits, defaults and periods in the documents are those of the code.

A fact is the text of a document as the code's constants make it. Every size and every number of four digits or more in a
document has to be part of a fact, or of a document or section of measurements.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml as yaml_documents

from agent.resource_manager import changes
from agent.resource_manager.garbage_collector import reconcile as garbage_collector
from agent.resource_manager.health import reconcile as health
from agent.resource_manager.managed_resource import plans, reconcile, removal, unwatched
from agent.resource_manager.node.agent_reconciliation_delay import reconcile as delays
from agent.resource_manager.status_page import listing
from agent.resource_manager.token_invalidator import reconcile as token_invalidator
from agent.shared.network_policy import policies
from agent.shared.token_requestor import memory, targets, token_spec
from agent.shared.token_requestor import reconcile as token_reconcile
from config import blocks, document
from config.resource_manager.schema import ResourceManagerConfiguration
from gardener.managed_resource import decode, messages
from gardener.managed_resource.plan import LIMITS
from kube import connection, discovery, queue, yaml
from kube.watch import Timings
from process import listener, tracing
from process.logging import Sampling
from webhooks import bounds, patch, review, server, state, tls
from webhooks.certificates import rules
from webhooks.handlers import crd_deletion_protection
from webhooks.handlers.extension_validation import difference, metadata
from webhooks.handlers.extension_validation import rules as extension_rules

CONFIG = ResourceManagerConfiguration()
PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
COMPONENTS = PROJECT / "manifests" / "components"
HPA = yaml_documents.safe_load((COMPONENTS / "horizontal-pod-autoscaler/horizontal-pod-autoscaler.yaml").read_text())[
    "spec"
]
RULES = yaml_documents.safe_load((COMPONENTS / "alerts/prometheus-rule.yaml").read_text())["spec"]["groups"]


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


FACTS: dict[str, tuple[str, ...]] = {
    "configuration": (
        f"larger than {size(document._LARGEST_FILE)} |",
        f"greater than {blocks.JITTER_FACTOR:g} times `retryPeriod`",
    ),
    "garbage-collection": (
        f"in portions of {garbage_collector._PORTION}, {garbage_collector._AT_ONCE} at once",
        f"up to {garbage_collector._TOLD} for each kind and namespace",
    ),
    "kubelet-certificates": (),
    "migration": (),
    "network-policies": (
        f"longer than {policies._LONGEST_LABEL} characters",
        f"its first {policies._KEPT_OF_LABEL}, a dash, and {spelled(policies._HASH_DIGITS)} digits",
    ),
    "install": (
        f"({spelled(HPA['minReplicas'])} to {spelled(HPA['maxReplicas'])} replicas at half a core each)",
        f"`leaderElection.retryPeriod` ({CONFIG.leader_election.retry_period:g} s)",
    ),
    "nodes": (
        f"computed {span(delays.QUIET_SECONDS)} after the last change".replace("1 second", "one second"),
        f"or every {span(delays.LONGEST_WAIT_SECONDS)} while",
    ),
    "operations": (
        f"reopened every {Timings().server_timeout / 60:g} to {2 * Timings().server_timeout / 60:g} minutes",
        f"read again once {span(connection._TOKEN_FILE_SECONDS).replace('one ', 'a ')}",
        f"within about {span(connection._FILES_SECONDS)}",
        f"{Sampling.FIRST} a second are written, then every {Sampling.THEREAFTER}th",
        f"names up to {health._LOGGED} (`findings`)",
        f"lasts for {health._LASTING.seconds} s,",
        f"for {health._LASTING.seconds} s. |",
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
        f"at least `{token_spec.LEAST_SECONDS // 60}m`, default `{token_spec.DEFAULT_SECONDS // 3600}h`",
        f"up to a minute. {'' if memory.LONGEST_PAUSE == 60 else '?'}",
        f"up to {spelled(targets.MOST_BY_NAME)} of them by name",
        f"about once {span(memory.REVIEW_SECONDS).replace('one ', 'an ')}",
        f"every {span(token_reconcile.INVALID_SECONDS)}. |",
        f"every {token_invalidator.IN_USE_SECONDS:g} seconds",
    ),
    "managed-resources": (
        f"decompressed | {size(LIMITS.total_bytes)}, {LIMITS.documents:,} documents, {LIMITS.values:,} values |",
        f"one document | {size(decode.LARGEST_DOCUMENT)}; YAML also {yaml.MAX_NODES:,} values",
        f"and {yaml.MAX_DEPTH} levels of nesting",
        f"one object as JSON | {size(decode.LARGEST_OBJECT)} |",
        f"ManagedResources of {size(plans._LARGE)} and more are processed after",
        f"cut after {messages.MAX_LENGTH:,} characters",
        f"kind by kind, up to {spelled(reconcile._AT_ONCE)} objects",
        f"the old agent waits {span(removal.HAND_OVER_SECONDS)}",
        f"waits up to {span(removal._CLAIM_SECONDS)}",
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
        f"size of a body | {size(review.TOO_LARGE)} |",
        f"lists and objects | {bounds.MAX_VALUES:,} |",
        f"operations of a patch | {patch.MAX_OPERATIONS:,} |",
        f"all clients | {size(server.MAX_BUFFERED)} |",
        f"connections | {server.MAX_CONNECTIONS:,} |",
        f"reading the answer | {server._READ_AND_ANSWER_SECONDS:g} s |",
        f"reviews above {size(bounds.LARGE)} that wait for an API server | {size(bounds._WAITING_AT_ONCE)}, or one",
        f"handshakes in progress | {listener._HANDSHAKES}, each {listener._HANDSHAKE_SECONDS:g} s |",
        f"characters of a message | {review._MESSAGE_LENGTH:,} |",
        f"kept for {span(discovery._FIRST_REFRESH_SECONDS)} at first and {span(discovery._LONGEST_REFRESH_SECONDS)} at most",
    ),
    "status-page": (
        f"each has {listing.PAGE}",
        f"The last {changes.KEPT:,} changes",
    ),
    "tracing": (
        f"sends spans every {span(tracing._SEND_EVERY_SECONDS)}; at most {tracing._QUEUE} wait",
        f"cut after {tracing._LONGEST_VALUE} characters",
        f"the default {CONFIG.tracing.sampling_rate_per_million} is 1 %",
        f"{'a fifth' if tracing._FLUSH_SHARE == 0.2 else '?'} of `gracefulShutdownTimeout`",
    ),
    "webhooks": (
        f"body of {size(review.TOO_LARGE)} or more",
        f"limit is {review.TOO_LARGE} bytes",
        f"checked every {span(tls._LOOK_EVERY_SECONDS)}",
        f"limit is {bounds.MAX_VALUES}`",
        f"reading a body and answering | {server._READ_AND_ANSWER_SECONDS:g} s,",
        f"(default {CONFIG.graceful_shutdown_timeout:g} s)",
    ),
    "webhooks-installing": (
        f"valid for {'a year' if rules.CA_LIFETIME.days == 365 else '?'}",
        f"certificate for {rules.SERVING_LIFETIME.days} days",
        f"{span(rules.SETTLED.total_seconds())} later the server's certificate",
    ),
    "webhooks-mutating": (f"up to {span(state._ARRIVAL_SECONDS)}. If Hvpas",),
    "webhooks-validating": (
        f"within {crd_deletion_protection._DEADLINE_SECONDS:g} seconds",
        f"annotations ({size(metadata._MOST_ANNOTATION_BYTES)} in all)",
        f"names up to {spelled(difference._MOST_ENTRIES)} differences",
        f"after {difference._LONGEST_VALUE} characters, and at most {extension_rules._MOST_ERRORS} errors",
    ),
}

OF_OTHERS = {
    "operations": ("while 3,000 ManagedResources were deleted",),
    "managed-resources": ("limits a Secret to 1 MiB", "etcd | 1.5 MiB, about 9,500 objects", "takes about 150 bytes"),
    "tracing": ("10 MiB more", "10 to 20 MiB more"),
}
"""Limits of Kubernetes, and what was measured."""

MEASURED = {"performance", "scaling"}
"""Documents of measurements; sections of them say so in their headings."""


@pytest.mark.parametrize(("document", "fact"), [(name, fact) for name, facts in FACTS.items() for fact in facts])
def test_a_fact_is_what_the_code_says(document: str, fact: str) -> None:
    assert fact in flat((DOCS / f"{document}.md").read_text())


def numbers(text: str) -> Iterator[re.Match[str]]:
    return re.finditer(r"\d[\d,.]* ?(?:[KMG]iB|bytes)\b|\b\d{1,3}(?:,\d{3})+\b", text)


@pytest.mark.parametrize("document", sorted(FACTS.keys() - MEASURED))
def test_every_limit_is_a_fact(document: str) -> None:
    whole = (DOCS / f"{document}.md").read_text()
    text = flat(re.sub(r"^## [^\n]*, measured\n.*?(?=^## |\Z)", "", whole, flags=re.MULTILINE | re.DOTALL))
    facts = (*FACTS[document], *OF_OTHERS.get(document, ()))
    known = [(text.find(fact), len(fact)) for fact in facts if fact in text]
    unknown = [
        text[max(0, number.start() - 40) : number.end() + 20]
        for number in numbers(text)
        if not any(start <= number.start() < start + length for start, length in known)
    ]
    assert unknown == []


@pytest.mark.parametrize(
    "rule", [rule for group in RULES for rule in group["rules"] if rule.get("for")], ids=lambda rule: rule["alert"]
)
def test_an_alert_fires_after_the_time_that_is_told(rule: dict[str, str]) -> None:
    section = (DOCS / "monitoring.md").read_text().partition(f"#### {rule['alert']}\n")[2].partition("\n#")[0]
    told = re.findall(r"\bfor (\d+ minutes|half an hour|an hour)\b", flat(section), re.IGNORECASE)
    times = {"half an hour": "30m", "an hour": "1h"}
    assert {times.get(time) or time.replace(" minutes", "m") for time in told} <= {rule["for"]}
