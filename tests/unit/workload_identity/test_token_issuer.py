"""The Secret of the issuer: what is read of it, and what is reported if it can't be used."""

import base64

import orjson
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from kit.objects import encoded
from kube.jwt import SigningKey, VerificationKey, make_key, read_signing_key
from kube.objects import Key
from webhooks.tokens.issuer import SECRET, CannotIssue, read

FIRST, SECOND = make_key(), make_key()
URL = b"https://issuer.example.com"


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, *, password: bytes = b"") -> bytes:
    encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)


def public_pem(key: VerificationKey) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public.public_bytes(serialization.Encoding.PEM, form)


def number(text: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(text + "=="), "big")


def test_a_token_is_verified_with_what_is_published() -> None:
    issuer = read(encoded({"issuer": URL + b"/\n", "key.pem": FIRST}), secret=SECRET)
    token = issuer.key.sign({"sub": "x"})
    head, content, signature = token.split(".")
    header, claims = (orjson.loads(base64.urlsafe_b64decode(part + "==")) for part in (head, content))
    assert claims == {"sub": "x"}
    (key,) = issuer.published["keys"]
    assert header == {"alg": "RS256", "typ": "JWT", "kid": key["kid"]}
    public = rsa.RSAPublicNumbers(number(key["e"]), number(key["n"])).public_key()
    signed = f"{head}.{content}".encode()
    public.verify(base64.urlsafe_b64decode(signature + "=="), signed, padding.PKCS1v15(), hashes.SHA256())


def test_the_configuration_leads_to_the_keys() -> None:
    issuer = read(encoded({"issuer": URL, "key.pem": FIRST}), secret=SECRET)
    configuration = issuer.configuration()
    assert configuration["issuer"] == "https://issuer.example.com"
    assert configuration["jwks_uri"] == "https://issuer.example.com/jwks"


def test_former_and_future_keys_are_published_and_do_not_sign() -> None:
    former, future = read_signing_key(SECOND), SigningKey(rsa.generate_private_key(65537, 2048))
    data = {"issuer": URL, "key.pem": FIRST, "former.pem": public_pem(former.public), "next.pem": pem(future.private)}
    issuer = read(encoded(data), secret=SECRET)
    assert issuer.key.public.id == read_signing_key(FIRST).public.id
    ids = {issuer.key.public.id, former.public.id, future.public.id}
    assert {key["kid"] for key in issuer.published["keys"]} == ids


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({}, "has no key issuer"),
        ({"key.pem": FIRST}, "has no key issuer"),
        ({"issuer": b"  ", "key.pem": FIRST}, "has no key issuer"),
        ({"issuer": b"http://x", "key.pem": FIRST}, "has a key issuer that is not a URL of the form https://HOST"),
        ({"issuer": b"https://x?a", "key.pem": FIRST}, "has a key issuer that is not a URL of the form https://HOST"),
        ({"issuer": b"\xff", "key.pem": FIRST}, "has a key issuer that is not a URL of the form https://HOST"),
        ({"issuer": b"https://[", "key.pem": FIRST}, "has a key issuer that is not a URL of the form https://HOST"),
        ({"issuer": URL}, "has no key key.pem"),
        ({"issuer": URL, "key.pem": b""}, "has a key key.pem that is not a private key in PEM format"),
        ({"issuer": URL, "key.pem": b"sesame"}, "has a key key.pem that is not a private key in PEM format"),
        (
            {"issuer": URL, "key.pem": public_pem(read_signing_key(FIRST).public)},
            "has a key key.pem that is not a private key in PEM format",
        ),
        (
            {"issuer": URL, "key.pem": pem(ec.generate_private_key(ec.SECP256R1()))},
            "has a key key.pem that is not an RSA key",
        ),
        (
            {"issuer": URL, "key.pem": pem(rsa.generate_private_key(65537, 1024))},
            "has a key key.pem that has 1024 bits, and needs at least 2048",
        ),
        (
            {"issuer": URL, "key.pem": pem(read_signing_key(FIRST).private, password=b"x")},
            "has a key key.pem that is encrypted",
        ),
        ({"issuer": URL, "key.pem": FIRST, "old.pem": b"sesame"}, "has a key old.pem that is not a key in PEM format"),
    ],
)
def test_what_can_not_be_used_is_named(data: dict[str, bytes], problem: str) -> None:
    with pytest.raises(CannotIssue) as raised:
        read(encoded(data), secret=Key("garden", "w"))
    assert str(raised.value) == (
        f"no tokens can be issued: Secret garden/w {problem}; put the URL of the issuer into its key issuer and an RSA"
        " private key as PEM, of 2048 bits or more, into its key key.pem"
    )


def test_what_is_no_base64_is_named() -> None:
    with pytest.raises(CannotIssue, match="Secret garden/w holds invalid base64"):
        read({"issuer": "!"}, secret=Key("garden", "w"))


def test_a_key_is_not_shown() -> None:
    assert "PRIVATE" not in repr(read(encoded({"issuer": URL, "key.pem": FIRST}), secret=SECRET))
