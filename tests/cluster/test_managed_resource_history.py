"""Applied versions are kept as Secrets, and `kubectl mr rollback` has one applied again."""

import asyncio
import base64
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson
import pytest
from click.testing import CliRunner, Result

from devcluster.audit import Audit
from devcluster.cluster import Cluster
from devcluster.testing.faults import Rule, internal_error
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.managed_resource.history import Listed, Revision, packed, revision_secret
from kit.objects import config_map, decoded, obj, secret
from kit.proxied import proxy_to
from kit.rig import Agent, Rig
from kit.world import writes
from kube.objects import Object, annotations, is_truthy, key, labels, metadata, uid
from kubectl.mr.__main__ import app
from kubectl.mr.commands import rollback

GROUP = "resources.gardener.cloud"
LIMIT, HISTORY_OF = f"{GROUP}/history-limit", f"{GROUP}/history-of"
COLLECTABLE = f"{GROUP}/garbage-collectable-reference"
CAUSE = "kubernetes.io/change-cause"


def kept(rig: Rig, name: str = "mr") -> list[Object]:
    """The Secrets with the revisions, the oldest first."""
    found = [each for each in rig.list("Secret") if labels(each).get(HISTORY_OF) == name]
    return sorted(found, key=lambda each: int(annotations(each)[f"{GROUP}/revision"]))


def numbers(rig: Rig, name: str = "mr") -> list[int]:
    return [int(annotations(each)[f"{GROUP}/revision"]) for each in kept(rig, name)]


def until_kept(rig: Rig, *expected: int, name: str = "mr") -> list[Object]:
    rig.until(lambda: numbers(rig, name) == list(expected), f"{name} to have the revisions {expected}")
    return kept(rig, name)


def write(rig: Rig, text: str, *, limit: int | str = 3, annotated: dict[str, str] | None = None, **spec: Any) -> None:
    rig.write_managed_resource("mr", annotated={LIMIT: str(limit), **(annotated or {})}, **spec)
    rig.write_secret("mr", config_map("c", {"text": text}))
    rig.until_data("c", {"text": text})


def run(rig: Rig, arguments: list[str], stdin: str = "") -> Result:
    environment = {"KUBECONFIG": str(rig.cluster.kubeconfig), "NO_COLOR": "1", "COLUMNS": "300"}
    return CliRunner().invoke(app, arguments, prog_name="kubectl mr", input=stdin, env=environment)


def mr(rig: Rig, *arguments: str, code: int = 0) -> Result:
    result = run(rig, [*arguments, "-n", rig.namespace])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def test_each_applied_version_is_kept_once_and_the_oldest_go(rig: Rig, audit: Audit) -> None:
    mark = audit.mark()
    for count, text in enumerate(("one", "two", "three", "four"), start=1):
        write(rig, text, limit=2)
        until_kept(rig, *range(max(1, count - 1), count + 1))
    third, fourth = kept(rig)
    assert key(third).name == "mr-history-3"
    assert (fourth["type"], fourth["immutable"]) == (f"{GROUP}/managed-resource-revision", True)
    assert annotations(fourth)[f"{GROUP}/source-secrets"] == "mr"
    digest = annotations(fourth)[f"{GROUP}/revision-digest"]
    rig.until(
        lambda: rig.get("ManagedResource", "mr")["status"].get("secretsDataChecksum") == digest,
        "the status to report what was applied last",
    )
    (owner,) = metadata(fourth)["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("ManagedResource", rig.uid("ManagedResource", "mr"))
    assert not is_truthy(labels(fourth).get(COLLECTABLE))
    of_secrets = [each for each in writes(audit, user=rig.agent.user, since=mark) if each.namespace == rig.namespace]
    done = [(each.verb, each.name) for each in of_secrets if each.resource == "secrets"]
    assert sorted(done) == sorted(
        [
            *(("create", f"mr-history-{number}") for number in (1, 2, 3, 4)),
            ("delete", "mr-history-1"),
            ("delete", "mr-history-2"),
        ]
    )
    deleted = [json.loads(json.dumps(each.event)) for each in of_secrets if each.verb == "delete"]
    assert all(each["responseStatus"]["code"] == 200 for each in deleted)


def test_nothing_is_kept_unless_it_is_requested(rig: Rig) -> None:
    write(rig, "one", limit=0)
    rig.apply("unmarked", config_map("u"))
    rig.patch("ManagedResource", "mr", {"metadata": {"annotations": {LIMIT: "2"}}})
    until_kept(rig, 1)  # what was applied before is what is applied
    assert numbers(rig, "unmarked") == []
    write(rig, "two", limit=2)
    until_kept(rig, 1, 2)
    rig.patch("ManagedResource", "mr", {"metadata": {"annotations": {LIMIT: "1"}}})
    until_kept(rig, 2)


def test_what_failed_is_not_kept_and_what_is_right_again_is(rig: Rig) -> None:
    write(rig, "one")
    until_kept(rig, 1)
    rig.write_secret("mr", config_map("c", {"text": "two"}), config_map("Bad_Name"))
    rig.until_failed("mr", "is invalid")
    rig.write_data("mr", {"a.yaml": b"a: ["})
    rig.until_failed("mr", reason="DecodingFailed")
    assert numbers(rig) == [1]
    write(rig, "three")
    until_kept(rig, 1, 2)


def test_drift_and_other_changes_of_the_managed_resource_make_no_revision(rig: Rig) -> None:
    write(rig, "one")
    until_kept(rig, 1)
    rig.patch("ConfigMap", "c", {"data": {"text": "by hand"}})
    rig.until_data("c", {"text": "one"})
    write(rig, "one", injectLabels={"a": "b"})
    rig.until(lambda: labels(rig.get("ConfigMap", "c")).get("a") == "b", "the label")
    write(rig, "two", injectLabels={"a": "b"})
    until_kept(rig, 1, 2)


@pytest.fixture
def own(rig: Rig) -> Agent:
    """An agent that keeps versions of all of its class."""
    name = f"h-{rig.namespace[-10:]}"
    settings = {"syncPeriod": "15s", "managedByLabelValue": name, "historyLimit": 2}
    return Agent(rig.cluster, resource_class=name, managedResource=settings)


@pytest.fixture
def ended(rig: Rig, own: Agent) -> Iterator[None]:
    """The namespace can go."""
    yield
    with own.start():
        rig.delete_managed_resource("mr")


def test_a_restart_writes_nothing(rig: Rig, own: Agent, ended: None, audit: Audit) -> None:
    rig.write_secret("mr", config_map("c", {"text": "one"}))
    with own.start():
        rig.write_managed_resource("mr", resource_class=own.resource_class)
        until_kept(rig, 1)
    mark = audit.mark()
    with own.start():
        # What comes of a change shows that the regular look at everything is over.
        rig.write("other", config_map("o"), resource_class=own.resource_class)
        until_kept(rig, 1, name="other")
        rig.patch("ConfigMap", "c", {"data": {"text": "by hand"}})
        rig.until_data("c", {"text": "one"})
        rig.delete_managed_resource("other")
    done = writes(audit, user=own.user, since=mark, namespace=rig.namespace)
    assert {each.name for each in done if each.resource == "secrets"} == {"other-history-1"}
    assert numbers(rig) == [1]


def test_what_a_process_did_not_come_to_keep_is_kept_by_the_next_one(rig: Rig, own: Agent, ended: None) -> None:
    def quota(most: int) -> None:
        rig.put(obj("ResourceQuota", "quota", spec={"hard": {"count/secrets": str(most)}}))
        rig.until(
            lambda: rig.get("ResourceQuota", "quota").get("status", {}).get("hard") == {"count/secrets": str(most)},
            "the quota to be counted",
        )

    rig.write_secret("mr", config_map("c", {"text": "one"}))
    with own.start() as process:
        rig.write_managed_resource("mr", resource_class=own.resource_class)
        until_kept(rig, 1)
        quota(len(rig.list("Secret")))
        rig.write_secret("mr", config_map("c", {"text": "two"}))
        rig.until_data("c", {"text": "two"})
        reported = rig.until(lambda: [e for e in rig.events("mr") if e["reason"] == "HistoryFailed"], "an Event")
        assert "exceeded quota" in reported[0]["message"]
        assert rig.applied("mr")[:2] == ("True", "ApplySucceeded")
        process.signal(signal.SIGKILL)
        process.wait()
    assert numbers(rig) == [1]
    quota(100)
    with own.start():
        _, second = until_kept(rig, 1, 2)
        rig.write_secret("mr", config_map("c", {"text": "three"}))
        until_kept(rig, 2, 3)
    assert "two" in str(kept_content(rig, second))


def kept_content(rig: Rig, revision: Object) -> str:
    return mr(rig, "decode", key(revision).name).stdout


def test_what_is_too_large_is_reported_and_counted(rig: Rig) -> None:
    write(rig, "one")
    until_kept(rig, 1)
    parts = [f"part-{number}" for number in range(2)]
    for part in parts:
        noise = base64.b85encode(os.urandom(700_000))
        rig.write_data(part, {"objects.yaml": b"# %b\n%b" % (noise, orjson.dumps(rig.placed(config_map(part))))})
    rig.write_managed_resource(
        "mr", annotated={LIMIT: "3"}, secretRefs=[{"name": "mr"}, *({"name": part} for part in parts)]
    )
    rig.until(lambda: "not kept: too large" in mr(rig, "history", "mr").stdout, "a revision that reports so")
    last = kept(rig)[-1]
    assert "data" not in last
    reported = rig.until(lambda: [e for e in rig.events("mr") if e["reason"] == "VersionNotKept"], "an Event")
    assert "a Secret holds at most 1048576" in reported[0]["message"]
    assert rig.applied("mr")[:2] == ("True", "ApplySucceeded")
    number = annotations(last)[f"{GROUP}/revision"]
    assert "its content was not kept" in mr(rig, "rollback", "mr", "--to", number, code=1).stderr


def forged(rig: Rig, number: int, *, name: str = "") -> Object:
    """All but listed: as the agent would have kept it, with an object of another client's choice."""
    value = packed([("mr", {"objects.yaml": orjson.dumps(rig.placed(config_map("evil")))})])
    found = revision_secret(
        rig.get("ManagedResource", "mr"), number=number, digest=f"d{number}", names=["mr"], value=value
    )
    return {**found, "metadata": {**metadata(found), "name": name or key(found).name}}


def test_names_that_others_have_taken_are_passed_over(rig: Rig) -> None:
    rig.write_managed_resource("mr", annotated={LIMIT: "3"})
    theirs = [rig.create(secret("mr-history-1", {"k": "theirs"})), rig.create(forged(rig, 2))]
    write(rig, "one")
    rig.until(lambda: rig.find("Secret", "mr-history-3"), "a revision under the next free name")
    assert [rig.get("Secret", key(each).name) for each in theirs] == theirs
    rig.until_applied("mr")
    assert rig.events("mr") == []
    assert [each["revision"] for each in json.loads(mr(rig, "history", "mr", "-o", "json").stdout)] == [3]


def test_who_may_create_secrets_forges_no_revision(rig: Rig) -> None:
    write(rig, "one", limit=2)
    until_kept(rig, 1)
    rig.create(secret("intruder", labels={HISTORY_OF: "mr"}, annotations={f"{GROUP}/revision": "999999999"}))
    for number in (2, 800, 801):
        rig.create(forged(rig, number, name=f"forged-{number}"))
    write(rig, "two", limit=2)
    rig.until(lambda: rig.find("Secret", "mr-history-2"), "the second revision")
    write(rig, "three", limit=2)
    rig.until(lambda: rig.find("Secret", "mr-history-3"), "the third revision")
    rig.until_gone("Secret", "mr-history-1")
    assert rig.find("Secret", "mr-history-2")
    rig.until_applied("mr")
    assert [each["revision"] for each in json.loads(mr(rig, "history", "mr", "-o", "json").stdout)] == [2, 3]
    assert "there is no revision 801" in mr(rig, "rollback", "mr", "--to", "801", code=1).stderr
    mr(rig, "rollback", "mr")
    rig.until_data("c", {"text": "two"})
    assert rig.find("ConfigMap", "evil") is None


def test_a_revision_that_was_replaced_is_not_gone_back_to(rig: Rig) -> None:
    write(rig, "one")
    (first,) = until_kept(rig, 1)
    write(rig, "two")
    until_kept(rig, 1, 2)
    rig.delete("Secret", "mr-history-1")
    evil = {name: value for name, value in metadata(first).items() if name not in {"uid", "resourceVersion"}}
    rig.create({**forged(rig, 1), "metadata": evil})
    reported = mr(rig, "rollback", "mr", code=1).stderr
    assert "does not have the content of revision 1: its digest differs from status.revisions" in reported
    assert rig.get("ConfigMap", "c")["data"] == {"text": "two"}


def test_a_wrong_limit_is_reported(rig: Rig) -> None:
    write(rig, "one", limit="many")
    rig.until(lambda: "must be a number from 0 to 100" in rig.applied("mr")[2], "the condition to report it")
    assert rig.applied("mr")[:2] == ("True", "ApplySucceeded")
    assert "applied with warnings" in run(rig, ["check", "-n", rig.namespace]).stdout


def test_revisions_go_with_their_managed_resource_and_a_namesake_starts_again(rig: Rig) -> None:
    write(rig, "one")
    (first,) = until_kept(rig, 1)
    rig.delete_managed_resource("mr")
    rig.until(lambda: not kept(rig), "the garbage collector of Kubernetes")
    write(rig, "one")
    (again,) = until_kept(rig, 1)
    assert uid(first) != uid(again)


def test_the_agent_is_not_sent_what_is_kept(rig: Rig, own: Agent, ended: None, audit: Audit) -> None:
    mark = audit.mark()
    rig.write_secret("mr", config_map("c"))
    with own.start():
        rig.write_managed_resource("mr", resource_class=own.resource_class)
        until_kept(rig, 1)
    requested = audit.calls(since=mark, verbs=("list", "watch", "get"), watches=True)
    secrets = [unquote(each.uri) for each in requested if each.user == own.user and each.resource == "secrets"]
    of_all = [uri for uri in secrets if "labelSelector" not in uri and "/secrets/" not in uri]
    assert of_all
    assert all(f"fieldSelector=type!={GROUP}/managed-resource-revision" in uri for uri in of_all)
    assert not any("/secrets/mr-history" in uri for uri in secrets)


# --- kubectl mr


def test_a_rollback_is_applied_and_is_a_revision_of_its_own(rig: Rig) -> None:
    write(rig, "one")
    until_kept(rig, 1)
    write(rig, "two", annotated={CAUSE: "new text"})
    until_kept(rig, 1, 2)
    before = rig.get("Secret", "mr")
    preview = mr(rig, "rollback", "mr", "--dry-run", "server")
    assert f"► ConfigMap/{rig.namespace}/c would be changed" in preview.stdout
    assert "- two" in preview.stdout
    assert "+ one" in preview.stdout
    assert rig.get("Secret", "mr") == before
    assert "has the content of revision 1" in mr(rig, "rollback", "mr").stderr
    rig.until_data("c", {"text": "one"})
    until_kept(rig, 1, 2, 3)
    table = mr(rig, "history", "mr").stdout.splitlines()
    assert [" ".join(line.split()[-3:]) for line in table[2:]] == ["mr new text", "to revision 1"]
    assert table[3].startswith("3 (applied)")
    (*_, third) = json.loads(mr(rig, "history", "mr", "-o", "json").stdout)
    assert (third["revision"], third["applied"], third["cause"]) == (3, True, "rollback to revision 1")
    # Without a number it goes back to what was there before.
    mr(rig, "rollback", "mr")
    rig.until_data("c", {"text": "two"})
    assert "holds revision 2 already" in mr(rig, "rollback", "mr", "--to", "2").stderr
    assert "there is no revision 9" in mr(rig, "rollback", "mr", "--to", "9", code=1).stderr


def test_after_a_version_that_fails_the_last_one_that_was_applied_comes_back(rig: Rig) -> None:
    write(rig, "one")
    until_kept(rig, 1)
    rig.write_secret("mr", config_map("Bad_Name"))
    rig.until_failed("mr", "is invalid")
    mr(rig, "rollback", "mr")
    rig.until_data("c", {"text": "one"})
    rig.until_applied("mr")
    assert numbers(rig) == [1]


def test_several_secrets_are_written_as_if_at_once(rig: Rig) -> None:
    """The object moves between them: were one Secret applied without the other, it would be deleted."""
    several: dict[str, Any] = {"secretRefs": [{"name": "a"}, {"name": "b"}]}
    rig.write_secret("a", config_map("c", {"text": "one"}))
    rig.write_secret("b", config_map("d", {"text": "one"}))
    rig.write_managed_resource("mr", annotated={LIMIT: "3"}, **several)
    until_kept(rig, 1)
    made = rig.uid("ConfigMap", "c"), rig.uid("ConfigMap", "d")
    with rig.asleep():
        rig.write_secret("a", config_map("d", {"text": "two"}))
        rig.write_secret("b", config_map("c", {"text": "two"}))
    until_kept(rig, 1, 2)
    reported = mr(rig, "rollback", "mr").stderr
    assert f"Secret {rig.namespace}/a has the content of revision 1" in reported
    assert f"Secret {rig.namespace}/b has the content of revision 1" in reported
    until_kept(rig, 1, 2, 3)
    rig.until_data("c", {"text": "one"})
    rig.until_data("d", {"text": "one"})
    assert (rig.uid("ConfigMap", "c"), rig.uid("ConfigMap", "d")) == made
    assert f"{GROUP}/ignore" not in annotations(rig.get("ManagedResource", "mr"))


async def test_a_rollback_that_stops_half_way_applies_nothing_and_can_be_done_again(rig: Rig, tmp_path: Path) -> None:
    several: dict[str, Any] = {"secretRefs": [{"name": "a"}, {"name": "b"}]}
    rig.write_secret("a", config_map("c", {"text": "one"}))
    rig.write_secret("b", config_map("d", {"text": "one"}))
    rig.write_managed_resource("mr", annotated={LIMIT: "3"}, **several)
    until_kept(rig, 1)
    with rig.asleep():
        rig.write_secret("a", config_map("c", {"text": "two"}))
        rig.write_secret("b", config_map("d", {"text": "two"}))
    until_kept(rig, 1, 2)
    async with proxy_to(rig.cluster) as proxy:
        proxy.write_kubeconfig(tmp_path / "kubeconfig", token=rig.cluster.token)
        proxy.rules.add(Rule(fault=internal_error(), methods=("PUT",), path="/secrets/b$"))
        command = ["rollback", "mr", "-n", rig.namespace]
        environment = {"KUBECONFIG": str(tmp_path / "kubeconfig"), "NO_COLOR": "1"}
        stopped = await asyncio.to_thread(CliRunner().invoke, app, command, env=environment)
    assert stopped.exit_code == 1
    assert "not all Secrets could be written" in stopped.stderr
    assert f"it stays suspended: kubectl mr rollback mr -n {rig.namespace} --to 1 tries it again" in stopped.stderr
    assert "one" in decoded(rig.get("Secret", "a"))["objects.yaml"]
    assert rig.get("ConfigMap", "c")["data"] == {"text": "two"}
    assert annotations(rig.get("ManagedResource", "mr"))[f"{GROUP}/ignore-reason"] == "rollback to revision 1"
    await asyncio.to_thread(mr, rig, "rollback", "mr", "--to", "1")
    rig.until_data("c", {"text": "one"})
    rig.until_data("d", {"text": "one"})
    assert f"{GROUP}/ignore" not in annotations(rig.get("ManagedResource", "mr"))


def test_without_an_agent_several_secrets_are_not_written(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollback, "_SUSPENDED_SECONDS", 0.5)
    rig.write_managed_resource(
        "mr", resource_class="unused", annotated={LIMIT: "3"}, secretRefs=[{"name": "a"}, {"name": "b"}]
    )
    value = packed([("a", {"k": b"one"}), ("b", {"k": b"one"})])
    created = rig.get("ManagedResource", "mr")
    kept_secret = rig.create(revision_secret(created, number=1, digest="d", names=["a", "b"], value=value))
    listed = Listed.of(Revision.of(kept_secret), kept_secret).entry()
    path = MANAGED_RESOURCES.path(namespace=rig.namespace, name="mr")
    rig.cluster.api.patch(f"{path}/status", {"status": {"revisions": [listed]}})
    for name in ("a", "b"):
        rig.write_data(name, {"k": b"two"})
    refused = mr(rig, "rollback", "mr", code=1).stderr
    assert "nothing was written" in refused
    assert [decoded(rig.get("Secret", name)) for name in ("a", "b")] == [{"k": "two"}] * 2
    assert annotations(rig.get("ManagedResource", "mr")) == {LIMIT: "3"}


def test_a_suspended_one_stays_suspended(rig: Rig) -> None:
    write(rig, "one")
    until_kept(rig, 1)
    write(rig, "two")
    until_kept(rig, 1, 2)
    mr(rig, "suspend", "mr", "-r", "an incident")
    reported = mr(rig, "rollback", "mr", "--no-wait").stderr
    assert "it is suspended: nothing is applied until kubectl mr resume mr" in reported
    assert annotations(rig.get("ManagedResource", "mr"))[f"{GROUP}/ignore-reason"] == "an incident"
    mr(rig, "resume", "mr")
    rig.until_data("c", {"text": "one"})


def test_a_secret_that_is_gone_is_created_again(rig: Rig) -> None:
    write(rig, "one")
    until_kept(rig, 1)
    rig.delete("Secret", "mr")
    rig.until_failed("mr", reason="CannotReadSecret")
    mr(rig, "rollback", "mr")
    rig.until_applied("mr")
    rig.until_data("c", {"text": "one"})


def test_what_is_not_to_be_written_by_hand_stays_and_the_remedy_works(rig: Rig) -> None:
    write(rig, "one")
    until_kept(rig, 1)
    write(rig, "two")
    until_kept(rig, 1, 2)
    rig.patch("Secret", "mr", {"metadata": {"labels": {"argocd.argoproj.io/instance": "infra"}}})
    assert "is managed by the Application infra of Argo CD" in mr(rig, "rollback", "mr", code=1).stderr
    rig.patch("Secret", "mr", {"metadata": {"labels": {"argocd.argoproj.io/instance": None}}, "immutable": True})
    refused = mr(rig, "rollback", "mr", code=1).stderr
    assert f"Secret {rig.namespace}/mr is immutable" in refused
    assert "would be changed" in mr(rig, "rollback", "mr", "--dry-run", "server").stdout
    assert "two" in decoded(rig.get("Secret", "mr"))["objects.yaml"]
    (remedy,) = [line.partition("Secret: ")[2] for line in refused.splitlines() if "kubectl mr decode" in line]
    printed = ""
    for part in remedy.split(" | "):
        done = run(rig, part.split()[2:], printed)
        assert done.exit_code == 0, done.output
        printed = done.stdout
    rig.until_data("c", {"text": "one"})
    until_kept(rig, 1, 2, 3)
    # From then on it is of another Secret.
    assert "not of mr-" in mr(rig, "rollback", "mr", "--to", "2", code=1).stderr


def test_the_list_shows_nothing_of_what_is_in_secrets(rig: Rig, cluster: Cluster) -> None:
    write(rig, "hunter2")
    until_kept(rig, 1)
    write(rig, "hunter3")
    until_kept(rig, 1, 2)
    for form in ((), ("-o", "wide"), ("-o", "json"), ("-o", "yaml"), ("-o", "name")):
        assert "hunter" not in mr(rig, "history", "mr", *form).output
    rig.apply("other", config_map("o"))
    assert "no applied version" in mr(rig, "history", "other").stderr
    assert "no applied version" in mr(rig, "rollback", "other", code=1).stderr
