"""Versions that are kept: what their Secrets hold and report, which are too old, and what makes no sense."""

import base64
import os
from typing import Any

import brotli
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardener.managed_resource.decode import LARGEST_SECRET
from gardener.managed_resource.history import (
    DATA_KEY,
    Listed,
    Revision,
    is_revision,
    is_same,
    kept_secrets,
    listed_in,
    ours,
    packed,
    revision_secret,
    selector_of,
    surplus,
    trusted,
)
from gardener.managed_resource.history_limit import limit_of
from kit.objects import managed_resource, secret
from kube.names import dns_subdomain_problems, label_value_problems
from kube.objects import Key, Object, annotations, key, labels, metadata
from kubectl.mr.desired import values_of

GROUP = "resources.gardener.cloud"
LONG = f"{'a' * 60}.{'b' * 190}"
SHOP = managed_resource("garden/shop", uid="u1")


def made(*, of: Object = SHOP, number: int = 3, digest: str = "d", value: bytes = b"v", names: int = 1) -> Object:
    listed = [f"s{each}" for each in range(names)]
    return revision_secret(of, number=number, digest=digest, names=listed, value=value)


@given(
    st.lists(
        st.tuples(st.from_regex(r"[a-z]{1,9}", fullmatch=True), st.dictionaries(st.sampled_from("ab"), st.binary())),
        max_size=3,
        unique_by=lambda each: each[0],
    )
)
def test_what_is_kept_comes_out_again_byte_by_byte(contents: list[tuple[str, dict[str, bytes]]]) -> None:
    found = kept_secrets(made(value=packed(contents)))
    assert [(key(each).name, values_of(each)) for each in found] == contents


def test_the_secret_states_all_but_the_content_in_its_metadata() -> None:
    shop = managed_resource("garden/shop", uid="u1", annotations={"kubernetes.io/change-cause": "new prices"})
    found = made(of=shop, names=2)
    assert key(found) == Key("garden", "shop-history-3")
    assert (found["type"], found["immutable"]) == (f"{GROUP}/managed-resource-revision", True)
    assert labels(found) == {f"{GROUP}/history-of": "shop"}
    assert annotations(found) == {
        f"{GROUP}/revision": "3",
        f"{GROUP}/revision-digest": "d",
        f"{GROUP}/source-secrets": "s0,s1",
        "kubernetes.io/change-cause": "new prices",
    }
    (owner,) = metadata(found)["ownerReferences"]
    assert owner == {"apiVersion": f"{GROUP}/v1alpha1", "kind": "ManagedResource", "name": "shop", "uid": "u1"}
    assert is_revision(found)
    assert not is_revision(secret("shop-history-3"))


@pytest.mark.parametrize("name", ["shop", "a" * 63, "a" * 64, LONG])
@pytest.mark.parametrize("number", [1, 999_999_999])
def test_names_of_any_length_become_names_and_labels(name: str, number: int) -> None:
    found = made(of=managed_resource(f"garden/{name}", uid="u"), number=number)
    assert dns_subdomain_problems(key(found).name) == []
    assert label_value_problems(selector_of(name)) == []
    assert key(found).name.endswith(f"-history-{number}")
    assert len({selector_of(name), selector_of(f"{name[:-1]}z")}) == 2


def test_what_is_written_by_others_is_bounded() -> None:
    shop = managed_resource("garden/shop", uid="u1", annotations={"kubernetes.io/change-cause": "x" * 10_000})
    notes = annotations(made(of=shop, names=1000))
    assert len(notes["kubernetes.io/change-cause"]) == 1025
    assert notes[f"{GROUP}/source-secrets"].endswith("s19,…")


def test_what_a_secret_does_not_hold_becomes_a_revision_without_content() -> None:
    fits, too_large = made(value=b"x" * LARGEST_SECRET), made(value=os.urandom(LARGEST_SECRET + 1))
    assert len(base64.b64decode(fits["data"][DATA_KEY])) == LARGEST_SECRET
    assert too_large["data"] == {}
    with pytest.raises(
        ValueError, match=r"not kept: it has 1048577 bytes when compressed, but a Secret holds at most 1048576"
    ):
        kept_secrets(too_large)


@pytest.mark.parametrize(
    "value",
    [
        b"no stream",
        brotli.compress(b"no JSON"),
        brotli.compress(b"[]"),
        brotli.compress(b'{"items": [1]}'),
        brotli.compress(orjson.dumps({"items": None})),
        brotli.compress(b"x" * (300 << 20), quality=1),
    ],
)
def test_content_that_is_something_else_is_an_error_without_a_trace_of_it(value: bytes) -> None:
    with pytest.raises(ValueError, match="its content can't be read"):
        kept_secrets(made(value=value))


def test_a_revision_is_read_from_metadata_alone() -> None:
    whole = made()
    whole["metadata"] |= {"uid": "u9", "resourceVersion": "17"}
    found = Revision.of({"metadata": whole["metadata"]})
    assert found == Revision(Key("garden", "shop-history-3"), "u9", 17, "u1", 3, "d")


@pytest.mark.parametrize("number", ["", "0", "-1", "1.5", "١", "9" * 10, "x", None])
def test_what_another_client_has_labelled_is_no_revision(number: Any) -> None:
    marks = {} if number is None else {f"{GROUP}/revision": number}
    found = Revision.of(secret("garden/x", labels={f"{GROUP}/history-of": "shop"}, annotations=marks))
    assert found.number == 0
    assert ours([found], SHOP) == []


def test_those_of_a_namesake_before_it_do_not_count() -> None:
    former = managed_resource("garden/shop", uid="u0")
    found = [Revision.of(made(of=of, number=number)) for of, number in ((SHOP, 10), (former, 1), (SHOP, 9))]
    assert [each.number for each in ours(found, SHOP)] == [9, 10]


def listing(*revisions: Object) -> Object:
    """The ManagedResource with these revisions in its status."""
    entries = [Listed.of(Revision.of(each), each).entry() for each in revisions]
    return {**SHOP, "status": {"revisions": entries}}


def test_only_what_the_status_lists_counts() -> None:
    kept = [made(number=number, value=b"kept") for number in (2, 1)]
    shop = listing(*kept)
    others = [made(number=9, value=b"kept"), made(number=1, digest="other"), made(of=managed_resource("garden/b"))]
    found = trusted([Revision.of(each) for each in (*kept, *others)], shop, listed_in(shop))
    assert [each.number for each in found] == [1, 2]
    assert listed_in(SHOP) == []


@pytest.mark.parametrize(
    "change",
    [
        {"immutable": False},
        {"immutable": None},
        {"type": "Opaque"},
        {"data": {DATA_KEY: base64.b64encode(b"forged").decode()}},
        {"data": None},
        {"metadata": {"namespace": "garden", "name": "shop-history-4"}},
    ],
)
def test_a_revision_is_the_immutable_secret_with_the_digest(change: Object) -> None:
    kept = made(value=b"kept")
    (listed,) = listed_in(listing(kept))
    assert listed.is_kept_in(kept)
    assert not listed.is_kept_in({**kept, **change})


@pytest.mark.parametrize("entries", [None, {}, "x", [1], [{}], [{"revision": "1"}], [{"revision": -1}]])
def test_a_status_that_lists_nothing_readable_lists_nothing(entries: Any) -> None:
    assert listed_in({**SHOP, "status": {"revisions": entries}}) == []


def test_what_an_attempt_kept_that_is_not_known_of_is_found_again() -> None:
    wanted = made(value=b"kept")
    assert is_same(made(value=b"kept"), wanted)
    former = managed_resource("garden/shop", uid="u0")
    going = {**wanted, "metadata": {**metadata(wanted), "deletionTimestamp": "2025-01-01T00:00:00Z"}}
    for other in (made(value=b"forged"), made(of=former, value=b"kept"), {**wanted, "immutable": False}, going):
        assert not is_same(other, wanted)


@pytest.mark.parametrize(("limit", "pruned"), [(1, [1, 2]), (2, [1]), (3, []), (100, [])])
def test_the_oldest_are_pruned(limit: int, pruned: list[int]) -> None:
    found = ours([Revision.of(made(number=number)) for number in (1, 2, 3)], SHOP)
    assert [each.number for each in surplus(found, limit)] == pruned


@pytest.mark.parametrize(
    ("requested", "limit", "is_wrong"),
    [
        (None, 7, False),
        ("0", 0, False),
        ("3", 3, False),
        ("100", 100, False),
        ("101", 7, True),
        ("-1", 7, True),
        ("", 7, True),
        ("03", 7, True),
        ("٣", 7, True),
        ("three" * 100, 7, True),
    ],
)
def test_the_annotation_goes_before_the_setting(requested: str | None, limit: int, is_wrong: bool) -> None:
    marks = {} if requested is None else {f"{GROUP}/history-limit": requested}
    found, problem = limit_of(managed_resource("garden/shop", annotations=marks), default=7)
    assert (found, problem is not None) == (limit, is_wrong)
    if problem:
        assert str(problem).endswith("must be a number from 0 to 100")
        assert len(str(problem)) < 200
