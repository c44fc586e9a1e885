"""Encryption of etcd. Keys are in the file itself: a provider outside of the API server is not allowed."""

from gardener.tenant_files.reading import Fields, Versioned, decoded, demand_version, model


class _Key(Fields, frozen=True, kw_only=True):
    name: str
    secret: str


class _Keys(Fields, frozen=True, kw_only=True):
    keys: list[_Key]


class _Identity(Fields, frozen=True, kw_only=True):
    pass


class _Provider(Fields, frozen=True, kw_only=True):
    aescbc: _Keys | None = None
    aesgcm: _Keys | None = None
    secretbox: _Keys | None = None
    identity: _Identity | None = None


class _Entry(Fields, frozen=True, kw_only=True):
    resources: list[str]
    providers: list[_Provider]


class _Configuration(Versioned, frozen=True, kw_only=True):
    resources: list[_Entry]


def check_encryption(content: bytes | str) -> None:
    """Check an encryption configuration.

    Raises:
        UnusableFile: it is not allowed, or not readable.
    """
    found = model(decoded(content), _Configuration)
    demand_version(found, "apiserver.config.k8s.io/v1", kinds=("EncryptionConfiguration",))
