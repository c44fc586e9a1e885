"""Structured authentication: providers with accepted tokens, and anonymous requests."""

from gardener.tenant_files.reading import (
    Fields,
    Versioned,
    decoded,
    demand_certificates,
    demand_url,
    demand_version,
    model,
    plain,
    written,
)

KEY = "config.yaml"
"""Key of the ConfigMap."""
_VERSIONS = tuple(f"apiserver.config.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1"))


class _Issuer(Fields, frozen=True, kw_only=True):
    url: str
    discoveryURL: str | None = None
    certificateAuthority: str | None = None
    audiences: list[str] | None = None
    audienceMatchPolicy: str | None = None
    egressSelectorType: str | None = None


class _ClaimRule(Fields, frozen=True, kw_only=True):
    claim: str | None = None
    requiredValue: str | None = None
    expression: str | None = None
    message: str | None = None


class _Prefixed(Fields, frozen=True, kw_only=True):
    claim: str | None = None
    prefix: str | None = None
    expression: str | None = None


class _Claim(Fields, frozen=True, kw_only=True):
    claim: str | None = None
    expression: str | None = None


class _Extra(Fields, frozen=True, kw_only=True):
    key: str
    valueExpression: str


class _Mappings(Fields, frozen=True, kw_only=True):
    username: _Prefixed | None = None
    groups: _Prefixed | None = None
    uid: _Claim | None = None
    extra: list[_Extra] | None = None


class _UserRule(Fields, frozen=True, kw_only=True):
    expression: str
    message: str | None = None


class _Authenticator(Fields, frozen=True, kw_only=True):
    issuer: _Issuer
    claimValidationRules: list[_ClaimRule] | None = None
    claimMappings: _Mappings | None = None
    userValidationRules: list[_UserRule] | None = None


class _Condition(Fields, frozen=True, kw_only=True):
    path: str


class _Anonymous(Fields, frozen=True, kw_only=True):
    enabled: bool
    conditions: list[_Condition] | None = None


class _Configuration(Versioned, frozen=True, kw_only=True):
    jwt: list[_Authenticator] | None = None
    anonymous: _Anonymous | None = None


def authentication(content: bytes | str) -> str:
    """The configuration, written from the allowed fields.

    Raises:
        UnusableFile: the configuration is not allowed, or not readable.
    """
    found = model(decoded(content), _Configuration)
    demand_version(found, *_VERSIONS, kinds=("AuthenticationConfiguration",))
    for index, each in enumerate(found.jwt or ()):
        where = f"jwt[{index}].issuer"
        demand_url(each.issuer.url, f"{where}.url")
        if each.issuer.discoveryURL:
            demand_url(each.issuer.discoveryURL, f"{where}.discoveryURL")
        if each.issuer.certificateAuthority:
            demand_certificates(each.issuer.certificateAuthority, f"{where}.certificateAuthority")
    return written(plain(found))
