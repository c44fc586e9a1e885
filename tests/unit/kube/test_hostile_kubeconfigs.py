"""Kubeconfigs by which somebody wants to crash the process, fill its memory, or read by its errors what is in them."""

import time
from pathlib import Path

import pytest
import yaml

from kube.connection import TokenFile, load_kubeconfig
from kube.kubeconfig import ConfigurationError, read_kubeconfig

HUSH = "hush-hush-1234"


def written(directory: Path, content: str | bytes) -> Path:
    path = directory / "kubeconfig"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[" * 200_000 + "]" * 200_000, "nested deeper than 64 levels"),  # the parser would overflow the stack
        ("[{a: " * 50_000, "nested deeper than 64 levels"),
        ("".join(f"{' ' * level}a:\n" for level in range(100)), "nested deeper than 64 levels"),
        ("a: &a [x]\nb: [*a, *a]", "aliases are not supported"),
        ("&a {<<: *a}", "aliases are not supported"),
        (b"a: b\n" * 1_000_000, "larger than 4194304 bytes"),
        ("a: !!timestamp x", "not readable as YAML"),
        ("a: !!python/object/apply:os.system [id]", r"not readable as YAML \(line 1\)"),
        (b"a: \xff", "not readable as YAML"),
    ],
)
def test_what_would_crash_or_fill_the_process_is_refused(content: str | bytes, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"cannot read the kubeconfig .*{reason}"):
        load_kubeconfig(written(tmp_path, content))


@pytest.mark.parametrize(
    "content",
    [
        f"users: *{HUSH}",
        f"password: !!int {HUSH}",
        f"password: !!float {HUSH}",
        f"password: !!bool {HUSH}",
        f"password: !{HUSH} x",
        f'password: "\\q{HUSH}"',
        f"{HUSH}: [",
        HUSH,
    ],
)
@pytest.mark.parametrize("trusted", [False, True])
def test_no_error_quotes_it(content: str, trusted: bool, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load_kubeconfig(written(tmp_path, content), trusted=trusted)
    assert HUSH not in str(refused.value)


def test_who_trusts_it_may_use_aliases(tmp_path: Path) -> None:
    assert read_kubeconfig(written(tmp_path, "a: &a [x]\nb: *a"), trusted=True) == {"a": ["x"], "b": ["x"]}


def test_a_name_for_tls_is_text_whatever_it_was(tmp_path: Path) -> None:
    document = {
        "clusters": [{"name": "c", "cluster": {"server": "https://host", "tls-server-name": 5}}],
        "contexts": [{"name": "x", "context": {"cluster": "c"}}],
        "current-context": "x",
    }
    assert load_kubeconfig(written(tmp_path, yaml.safe_dump(document))).tls_server_name == "5"


async def test_a_token_file_without_end_is_not_read_to_its_end() -> None:
    began = time.monotonic()
    with pytest.raises(ConfigurationError, match="larger than"):
        await TokenFile(Path("/dev/zero")).authorization()
    assert time.monotonic() - began < 60
