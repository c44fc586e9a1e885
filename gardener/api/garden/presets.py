"""OpenIDConnectPreset and ClusterOpenIDConnectPreset: OpenID Connect for new Shoots without settings of their own."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import CLUSTER_OPEN_ID_CONNECT_PRESETS, OPEN_ID_CONNECT_PRESETS
from gardener.api.garden.common import label_selector
from gardener.api.schema import FORBIDDEN, Schema, array, integer, mapping, rule, string, struct

_FORBIDDEN_KEYS = (
    *("idp-issuer-url", "client-id", "client-secret", "idp-certificate-authority", "idp-certificate-authority-data"),
    *("id-token", "refresh-token"),
)

_TEXT: Schema = {"type": "string", "minLength": 1}

_SERVER = struct(
    "Settings of the API server.",
    {
        "issuerURL*": string("URL of the provider; https.", pattern="^https://", at_most=2048),
        "clientID*": string("The audience that a token must have.", at_least=1),
        "caBundle": string(
            "Certificates (PEM) of authorities that may have signed the certificate of the provider.", at_least=1
        ),
        "groupsClaim": string("Claim of the token with the groups of the user.", at_least=1),
        "groupsPrefix": string("Prefix of each group.", at_least=1),
        "requiredClaims": mapping("Claims that a token must have, with the value of each.", _TEXT),
        "signingAlgs": array(
            "Algorithms of signatures that are accepted. Default: RS256.",
            _TEXT,
            default=["RS256"],
            at_most=16,
        ),
        "usernameClaim": string(
            "Claim of the token with the name of the user. Default: sub.", default="sub", at_least=1
        ),
        "usernamePrefix": string("Prefix of the user name.", at_least=1),
    },
)

_CLIENT = struct(
    "Settings with which kubectl gets a token.",
    {
        "secret": string("Secret of the client at the provider.", at_least=1),
        "extraConfig": {
            **mapping(
                "Additional settings of kubectl's plugin, by name; not those that have a field or are secret.",
                _TEXT,
                at_most=64,
            ),
            "x-kubernetes-validations": [
                rule(
                    f"self.all(key, !(key in {list(_FORBIDDEN_KEYS)}))",
                    f"may not have the keys {', '.join(_FORBIDDEN_KEYS)}",
                    reason=FORBIDDEN,
                )
            ],
        },
    },
)


def _fields(**more: Schema) -> dict[str, Schema]:
    return {
        "spec*": struct(
            "Settings for new Shoots.",
            {
                "server*": _SERVER,
                "client": _CLIENT,
                "shootSelector": label_selector("Labels of the Shoots. Default: all.", default={}),
                **more,
                "weight*": integer(
                    "Weight: among matching presets, the greatest weight wins, then the greatest name.",
                    at_least=1,
                    at_most=100,
                ),
            },
        )
    }


_COLUMNS = (Column("Issuer", ".spec.server.issuerURL"), Column("Weight", ".spec.weight", "integer"), AGE)

OPENID_CONNECT_PRESET = Definition(
    resource=OPEN_ID_CONNECT_PRESETS,
    description="OpenID Connect for new Shoots of the namespace that have no settings for it.",
    fields=_fields(),
    columns=_COLUMNS,
)
CLUSTER_OPENID_CONNECT_PRESET = Definition(
    resource=CLUSTER_OPEN_ID_CONNECT_PRESETS,
    description="OpenID Connect for new Shoots of some projects that have no settings for it, and for which no"
    " OpenIDConnectPreset fits.",
    fields=_fields(projectSelector=label_selector("Labels of the Projects. Default: all.", default={})),
    columns=_COLUMNS,
)
