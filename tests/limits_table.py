"""`python -m tests.limits_table`: writes docs/limits.md from the constants that limit what others may send or cause."""

from collections.abc import Sequence
from pathlib import Path

from agent.resource_manager.health import evaluation
from agent.resource_manager.istio_cluster_configuration import rules as istio
from agent.resource_manager.managed_resource import elsewhere, ownership, plans
from agent.shared.network_policy.rules import limits as policies
from gardener.health.checks import expressions
from gardener.managed_resource import decode
from gardener.managed_resource.plan import LIMITS
from gardener.tenant_files import kubeconfigs, reading
from kube import yaml
from process import listener
from process import server as http
from webhooks import bounds, fair_queue, offload, review, server
from webhooks.garden import access
from webhooks.rules import patch

FILE = Path(__file__).parents[1] / "docs/limits.md"

Row = tuple[str, str, str]
"""What is limited, the limit, and what happens beyond it."""


def document() -> str:
    tables = {
        "Webhook server": WEBHOOKS,
        "ManagedResources": MANAGED_RESOURCES,
        "Network policies": NETWORK_POLICIES,
        "Files of tenants": TENANT_FILES,
    }
    head = "# Limits\n\nWritten by `python -m tests.limits_table`.\n"
    return head + "".join(f"\n## {title}\n\n{_table(rows)}" for title, rows in tables.items())


def _table(rows: Sequence[Row]) -> str:
    head = ("Limit", "Value", "Beyond it"), ("---", "---", "---")
    return "".join(f"| {' | '.join(row)} |\n" for row in (*head, *rows)).replace("|  |", "| |")


def _size(count: int) -> str:
    """Bytes in the largest unit that gives a whole number."""
    units = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("bytes", 1))
    return next(f"{count // factor} {unit}" for unit, factor in units if count % factor == 0)


TENANT_FILES: Sequence[Row] = (
    ("size of a file for an API server", _size(reading.LARGEST), "refused"),
    ("values and keys of a file, counting what anchors expand to", f"{reading.MOST_VALUES:,}", "refused"),
    ("nesting", f"{yaml.MAX_DEPTH} levels", "refused"),
    ("clusters, users and contexts of a kubeconfig", f"{kubeconfigs.MOST_ENTRIES} of each", "refused"),
)
WEBHOOKS: Sequence[Row] = (
    ("size of a body", _size(review.TOO_LARGE), "413"),
    ("values in a body: commas, starts of lists and objects", f"{bounds.MAX_VALUES:,}", "413, without parsing"),
    ("of one object", f"{bounds.MAX_VALUES_OF_OBJECT:,}", "413 on creation and growth, so that updates fit"),
    ("bounds of the schema", "", "refused before any rule"),
    ("processor time of a step of a review", f"{offload.LONGEST_SECONDS:g} s", "ended, 413"),
    ("operations of a patch", f"{patch.MAX_OPERATIONS:,}", "413"),
    ("unanswered bytes of all clients", _size(server.MAX_BUFFERED), "the one sending longest is cut off"),
    (
        "connections",
        f"{server.MAX_CONNECTIONS:,}, or an eighth of RLIMIT_NOFILE",
        "the one idle longest is closed",
    ),
    ("request header of a new connection", f"{http.HEADER_SECONDS:g} s", "closed"),
    ("idle connection", f"{server.IDLE_SECONDS:g} s", "closed"),
    ("time for a body, its review and reading the answer", f"{server.READ_AND_ANSWER_SECONDS:g} s", "cut off"),
    (
        "TLS handshakes in progress",
        f"{listener.HANDSHAKES}, each {listener.HANDSHAKE_SECONDS:g} s",
        "the oldest is cut off",
    ),
    (
        f"reviews above {_size(fair_queue.LARGE)} that wait for an API server",
        f"{_size(fair_queue.WAITING_AT_ONCE)}, or one review",
        "they start again when there is room",
    ),
    ("such reviews of one user", f"{fair_queue.MOST_OF_A_USER}", "429"),
    ("rights that a request needs", f"{access.MOST_RIGHTS}", "413"),
    ("objects that a request names and that are not cached", f"{access.MOST_MISSED}", "more count as missing"),
    (
        "reviews of rights of one user, and reads of such objects",
        f"{access.MOST_AT_ONCE} at a time, {access.MOST_WAITING} with those that wait",
        "429",
    ),
    ("characters of a message", f"{review.MESSAGE_LENGTH:,}", "cut"),
)

MANAGED_RESOURCES: Sequence[Row] = (
    ("all Secrets, decompressed", _size(LIMITS.total_bytes), "decoding error"),
    ("their documents", f"{LIMITS.documents:,}", "decoding error"),
    ("their values", f"{LIMITS.values:,}", "decoding error"),
    ("values that anchors and merge keys add", f"{yaml.MOST_EXPANDED:,}", "decoding error"),
    ("one document", _size(decode.LARGEST_DOCUMENT), "decoding error"),
    ("values of a document in YAML", f"{yaml.MAX_NODES:,}", "decoding error"),
    ("levels of nesting in YAML", f"{yaml.MAX_DEPTH}", "decoding error"),
    ("one object as JSON", _size(decode.LARGEST_OBJECT), "not sent, `ApplyFailed`"),
    ("a ManagedResource in turn with others", _size(plans.LARGE), "processed after others that wait"),
    ("such ones at once", f"{plans.LARGE_AT_ONCE}", "the others are tried again after 0.2 to 5 s"),
    (
        "a ManagedResource of another agent, before a removal",
        f"{_size(plans.ELSEWHERE_LIMITS.total_bytes)}, {plans.ELSEWHERE_LIMITS.values:,} values",
        "the rest is not waited for, logged",
    ),
    ("what all of these are about to claim", f"{elsewhere.MOST_CLAIMS:,} objects", "not waited for, logged"),
    (
        "removal that waits for what changed in other namespaces",
        f"{ownership.OTHERS_SECONDS:g} s",
        "the object is deleted",
    ),
    ("the same in its own namespace", f"{ownership.OWN_SECONDS:g} s", "the object is deleted"),
    ("the same for namespaces that are not watched", f"{ownership.UNWATCHED_SECONDS:g} s", "the object is deleted"),
    ("characters of a health expression", f"{expressions.LONGEST_EXPRESSION:,}", "the agent does not start"),
    ("object for a health expression", _size(expressions.LARGEST_OBJECT), "not evaluated, `HealthCheckError`"),
    (
        "evaluation of an object",
        f"{expressions.LONGEST_SECONDS:g} s of processor time, {_size(evaluation.MEMORY)}",
        f"not evaluated for {evaluation.BLAMED_SECONDS:g} s",
    ),
    ("such objects of a namespace", f"{evaluation.MOST_OBJECTS}", "the namespace is not evaluated"),
    ("such namespaces of a kind", f"{evaluation.MOST_NAMESPACES}", "the kind is not evaluated"),
)

NETWORK_POLICIES: Sequence[Row] = (
    ("ports of a Service, with those of annotations", f"{policies.MOST_PORTS}", ""),
    ("its ports for the world", f"{policies.MOST_PORTS}", ""),
    ("its namespace selectors", f"{policies.MOST_SELECTORS}", ""),
    ("their labels and expressions", f"{policies.MOST_REQUIREMENTS}", ""),
    ("their values", f"{policies.MOST_VALUES:,}", ""),
    ("its Gateways", f"{policies.MOST_GATEWAYS}", ""),
    ("its policies", f"{policies.MOST_POLICIES:,}", "namespaces that have some come first"),
    ("policies written while other Services wait", f"{policies.WRITES_BEFORE_OTHERS}", "its turn comes again"),
    ("selectors of Gateways in a namespace", f"{policies.MOST_WATCHES}", "left out, unless others use them"),
    ("ports of Services of DestinationRules of a namespace", f"{istio.MOST_PATCHES:,}", ""),
)

if __name__ == "__main__":
    FILE.write_text(document())
