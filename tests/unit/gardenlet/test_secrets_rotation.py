"""When Secrets of control planes are renewed, what they are called, and what fits a config."""

from datetime import UTC, datetime, timedelta

import pytest

from components.secrets import labels as names
from components.secrets.configs import (
    BasicAuth,
    Bundle,
    Config,
    EncryptionKey,
    Given,
    StaticTokens,
    TokenKubeconfig,
    TokenUser,
    TunnelKey,
)
from components.secrets.rotation import (
    Old,
    must_be_renewed,
    newest,
    old_of_a_seed,
    old_one,
    rotation_times,
)
from components.secrets.stored import Stored
from gardener.basic_auth import line_of
from kube.x509 import Profile

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def secret(name: str, config: str, *, issued: datetime = NOW, rotated: str = "", **more: str) -> Stored:
    labels = {names.NAME: config, names.ISSUED_AT: names.as_label(issued), names.ROTATED: rotated, **more}
    return Stored(name=name, labels=labels, data={})


@pytest.mark.parametrize(
    ("life", "age", "percentage", "expected"),
    [
        (30, 19.9, "", False),
        (30, 20, "", True),  # ten days are left
        (100, 79, "", False),
        (100, 80, "", True),
        (3653, 2900, "", False),
        (100, 50, "50", True),
        (100, 50, "nonsense", False),
        (5, 0, "", False),  # of a short life, ten days report nothing
        (5, 4, "", True),
        (None, 9999, "", False),
    ],
)
def test_renewal_comes_when_most_of_a_life_is_over(
    life: int | None, age: float, percentage: str, expected: bool
) -> None:
    issued = NOW - age * DAY
    labels = {names.ISSUED_AT: names.as_label(issued), names.RENEW_AFTER_PERCENTAGE: percentage}
    if life:
        labels[names.VALID_UNTIL] = names.as_label(issued + life * DAY)
    assert must_be_renewed(labels, NOW) is expected


@pytest.mark.parametrize("labels", [{}, {names.ISSUED_AT: "1e3"}, {names.ISSUED_AT: "9" * 30, names.VALID_UNTIL: "1"}])
def test_what_has_unreadable_times_is_not_renewed(labels: dict[str, str]) -> None:
    assert not must_be_renewed(labels, NOW)


@pytest.mark.parametrize(
    ("hours", "expected"),
    [(-1, Old.IN_USE), (0, Old.IN_USE), (23.9, Old.IN_USE), (24, Old.VERIFIES), (48, Old.IGNORED), (999, Old.IGNORED)],
)
def test_components_of_a_seed_have_a_day_for_each_step(hours: float, expected: Old) -> None:
    assert old_of_a_seed(NOW, NOW + timedelta(hours=hours)) is expected


def test_the_newest_secret_states_when_a_config_was_rotated() -> None:
    found = [secret("a", "x", issued=NOW - DAY), secret("b", "x", rotated="7"), secret("c", "y")]
    assert rotation_times(found, requested={}, now=NOW, renews_authorities=True) == {"x": "7", "y": ""}
    requested = {"y": NOW, "z": NOW}
    times = rotation_times(found, requested=requested, now=NOW, renews_authorities=True)
    assert times == {"x": "7", "y": names.as_label(NOW), "z": names.as_label(NOW)}


@pytest.mark.parametrize(("renews_authorities", "expected"), [(True, names.as_label(NOW)), (False, "")])
def test_authorities_of_a_shoot_are_rotated_by_users_only(renews_authorities: bool, expected: str) -> None:
    until = {names.VALID_UNTIL: names.as_label(NOW)}
    found = Stored(name="ca", labels={**secret("ca", "ca", issued=NOW - DAY).labels, **until}, data={"ca.key": b""})
    assert rotation_times([found], requested={}, now=NOW, renews_authorities=renews_authorities) == {"ca": expected}


def test_the_old_one_is_the_newest_of_the_others() -> None:
    current, old = secret("x-3", "x"), secret("x-2", "x", issued=NOW - DAY)
    found = [secret("x-1", "x", issued=NOW - 2 * DAY), current, old, secret("y", "y")]
    assert old_one(found, current) is old
    assert old_one([current], current) is None
    assert newest([]) is None


# --- names


def test_a_name_has_a_hash_of_config_authority_and_rotation() -> None:
    assert names.secret_name("ca", of_config="1", is_plain=True) == "ca"
    forms = [
        names.secret_name("ca", of_config="1"),
        names.secret_name("ca", of_config="1", of_authority="2"),
        names.secret_name("ca", of_config="3"),
        names.secret_name("ca", of_config="1", rotated="4", is_plain=True),
    ]
    assert [len(each) for each in forms] == [11, 11, 11, 17]
    assert len({each[:11] for each in forms}) == 3


def test_fields_that_are_empty_are_in_no_checksum() -> None:
    described = {"kind": "Key", "bits": 3072, "inner": {"name": "a"}}
    more = {**described, "new": False, "list": [], "inner": {"name": "a", "groups": []}, "empty": {"a": None}}
    assert names.checksum_of_config(more) == names.checksum_of_config(described)
    assert int(names.checksum_of_config(described)) < 2**64
    assert names.checksum_of_config({**described, "bits": 4096}) != names.checksum_of_config(described)


def test_a_checksum_fits_into_a_label() -> None:
    one = names.checksum_of_authority({"ca.crt": b"a", "ca.key": b"b"})
    assert (len(one), one != names.checksum_of_authority({"ca.crt": b"a", "ca.key": b"c"})) == (63, True)


# --- contents

USERS = (TokenUser("health-check"), TokenUser("admin", ("system:masters", "others")))
KUBECONFIG = TokenKubeconfig(name="k", context="shoot", server="https://a", ca_bundle=b"c", token_file="/t")


@pytest.mark.parametrize(
    ("config", "other"),
    [
        (StaticTokens(name="t", users=USERS), StaticTokens(name="t", users=USERS[:1])),
        (StaticTokens(name="t", users=USERS), StaticTokens(name="t", users=(USERS[0], TokenUser("admin")))),
        (KUBECONFIG, TokenKubeconfig(name="k", context="shoot", server="https://b", ca_bundle=b"c", token_file="/t")),
        (Bundle(name="b", of="a", field="f", parts=(b"1", b"2")), Bundle(name="b", of="a", field="f", parts=(b"1",))),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_content_fits_the_config_that_it_was_made_for(config: Config, other: Config) -> None:
    data = config.make(Given("name", None, NOW)).data
    assert (config.fits(data, None), other.fits(data, None), config.fits({}, None)) == (True, False, False)


def test_the_key_of_a_tunnel_is_one_that_openvpn_reads_and_no_other_is_like_it() -> None:
    config = TunnelKey(name="t")
    one, other = (config.make(Given("name", None, NOW)).data for _ in range(2))
    begin, *lines, end = one["vpn.tlsauth"].decode().splitlines()
    assert (begin, end) == tuple(f"-----{each} OpenVPN Static key V1-----" for each in ("BEGIN", "END"))
    assert [len(bytes.fromhex(each)) for each in lines] == [16] * 16
    assert one != other
    assert (config.fits(one, None), config.fits({}, None)) == (True, False)


def test_what_verifies_is_kept_whatever_its_order() -> None:
    bundle = Bundle(name="b", of="a", field="f", parts=(b"1", b"2"))
    assert [bundle.fits({"f": each}, None) for each in (b"12", b"21", b"11")] == [True, True, False]


def test_keys_for_encryption_are_named_after_their_time() -> None:
    key = EncryptionKey(name="e")
    data = key.make(Given("name", None, NOW)).data
    assert data["key"] == f"key{int(NOW.timestamp())}".encode()
    assert (key.fits(data, None), key.fits({"key": b"a"}, None)) == (True, False)


def test_the_order_of_names_in_a_certificate_does_not_count() -> None:
    one = Profile(common_name="a", names=("b", "::1", "c"), is_server=True)
    assert one.says_the_same_as(Profile(common_name="a", names=("c", "b", "0:0::1", "b"), is_server=True))
    assert not one.says_the_same_as(Profile(common_name="a", names=("c", "b"), is_server=True))
    assert not one.says_the_same_as(Profile(common_name="a", names=("b", "::1", "c"), is_client=True))


def test_a_user_and_a_password_are_kept_from_any_creator() -> None:
    config = BasicAuth(name="admin", user="admin")
    made = config.make(Given("admin", None, NOW)).data
    assert len(made["password"]) == 32
    assert made["auth"] == line_of("admin", made["password"].decode()).encode()
    assert config.fits(made, None)
    of_others = {**made, "auth": b"admin:$2a$10$" + b"x" * 53}
    assert config.fits(of_others, None)
    for wrong in ({"password": b"other"}, {"username": b"other"}, {"auth": b""}, {"auth": b"other:$2a$10$x"}):
        assert not config.fits({**made, **wrong}, None)
    assert made["password"].decode() not in str(config.described())
