"""Where a chart is in a registry, and what is believed of what registries say."""

import json

import pytest

from agent.gardenlet.charts.rules.registries import RegistryError, chart_layer, check_digest, reference, token_url

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
    assert token_url(asked) == "https://t.io/token?service=r.io&scope=repository%3Ac%3Apull"
    assert token_url('Basic realm="x"') == ""
    with pytest.raises(RegistryError):
        token_url('Bearer realm="http://t.io/token"')
