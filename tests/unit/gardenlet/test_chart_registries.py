"""Where a chart is in a registry, and what is believed of what registries say."""

import base64
import json

import pytest

from agent.gardenlet.charts.rules.credentials import authorization
from agent.gardenlet.charts.rules.registries import (
    RegistryError,
    chart_layer,
    check_digest,
    is_same_origin,
    redirected,
    reference,
    refusal,
    token_url,
)

DIGEST = f"sha256:{'a' * 64}"
LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


@pytest.mark.parametrize(
    ("repository", "name", "url"),
    [
        ({"ref": "r.example.com/charts/c:1"}, "r.example.com/charts/c:1", "https://r.example.com/v2/charts/c"),
        ({"ref": "oci://r.example.com/c"}, "r.example.com/c:latest", "https://r.example.com/v2/c"),
        ({"ref": f"127.0.0.1:5000/c:1@{DIGEST}"}, f"127.0.0.1:5000/c@{DIGEST}", "http://127.0.0.1:5000/v2/c"),
        ({"repository": "r.io/c", "tag": "1", "digest": DIGEST}, f"r.io/c@{DIGEST}", "https://r.io/v2/c"),
        ({"repository": "localhost:5000/c", "tag": "1"}, "localhost:5000/c:1", "http://localhost:5000/v2/c"),
        ({"repository": "[::1]:5000/c", "tag": "1"}, "[::1]:5000/c:1", "http://[::1]:5000/v2/c"),
    ],
)
def test_references(repository: dict[str, str], name: str, url: str) -> None:
    found = reference(repository)
    assert (str(found), found.url) == (name, url)


@pytest.mark.parametrize(
    "ref", ["c:1", "charts/c:1", "r.io/", "r.io/C", "r.io/c:a/b", "r.io/c@sha256:1", "u@r.io/c", "r.io/../c"]
)
def test_what_is_no_reference(ref: str) -> None:
    with pytest.raises(RegistryError):
        reference({"ref": ref})


def test_the_layer_with_the_chart() -> None:
    layers = [{"mediaType": "x", "digest": DIGEST, "size": 1}, {"mediaType": LAYER, "digest": DIGEST, "size": 2}]
    assert chart_layer(json.dumps({"layers": layers}).encode()) == (DIGEST, 2)


@pytest.mark.parametrize("manifest", [b"{", b"[]", b'{"layers": [{"mediaType": "x"}]}'])
def test_manifests_without_a_chart(manifest: bytes) -> None:
    with pytest.raises(RegistryError):
        chart_layer(manifest)


def test_other_content_is_refused() -> None:
    with pytest.raises(RegistryError, match=DIGEST):
        check_digest(b"x", DIGEST)


def test_tokens_are_asked_for_over_tls() -> None:
    asked = 'Bearer realm="https://t.io/token",service="r.io",scope="repository:c:pull"'
    registry = "https://r.io/v2/c/manifests/1"
    assert token_url(asked, registry) == "https://t.io/token?service=r.io&scope=repository%3Ac%3Apull"
    assert token_url('Basic realm="x"', registry) == ""
    for realm in ("http://t.io/token", "http://127.0.0.1/token", "token", "https://[x"):
        with pytest.raises(RegistryError):
            token_url(f'Bearer realm="{realm}"', registry)
    assert token_url('Bearer realm="http://127.0.0.1:1/token"', "http://localhost:2/v2/c") == "http://127.0.0.1:1/token"


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("https://store.io/x?signature=s", "https://store.io/x?signature=s"),
        ("/v2/other", "https://r.io/v2/other"),
        ("http://r.io/v2/c", ""),
        ("http://127.0.0.1/x", ""),
        ("file:///etc/passwd", ""),
        ("https://[x", ""),
        ("", ""),
    ],
)
def test_only_what_has_tls_is_referred_to(location: str, target: str) -> None:
    if target:
        assert redirected("https://r.io/v2/c", location) == target
    else:
        with pytest.raises(RegistryError):
            redirected("https://r.io/v2/c", location)


def test_credentials_are_for_one_origin() -> None:
    assert is_same_origin("https://r.io/v2/a", "https://r.io/token")
    for other in ("http://r.io/v2/a", "https://r.io:444/v2/a", "https://r.io.evil.io/v2/a"):
        assert not is_same_origin("https://r.io/v2/a", other)


AUTH = base64.b64encode(b"me:secret").decode()


@pytest.mark.parametrize(
    ("auths", "found"),
    [
        ({"r.io": {"auth": AUTH}}, AUTH),
        ({"https://r.io/v2/": {"auth": AUTH}}, AUTH),
        ({"r.io": {"username": "me", "password": "secret"}}, AUTH),
        ({"r.io/charts": {"auth": AUTH}, "r.io": {"auth": "bm86"}}, AUTH),
        ({"r.io/chart": {"auth": AUTH}}, ""),
        ({"r.io:443": {"auth": AUTH}, "r.io.evil.io": {"auth": AUTH}}, ""),
        ({}, ""),
    ],
)
def test_credentials_of_a_registry(auths: dict[str, dict[str, str]], found: str) -> None:
    content = json.dumps({"auths": auths, "credsStore": "a-program"}).encode()
    assert authorization(content, "r.io", "charts/c") == (f"Basic {found}" if found else "")


@pytest.mark.parametrize("content", ['{"secret', '{"auths": {"r.io": {"auth": "secret"}}}', '{"auths": {"r.io": {}}}'])
def test_broken_credentials_are_not_quoted(content: str) -> None:
    with pytest.raises(ValueError, match=r"no JSON|r\.io has no auth") as raised:
        authorization(content.encode(), "r.io", "charts/c")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "is_known", "said"),
    [
        (404, True, "correct repository"),
        (401, False, "DOCKER_CONFIG"),
        (403, True, "do not suffice"),
        (500, True, "500"),
    ],
)
def test_what_a_refusal_asks_for(status: int, *, is_known: bool, said: str) -> None:
    assert said in refusal(status, "r.io", is_known=is_known)
