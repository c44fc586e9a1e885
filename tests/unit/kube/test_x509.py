"""Certificates of clients and servers under authorities that others have made, too."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kube.x509 import Pair, UnusablePair, load_pair, make_ca, make_client, make_serving, read_pair

NOW, DAY = datetime(2026, 3, 1, 12, tzinfo=UTC), timedelta(days=1)
OWN = make_ca("own", now=NOW, lifetime=DAY)
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def foreign(key: Key, *extensions: x509.ExtensionType) -> tuple[bytes, bytes]:
    """Certificate and key of an authority, PEM."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "foreign")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW - DAY, NOW + DAY)
    for extension in (x509.BasicConstraints(ca=True, path_length=None), *extensions):
        builder = builder.add_extension(extension, critical=False)
    made = builder.sign(key, None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256())
    return made.public_bytes(Encoding.PEM), key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


RSA = foreign(rsa.generate_private_key(public_exponent=65537, key_size=2048), x509.SubjectKeyIdentifier(b"its own"))
BARE = foreign(ec.generate_private_key(ec.SECP256R1()))


@pytest.mark.parametrize("ca", [OWN, read_pair(*RSA), read_pair(*BARE)], ids=["own", "rsa", "without identifier"])
def test_certificates_refer_to_their_authority_as_it_calls_itself(ca: Pair) -> None:
    client = make_client(ca, "ann", ["g"], now=NOW, lifetime=9 * DAY).certificate
    server = make_serving(ca, ["s", "10.0.0.1"], now=NOW, lifetime=9 * DAY).certificate
    for made, usage in ((client, ExtendedKeyUsageOID.CLIENT_AUTH), (server, ExtendedKeyUsageOID.SERVER_AUTH)):
        made.verify_directly_issued_by(ca.certificate)
        assert list(made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [usage]
        assert made.not_valid_after_utc == ca.certificate.not_valid_after_utc
        identifier = made.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
        own = ca.certificate.extensions
        if any(isinstance(each.value, x509.SubjectKeyIdentifier) for each in own):
            assert identifier == own.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    assert client.subject.rfc4514_string() == "CN=ann,O=g"


def test_long_names_of_users_stay_distinct() -> None:
    subjects = {
        make_client(OWN, f"{'u' * 100}{end}", now=NOW, lifetime=DAY).certificate.subject.rfc4514_string()
        for end in ("", "a", "b")
    }
    assert len(subjects) == 3
    assert all(len(subject) == len("CN=") + 64 for subject in subjects)


def test_pairs_of_others_can_sign_but_are_not_taken_for_own_ones() -> None:
    assert read_pair(*RSA).certificate_pem == RSA[0]
    assert load_pair(*RSA) is None
    assert load_pair(*BARE) is not None


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ((b"", b""), "is missing or not readable"),
        ((RSA[0], b"nothing"), "is missing or not readable"),
        ((RSA[0], BARE[1]), "has a key that does not belong to its certificate"),
        (foreign(ed25519.Ed25519PrivateKey.generate()), "has a key that is neither RSA nor ECDSA"),
    ],
)
def test_what_is_wrong_with_a_pair_is_reported(pair: tuple[bytes, bytes], message: str) -> None:
    with pytest.raises(UnusablePair, match=message):
        read_pair(*pair)
