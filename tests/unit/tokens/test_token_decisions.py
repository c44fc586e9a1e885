"""Whether a present token is good enough, when it is to be renewed, where it is put, and what the account looks like."""

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest

from agent.shared.token_requestor.memory import LONGEST_PAUSE, Issued, Memories, Memory, Pace
from agent.shared.token_requestor.rules.renewal import (
    Due,
    authority_in,
    placed,
    removed,
    renew_after,
    renew_text,
    renew_time,
    token_in,
    usable_token,
    wanted_account,
)
from agent.shared.token_requestor.rules.token_spec import InvalidSecretError, TokenSpec, parse_token_spec
from agent.shared.token_requestor.token_secret import TokenSecret, label_selector, wants_token
from agent.shared.token_requestor.tokens import Token, read_answer
from agent.shared.token_requestor.watches import MOST_BY_NAME, view_of_target
from gardener import keys
from kit import objects
from kit.objects import obj
from kube.clock import parse_duration
from kube.objects import Key, Object
from kube.runtime.controller import ReconcileError

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
LATER = "2024-05-01T13:00:00Z"
CA = b"-----BEGIN CERTIFICATE-----"


def spec(**annotations: str) -> TokenSpec:
    return parse_token_spec({keys.SERVICE_ACCOUNT_NAME: "x", keys.SERVICE_ACCOUNT_NAMESPACE: "n", **annotations})


PLAIN = spec()
WITH_CA = spec(**{keys.INJECT_CA_BUNDLE: "true"})


def kubeconfig(token: str = "", *, user: str = "u", ca: bytes = b"", cluster: str = "k") -> bytes:
    inner: Object = {"server": "https://s"}
    if ca:
        inner["certificate-authority-data"] = base64.b64encode(ca).decode()
    return json.dumps(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"user": "u", "cluster": "k"}}],
            "clusters": [{"name": cluster, "cluster": inner}],
            "users": [{"name": user, "user": {"token": token}}],
        }
    ).encode()


# --- the present token


@pytest.mark.parametrize(
    ("data", "timestamp", "wanted"),
    [
        ({"token": b"t"}, LATER, b"t"),
        ({"token": b"t"}, "soon", b"t"),  # what the timestamp means is another question
        ({}, LATER, "there is no token"),
        ({"token": b""}, LATER, "there is no token"),
        ({"token": b"t"}, "", "the renewal time of the token is unknown"),
        ({"kubeconfig": kubeconfig("t")}, LATER, b"t"),
        ({"kubeconfig": kubeconfig(), "token": b"t"}, LATER, "there is no token"),
        (None, LATER, "the target Secret does not exist"),
    ],
)
def test_a_token_is_there_or_it_is_not(data: dict[str, bytes] | None, timestamp: str, wanted: bytes | str) -> None:
    found = usable_token(data, PLAIN, renew_timestamp=timestamp, authority=b"")
    assert found == (Due(wanted) if isinstance(wanted, str) else wanted)


@pytest.mark.parametrize(
    ("data", "authority", "is_due"),
    [
        ({"token": b"t", "bundle.crt": CA}, CA, False),
        ({"token": b"t", "bundle.crt": b"old"}, CA, True),
        ({"token": b"t"}, CA, True),
        ({"token": b"t"}, b"", False),  # not known: nothing can be reported
        ({"kubeconfig": kubeconfig("t", ca=CA)}, CA, False),
        ({"kubeconfig": kubeconfig("t", ca=b"old")}, CA, True),
        ({"kubeconfig": kubeconfig("t", ca=b"old")}, b"", False),
        ({"kubeconfig": kubeconfig("t", ca=b"old"), "bundle.crt": CA}, CA, True),
    ],
)
def test_a_token_is_due_when_the_ca_has_changed(data: dict[str, bytes], authority: bytes, is_due: bool) -> None:
    found = usable_token(data, WITH_CA, renew_timestamp=LATER, authority=authority)
    assert found == (Due("the CA of the target cluster has changed") if is_due else b"t")


@pytest.mark.parametrize("timestamp", [LATER, ""])
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"abc", "it must be a mapping"),
        (kubeconfig(user="w"), "did not find authInfo of current context named u"),
    ],
)
def test_a_kubeconfig_that_can_hold_no_token_is_an_error_before_anything_is_requested(
    timestamp: str, content: bytes, problem: str
) -> None:
    with pytest.raises(InvalidSecretError) as raised:
        usable_token({"kubeconfig": content}, PLAIN, renew_timestamp=timestamp, authority=b"")
    assert str(raised.value) == f"could not check whether token exists in secret data: {problem}"


def test_a_kubeconfig_that_can_hold_no_ca_is_an_error() -> None:
    problem = "could not check whether the caBundle is up to date: did not find cluster of current context named k"
    with pytest.raises(InvalidSecretError, match=f"^{problem}$"):
        usable_token({"kubeconfig": kubeconfig("t", cluster="z")}, WITH_CA, renew_timestamp=LATER, authority=CA)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2024-05-01T13:00:00Z", NOON + timedelta(hours=1)),
        ("2024-05-01T15:00:00+02:00", NOON + timedelta(hours=1)),
        ("2024-05-01T13:00:00.5Z", NOON + timedelta(hours=1, seconds=0.5)),
        ("soon", None),
        ("", None),
        ("2024-05-01", None),
        ("2024-05-01T13:00:00", None),
        ("2024-13-01T13:00:00Z", None),
    ],
)
def test_renew_timestamps_are_rfc_3339(text: str, wanted: datetime | None) -> None:
    assert renew_time(text) == wanted


# --- the next one


@pytest.mark.parametrize(
    ("lifetime", "least", "most"),
    [
        ("10m", "8m", "8m24s"),
        ("12h", "9h36m", "10h4m48s"),
        ("24h", "19h12m", "20h9m36s"),
        ("100h", "19h12m", "20h9m36s"),
        ("1h", "48m", "50m24s"),
        ("0s", "0s", "0s"),
        ("-1h", "0s", "0s"),
    ],
)
def test_tokens_are_renewed_after_80_to_84_percent_of_a_day_at_most(lifetime: str, least: str, most: str) -> None:
    left, first, last = (timedelta(seconds=parse_duration(text)) for text in (lifetime, least, most))
    assert (renew_after(left, jitter=0), renew_after(left, jitter=1)) == (first, last)
    assert first <= renew_after(left, jitter=0.3) <= last


def test_the_renew_timestamp_is_cut_to_seconds() -> None:
    assert renew_text(NOON, timedelta(minutes=8, seconds=0.9)) == "2024-05-01T12:08:00Z"


@pytest.mark.parametrize(
    ("created", "expires"),
    [("2024-05-01T09:00:00Z", "2024-05-01T10:00:00Z"), (None, LATER)],  # which is counted from our noon
)
def test_a_lifetime_is_counted_by_the_clock_of_the_api_server_if_it_reports_so(
    created: str | None, expires: str
) -> None:
    status = {"token": "t", "expirationTimestamp": expires}
    answer = {"metadata": {"creationTimestamp": created}, "status": status}
    assert read_answer(json.dumps(answer).encode(), today=NOON) == Token("t", timedelta(hours=1))


@pytest.mark.parametrize(
    "answer",
    [
        *(b"", b"[]", b"{}", b'{"status": null}'),
        b'{"status": {"token": "hush"}}',
        b'{"status": {"token": "hush", "expirationTimestamp": "soon"}}',
        b'{"status": {"token": "hush", "expirationTimestamp": 5}}',
        b'{"status": {"token": "", "expirationTimestamp": "2024-05-01T10:00:00Z"}}',
        b'{"status": {"token": ["hush"], "expirationTimestamp": "2024-05-01T10:00:00Z"}}',
    ],
)
def test_what_is_no_answer_is_reported_without_what_is_in_it(answer: bytes) -> None:
    with pytest.raises(ReconcileError, match="^the response ") as raised:
        read_answer(answer, today=NOON)
    assert "hush" not in str(raised.value)


# --- contents


@pytest.mark.parametrize(
    ("data", "authority", "wanted"),
    [
        ({}, b"", {"token": b"NEW"}),
        ({"token": b"old", "other": b"x"}, b"", {"token": b"NEW"}),
        ({"token": b"NEW"}, b"", {}),
        ({"bundle.crt": b"old"}, b"", {"token": b"NEW", "bundle.crt": None}),
        ({"bundle.crt": b"old"}, None, {"token": b"NEW"}),
        ({"bundle.crt": b"old"}, CA, {"token": b"NEW", "bundle.crt": CA}),
        ({"bundle.crt": CA}, CA, {"token": b"NEW"}),
    ],
)
def test_a_bare_token_is_put_beside_what_is_there(
    data: dict[str, bytes], authority: bytes | None, wanted: dict[str, bytes | None]
) -> None:
    assert placed(data, token="NEW", authority=authority) == wanted


@pytest.mark.parametrize(("authority", "wanted"), [(b"", b"old"), (None, b"old"), (CA, CA)])
def test_a_token_is_put_into_a_kubeconfig(authority: bytes | None, wanted: bytes) -> None:
    data = {"kubeconfig": kubeconfig("old", ca=b"old"), "token": b"stays", "bundle.crt": b"stays"}
    changes = placed(data, token="NEW", authority=authority)
    assert changes.keys() == {"kubeconfig"}
    content = changes["kubeconfig"]
    assert content is not None
    assert token_in({"kubeconfig": content}) == b"NEW"
    assert authority_in({"kubeconfig": content}) == wanted
    assert placed({"kubeconfig": content}, token="NEW", authority=authority) == {}


def test_the_source_of_a_target_secret_keeps_nothing_of_it() -> None:
    data = {"token": b"t", "kubeconfig": b"k", "x": b"y"}
    assert removed(data) == {"token": None, "kubeconfig": None}
    assert removed({"x": b"y"}) == {}


# --- accounts


def test_a_missing_account_is_made() -> None:
    wanted = wanted_account(None, spec(**{keys.SERVICE_ACCOUNT_LABELS: '{"team":"a"}'}), merge_labels=False)
    assert wanted == obj("v1 ServiceAccount", "n/x", labels={"team": "a"}, automountServiceAccountToken=False)


@pytest.mark.parametrize(
    ("having", "automount", "merge", "wanted"),
    [
        ({"team": "a"}, False, False, None),
        ({"team": "a"}, True, False, {"team": "a"}),
        ({"team": "a"}, None, False, {"team": "a"}),
        ({"team": "b"}, False, False, {"team": "a"}),
        ({"team": "a", "old": "1"}, False, False, {"team": "a"}),
        ({"team": "a", "old": "1"}, False, True, None),
        ({"team": "b", "old": "1"}, False, True, {"team": "a", "old": "1"}),
    ],
)
def test_labels_of_an_account_are_replaced_or_merged(
    having: dict[str, str], automount: bool | None, merge: bool, wanted: dict[str, str] | None
) -> None:
    kept = {"annotations": {"keep": "1"}, "secrets": [{"name": "s"}], "imagePullSecrets": [{"name": "p"}]}
    live = obj("v1 ServiceAccount", "n/x", labels=having, **kept)
    if automount is not None:
        live["automountServiceAccountToken"] = automount
    found = wanted_account(live, spec(**{keys.SERVICE_ACCOUNT_LABELS: '{"team":"a"}'}), merge_labels=merge)
    if wanted is None:
        assert found is None
        return
    meta = {**live["metadata"], "labels": wanted}
    assert found == {**live, "metadata": meta, "automountServiceAccountToken": False}


# --- which Secrets


def secret(**changes: object) -> TokenSecret:
    meta: Object = {
        "uid": "1",
        "resourceVersion": "5",
        "labels": {keys.PURPOSE: "token-requestor", keys.CLASS: "shoot"},
        "annotations": {keys.SERVICE_ACCOUNT_NAME: "x", "other": "y"},
        **changes,
    }
    return TokenSecret.of(objects.secret("ns/s", data={"token": "dA==", "more": "eA=="}, **meta))


@pytest.mark.parametrize(
    ("changes", "resource_class", "wanted"),
    [
        ({}, "shoot", True),
        ({"labels": {keys.PURPOSE: "token-requestor", keys.CLASS: "garden"}}, "shoot", False),
        ({"labels": {keys.PURPOSE: "token-requestor"}}, "shoot", False),
        ({"labels": {keys.PURPOSE: "token-requestor"}}, None, True),
        ({"labels": {keys.PURPOSE: "token-requestor", keys.CLASS: "garden"}}, None, True),
        ({"labels": {keys.PURPOSE: "other", keys.CLASS: "shoot"}}, "shoot", False),
        ({"labels": {}}, None, False),
        ({"deletionTimestamp": LATER}, None, False),
    ],
)
def test_purpose_and_class_decide_until_it_is_deleted(
    changes: Object, resource_class: str | None, wanted: bool
) -> None:
    assert wants_token(secret(**changes), resource_class=resource_class) is wanted


def test_the_api_server_selects_the_class() -> None:
    assert label_selector(None) == "resources.gardener.cloud/purpose=token-requestor"
    assert label_selector("shoot").endswith(",resources.gardener.cloud/class=shoot")


def test_what_does_not_matter_makes_no_difference() -> None:
    first, second = secret(), secret(resourceVersion="6", annotations={keys.SERVICE_ACCOUNT_NAME: "x", "other": "z"})
    assert first == second
    assert first != secret(annotations={keys.SERVICE_ACCOUNT_NAME: "y"})
    assert first.encoded == {"token": "dA=="}


def test_tokens_are_not_shown() -> None:
    issued = Issued(spec=PLAIN, token="hush", renew_at=1.0)
    assert "hush" not in repr(issued)
    assert "dA==" not in repr(secret())


# --- memory


def test_requests_for_one_secret_become_rarer() -> None:
    pace, now, waits = Pace(), 100.0, []
    for _ in range(10):
        wait = pace.wait(now)
        waits.append(wait)
        now += wait
        pace.note(now)
    assert waits == [0, 1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_after_a_rejection_a_whole_pause_is_made() -> None:
    pace = Pace()
    assert pace.wait(0, rejected=True) == 0
    pace.note(0)
    assert [pace.wait(now, rejected=True) for now in (10, LONGEST_PAUSE)] == [LONGEST_PAUSE - 10, 0]


def test_after_a_long_quiet_time_requests_are_free_again() -> None:
    pace = Pace()
    for now in (0, 1, 3):
        pace.note(now)
    assert (pace.wait(4), pace.wait(603)) == (3, 0)
    pace.note(603)
    assert pace.wait(603) == 1


def test_jumps_of_the_clock_move_no_deadline() -> None:
    memory = Memory("1")
    assert memory.renew_at(LATER, now=50, today=NOON) == 50 + 3600
    for jump in (timedelta(days=1), timedelta(days=-1)):
        assert memory.renew_at(LATER, now=60, today=NOON + jump) == 50 + 3600
    assert memory.renew_at("2024-05-01T14:00:00Z", now=60, today=NOON) == 60 + 7200


@pytest.mark.parametrize("timestamp", ["soon", "2024-05-01T11:59:59Z"])
def test_what_is_past_or_malformed_is_due(timestamp: str) -> None:
    assert Memory("1").renew_at(timestamp, now=50, today=NOON) <= 50


def test_a_review_is_remembered_for_the_token_it_was_about() -> None:
    memory = Memory("1")
    assert memory.review_at(b"a") == 0
    memory.set_review_at(b"a", 70.0)
    assert memory.review_at(b"a") == 70.0
    assert memory.review_at(b"b") == 0


def test_a_token_that_was_not_stored_is_used_while_it_is_what_is_wanted() -> None:
    issued = Issued(spec=PLAIN, token="t", renew_at=100.0)
    assert issued.fits(PLAIN, 99)
    assert issued.fits(WITH_CA, 99)
    assert not issued.fits(PLAIN, 100)
    assert not issued.fits(spec(**{keys.TOKEN_EXPIRATION_DURATION: "1h"}), 99)
    assert not issued.fits(spec(**{keys.SERVICE_ACCOUNT_NAME: "y"}), 99)


def test_a_recreated_secret_has_no_past() -> None:
    memories = Memories()
    memories.of(secret()).pace.note(0)
    memories.of(secret()).written = secret()
    assert memories.of(secret()).pace.count == 1
    assert not memories.is_foreign(secret(resourceVersion="9"))
    assert memories.of(secret(uid="2")).pace.count == 0
    assert memories.is_foreign(secret())
    memories.forget(Key("ns", "s"))
    assert len(memories) == 0


# --- which target Secrets are watched, and how


def test_a_few_target_secrets_are_watched_by_name_and_many_together() -> None:
    targets = [Key("default", f"t-{number}") for number in range(MOST_BY_NAME + 1)]
    few = {view_of_target(target, count=MOST_BY_NAME).field_selector for target in targets[1:]}
    assert few == {f"metadata.name={target.name},metadata.namespace=default" for target in targets[1:]}
    assert {view_of_target(target, count=MOST_BY_NAME + 1).field_selector for target in targets} == {""}
