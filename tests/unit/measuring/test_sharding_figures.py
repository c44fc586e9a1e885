"""What `python -m benchmarks sharding` gives to each agent, and how it finds two that write the same object."""

import json

from benchmarks.sharding import setups, shared_writes
from config.resource_manager import decode
from config.validation import check
from devcluster.audit import Call


def call(user: str, verb: str, name: str, resource: str = "configmaps", user_agent: str = "grm") -> Call:
    about = {"resource": resource, "group": "", "namespace": "ns", "name": name}
    return Call(user_agent=user_agent, user=user, verb=verb, **about, status=200, uri="", event={})


def test_an_object_that_two_agents_write_is_found_for_both() -> None:
    calls = [
        call("shard-0", "create", "a"),
        call("shard-0", "patch", "a", "configmaps/status"),
        call("shard-1", "patch", "a"),
        call("shard-1", "create", "b"),
    ]
    assert [shared_writes(calls, f"shard-{number}") for number in range(3)] == [1, 1, 0]


def test_reads_events_and_others_do_not_count() -> None:
    calls = [
        call("shard-0", "create", "a"),
        call("shard-1", "get", "a"),
        call("shard-0", "create", "e", "events"),
        call("shard-1", "patch", "e", "events"),
        call("shard-1", "create", "a", user_agent="benchmark"),
        call("somebody", "patch", "a"),
    ]
    assert shared_writes(calls, "shard-0") == 0


def test_shards_differ_in_lease_and_share() -> None:
    single, by_namespace, by_class = setups(["shard-0", "shard-1"])
    assert list(single.agents) == ["single"]
    assert by_class.classes == ["shard-0", "shard-1"]
    for setup in (by_namespace, by_class):
        assert len({told["leaderElection"]["resourceName"] for told in setup.agents.values()}) == 2
    for connection in ("sourceClientConnection", "targetClientConnection"):
        covered = [told[connection]["namespaces"] for told in by_namespace.agents.values()]
        assert covered == [["shard-0"], ["shard-1"]]
    controllers = [told["controllers"] for told in by_class.agents.values()]
    assert [each["resourceClass"] for each in controllers] == ["shard-0", "shard-1"]
    assert len({each["managedResource"]["managedByLabelValue"] for each in controllers}) == 2


def test_what_a_shard_is_told_is_a_valid_configuration() -> None:
    for setup in setups(["shard-0", "shard-1"])[1:]:
        for told in setup.agents.values():
            decoded = decode(json.dumps(told))
            check(decoded.config, conflicts=decoded.conflicts)
            assert decoded.warnings == ()
