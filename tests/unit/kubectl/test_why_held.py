"""What holds the deletion of a Shoot in its seed."""

from datetime import UTC, datetime
from typing import Any

from gardener.api.extensions import DNS_RECORDS
from gardener.api.kinds import MANAGED_RESOURCES
from kube.objects import Object
from kube.resources import NAMESPACES, Resource
from kubectl.garden.why.held import findings

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def going(resource: Resource, name: str, at: str, *finalizers: str, **fields: Any) -> tuple[Resource, Object]:
    meta = {"name": name, "deletionTimestamp": f"2026-01-01T{at}:00Z", "finalizers": [*finalizers]}
    return resource, {"metadata": {**meta, **({"namespace": "shoot--a--b"} if resource.namespaced else {})}, **fields}


def test_each_object_is_named_with_its_finalizers_and_since_when() -> None:
    record = going(DNS_RECORDS, "b-internal", "11:30", "extensions.gardener.cloud/dns")
    managed = going(MANAGED_RESOURCES, "shoot-core", "11:00", "resources.gardener.cloud/x", "example.com/held")
    first, second = findings([record, managed], NOW)
    assert first.text == (
        "in the seed, ManagedResource shoot--a--b/shoot-core, deleted at 2026-01-01T11:00:00Z (60m ago),"
        " waits for resources.gardener.cloud/x, example.com/held"
    )
    assert first.remedy.endswith("kubectl mr describe shoot-core -n shoot--a--b")
    assert "DNSRecord shoot--a--b/b-internal" in second.text
    assert "waits for extensions.gardener.cloud/dns" in second.text


def test_a_namespace_states_what_is_left_in_it() -> None:
    reported = "Some content in the namespace has finalizers remaining: example.com/held in 1 resource instances"
    remaining = {"type": "NamespaceFinalizersRemaining", "status": "True", "message": reported}
    (found,) = findings([going(NAMESPACES, "shoot--a--b", "11:59", status={"conditions": [remaining]})], NOW)
    assert reported in found.text


def test_the_longest_lists_are_cut() -> None:
    found = list(findings([going(DNS_RECORDS, f"r-{n}", "11:00", "f") for n in range(25)], NOW))
    assert len(found) == 21
    assert found[-1].text == "... and 5 more objects in the seed"
