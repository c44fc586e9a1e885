"""What certificates look like, which step is due when, and how they are written to files."""

import argparse
import datetime
import ipaddress
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from kube.x509 import Pair, is_signed_by, load_certificates, load_pair, make_ca, make_serving, names_of, pem
from webhooks.certificates import command, files, rules
from webhooks.certificates.rules import (
    CertificateState,
    Issue,
    MakeCa,
    NotePublished,
    Publish,
    SetBundle,
    Step,
    next_step,
    next_time,
)
from webhooks.configurations import setting
from webhooks.rules.registration import Instance, Mode

NOW = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
NAMES = ("grm", "grm.garden.svc", "10.0.0.1")


def ca_of(day: datetime.datetime) -> Pair:
    return make_ca("grm", now=day, lifetime=rules.CA_LIFETIME)


def serving_of(ca: Pair, day: datetime.datetime, names: Sequence[str] = NAMES) -> Pair:
    return make_serving(ca, names, now=day, lifetime=rules.SERVING_LIFETIME)


OLD = ca_of(NOW - 250 * DAY)
NEW = ca_of(NOW)
BOTH = (NEW.certificate, OLD.certificate)
ORDERED = CertificateState(ca=NEW, bundle=(NEW.certificate,), published_at=NOW - DAY, serving=serving_of(NEW, NOW))


OVERLAP = replace(ORDERED, bundle=BOTH, serving=serving_of(OLD, NOW), published_at=NOW)
"""A new CA has just come, and the server has a certificate of the old one."""
WAITING, EXPIRED = replace(OVERLAP, published_at=None, waiting_for_others=True), serving_of(OLD, NOW - 91 * DAY)


def verify(serving: Pair, bundle: Sequence[x509.Certificate], name: str, at: datetime.datetime) -> None:
    policy = PolicyBuilder().store(Store(list(bundle))).time(at)
    subject = x509.DNSName(name) if not name[0].isdigit() else x509.IPAddress(ipaddress.ip_address(name))
    policy.build_server_verifier(subject).verify(serving.certificate, [])


@pytest.mark.parametrize("name", NAMES)
def test_a_client_that_knows_the_ca_trusts_the_server_under_each_name(name: str) -> None:
    verify(serving_of(NEW, NOW), [OLD.certificate, NEW.certificate], name, NOW)
    with pytest.raises(VerificationError):
        verify(serving_of(NEW, NOW), [OLD.certificate], name, NOW)


def test_certificates_can_do_what_they_are_for_and_nothing_else() -> None:
    ca, serving = NEW.certificate, serving_of(NEW, NOW).certificate
    assert isinstance(serving.public_key(), ec.EllipticCurvePublicKey)
    assert isinstance(NEW.key, ec.EllipticCurvePrivateKey)
    assert isinstance(NEW.key.curve, ec.SECP256R1)
    assert ca.extensions.get_extension_for_class(x509.BasicConstraints).value == x509.BasicConstraints(True, 0)
    assert not serving.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    usage = serving.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert names_of(serving) == set(NAMES)
    assert ca.not_valid_before_utc < NOW


def test_the_certificate_of_a_server_does_not_outlive_its_ca() -> None:
    late = OLD.certificate.not_valid_after_utc - DAY
    assert serving_of(OLD, late).certificate.not_valid_after_utc == OLD.certificate.not_valid_after_utc


def test_a_key_shows_nowhere() -> None:
    assert "PRIVATE" not in repr(NEW)
    assert "PRIVATE" not in repr(ORDERED)


@pytest.mark.parametrize(
    ("certificate", "key"),
    [
        (None, None),
        (b"", b""),
        (b"nothing", NEW.key_pem),
        (NEW.certificate_pem, b"nothing"),
        (NEW.certificate_pem, OLD.key_pem),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", NEW.key_pem),
    ],
)
def test_what_does_not_make_a_pair_counts_as_none(certificate: bytes | None, key: bytes | None) -> None:
    assert load_pair(certificate, key) is None


def test_what_is_stored_can_be_read_again() -> None:
    assert load_pair(NEW.certificate_pem, NEW.key_pem) is not None
    assert load_certificates(pem(NEW.certificate, OLD.certificate)) == (NEW.certificate, OLD.certificate)
    assert load_certificates(b"nothing") == load_certificates(None) == ()
    assert is_signed_by(serving_of(NEW, NOW).certificate, NEW.certificate)
    assert not is_signed_by(serving_of(NEW, NOW).certificate, OLD.certificate)


@pytest.mark.parametrize(
    ("state", "now", "expected"),
    [
        pytest.param(CertificateState(), NOW, MakeCa(()), id="nothing is there"),
        pytest.param(ORDERED, NOW, None, id="all in order"),
        pytest.param(replace(ORDERED, ca=None), NOW, MakeCa((NEW.certificate,)), id="the CA's key is lost"),
        pytest.param(ORDERED, NOW + 242 * DAY, Issue(), id="a CA is good for two thirds of its life"),
        pytest.param(ORDERED, NOW + 244 * DAY, MakeCa((NEW.certificate,)), id="a CA is renewed before the last third"),
        pytest.param(replace(ORDERED, bundle=()), NOW, SetBundle((NEW.certificate,)), id="the bundle is lost"),
        pytest.param(
            *(replace(ORDERED, bundle=BOTH), NOW + 120 * DAY, SetBundle((NEW.certificate,))),
            id="an expired CA leaves the bundle",
        ),
        pytest.param(replace(ORDERED, published=False), NOW, Publish(), id="a configuration has another bundle"),
        pytest.param(replace(ORDERED, published_at=None), NOW, NotePublished(), id="the bundle has come everywhere"),
        pytest.param(replace(ORDERED, serving=None), NOW, Issue(), id="the server has no certificate"),
        pytest.param(ORDERED, NOW + 59 * DAY, None, id="a certificate is good for two thirds of its life"),
        pytest.param(ORDERED, NOW + 61 * DAY, Issue(), id="a certificate is renewed before the last third"),
        pytest.param(replace(ORDERED, serving=serving_of(NEW, NOW, ["grm"])), NOW, Issue(), id="a name is missing"),
        pytest.param(OVERLAP, NOW, None, id="API servers may not know the new CA yet"),
        pytest.param(OVERLAP, NOW + rules.SETTLED, Issue(), id="API servers know the new CA"),
        pytest.param(WAITING, NOW + 30 * DAY, None, id="others have not published the new CA"),
        pytest.param(
            replace(WAITING, serving=None), NOW, Issue(), id="without a certificate there is nothing to wait for"
        ),
        pytest.param(replace(WAITING, serving=EXPIRED), NOW, Issue(), id="with an expired certificate neither"),
    ],
)
def test_the_next_step(state: CertificateState, now: datetime.datetime, expected: Step | None) -> None:
    assert next_step(state, NAMES, now=now) == expected


def test_a_bundle_does_not_grow_for_ever() -> None:
    many = tuple(ca_of(NOW).certificate for _ in range(6))
    step = next_step(replace(ORDERED, ca=None, bundle=many), NAMES, now=NOW)
    assert step == MakeCa(many[:3])


def test_the_next_look_is_when_the_first_thing_becomes_due() -> None:
    assert ORDERED.serving is not None
    assert next_time(ORDERED, now=NOW) == rules.renewal_of(ORDERED.serving.certificate)
    assert next_time(OVERLAP, now=NOW) == NOW + rules.SETTLED
    assert next_time(CertificateState(), now=NOW) > NOW


def test_at_no_moment_of_two_years_a_client_meets_a_server_that_it_does_not_trust() -> None:
    """Clients know the bundle of five minutes ago at worst, and the server uses what is stored."""
    state, now, rotations = CertificateState(), NOW, 0
    known: list[tuple[datetime.datetime, tuple[x509.Certificate, ...]]] = []
    published: tuple[x509.Certificate, ...] = ()
    while now < NOW + 800 * DAY:
        while step := next_step(state, NAMES, now=now):
            match step:
                case MakeCa(beside):
                    ca = ca_of(now)
                    state = replace(state, ca=ca, bundle=(ca.certificate, *beside), published_at=None)
                    rotations += 1
                case SetBundle(certificates):
                    state = replace(state, bundle=certificates)
                case Publish():
                    published = state.bundle
                    known.append((now, published))
                case NotePublished():
                    state = replace(state, published_at=now)
                case Issue():
                    assert state.ca is not None
                    state = replace(state, serving=serving_of(state.ca, now))
            state = replace(state, published=published == state.bundle)
        assert state.serving is not None
        stale = [bundle for at, bundle in known if at <= now - datetime.timedelta(minutes=4)]
        for bundle in [published, *stale[-1:]]:
            verify(state.serving, bundle, "grm", now)
        now = next_time(state, now=now)
    assert rotations == 4


def test_the_key_is_written_for_the_owner_only_and_nothing_is_written_twice(tmp_path: Path) -> None:
    directory = tmp_path / "certificates"
    pair = serving_of(NEW, NOW)
    assert files.write(directory, pair)
    assert stat.S_IMODE((directory / "tls.key").stat().st_mode) == 0o600
    written = load_pair((directory / "tls.crt").read_bytes(), (directory / "tls.key").read_bytes())
    assert written is not None
    assert written.certificate == pair.certificate
    inode = (directory / "tls.key").stat().st_ino
    assert not files.write(directory, pair)
    assert (directory / "tls.key").stat().st_ino == inode
    assert files.write(directory, serving_of(NEW, NOW))
    assert sorted(path.name for path in directory.iterdir()) == ["tls.crt", "tls.key"]


@pytest.fixture
def given(tmp_path: Path) -> argparse.Namespace:
    (tmp_path / "config.yaml").write_text("leaderElection: {resourceNamespace: garden}\n")
    arguments = ["--config", str(tmp_path / "config.yaml"), "--prefix", "virtual-garden-", "--once"]
    return command.parser().parse_args([*arguments, "--dns-name", "hooks.example.com", "--dns-name", "::1"])


def test_the_certificate_is_for_the_service_and_what_is_named_beside_it(given: argparse.Namespace) -> None:
    wanted = command.options_of(given, setting.read(given, environment={}))
    assert wanted.names == (
        "virtual-garden-gardener-resource-manager",
        "virtual-garden-gardener-resource-manager.garden",
        "virtual-garden-gardener-resource-manager.garden.svc",
        "virtual-garden-gardener-resource-manager.garden.svc.cluster.local",
        "hooks.example.com",
        "::1",
    )
    assert wanted.instance == Instance(mode=Mode.RUNTIME, prefix="virtual-garden-")
    assert wanted.secret == "virtual-garden-gardener-resource-manager-server"
    assert wanted.ca_secret == "virtual-garden-gardener-resource-manager-ca"


@pytest.mark.parametrize("name", ["", "A_b", "a..b", "*.*.a"])
def test_a_wrong_name_is_explained(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.parser().parse_args(["--config", "c", "--once", "--dns-name", name])
    assert "is neither a DNS name nor an IP address" in capsys.readouterr().err


def test_an_unusable_configuration_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--config", str(tmp_path / "none"), "--once"], environment={}) == 1
    assert "error reading config file" in capsys.readouterr().err
