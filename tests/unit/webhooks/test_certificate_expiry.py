"""Until when a certificate is valid, as this project reads it and as the library does."""

import contextlib
import datetime
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from webhooks.expiry import not_after

FRAME = b"-----BEGIN CERTIFICATE-----\n%s-----END CERTIFICATE-----\n"
KEYS = (ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(public_exponent=65537, key_size=2048))


def certificate(until: datetime.datetime, *, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey = KEYS[0]) -> bytes:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a" * 60)])
    names = [x509.DNSName(f"name-{number}.example.com") for number in range(50)]
    since = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number(), since, until)
    made = builder.add_extension(x509.SubjectAlternativeName(names), critical=False).sign(key, hashes.SHA256())
    return made.public_bytes(Encoding.PEM)


@pytest.mark.parametrize("key", KEYS, ids=["ec", "rsa"])
@pytest.mark.parametrize("year", [1999, 2027, 2049, 2050, 2999])
def test_it_is_what_the_library_reports(year: int, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    moment = datetime.datetime(year, 2, 28, 23, 59, 58, tzinfo=datetime.UTC)
    pem = certificate(moment, key=key)
    assert not_after(pem) == moment.timestamp() == x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp()


def test_of_a_chain_the_first_one_counts() -> None:
    first, second = (datetime.datetime(year, 1, 1, tzinfo=datetime.UTC) for year in (2030, 2029))
    assert not_after(b"text\n" + certificate(first) + certificate(second)) == first.timestamp()


@pytest.mark.parametrize(
    "pem", [b"", b"nothing", *(FRAME % lines for lines in (b"", b"MAA=\n", b"MIL/\n", b"\xff\xff\n"))]
)
def test_what_is_none_is_an_error(pem: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        not_after(pem)


GOOD = certificate(datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC))


@given(st.integers(min_value=28, max_value=300), st.integers(min_value=0x20, max_value=0x7E))
def test_a_broken_one_is_read_or_an_error(position: int, byte: int) -> None:
    broken = bytearray(GOOD)
    broken[position] = byte
    with contextlib.suppress(ValueError):
        assert isinstance(not_after(bytes(broken)), float)


@pytest.mark.parametrize(
    "der", [b"0", b"0\x82", b"0\x00A", b"A"], ids=["a tag alone", "no length", "more behind it", "no type"]
)
def test_what_ends_too_early_is_no_certificate(der: bytes) -> None:
    with pytest.raises(ValueError, match="not a certificate|truncated"):
        not_after(ssl.DER_cert_to_PEM_cert(der).encode())
