"""The configuration of the gardenlet: defaults, and all violations of a file together."""

import pytest

from config.gardenlet import decode
from config.gardenlet.schema import GardenletConfiguration
from process.configuration.component import check
from process.configuration.errors import ConfigError

SEED = """
seedConfig:
  metadata: {name: a}
  spec:
    provider: {type: local, region: local}
    networks: {pods: 10.2.0.0/16, services: 10.3.0.0/16}
"""


def found(document: str) -> list[str]:
    """The errors about a configuration, each as it is printed."""
    try:
        check(decode(document).config)
    except ConfigError as error:
        return [str(each) for each in error.errors]
    return []


def test_defaults_are_those_of_the_release() -> None:
    config: GardenletConfiguration = decode(SEED).config
    assert found(SEED) == []
    assert config.seed_name == "a"
    assert (config.server.health_probes.port, config.server.metrics.port) == (2728, 2729)
    assert (config.garden_client_connection.qps, config.garden_client_connection.burst) == (50.0, 100)
    assert config.leader_election.resource_name == "gardenlet-leader-election"
    assert config.controllers.seed.patience == 20
    assert config.has_feature("VPAForETCD")
    assert not config.has_feature("HVPA")


@pytest.mark.parametrize(
    ("document", "errors"),
    [
        ("{}", ["seedConfig: Required value: seed config must be set"]),
        (
            (
                f"{SEED}gardenClientConnection: {{kubeconfigValidity: {{validity: 5m, autoRotationJitterPercentageMin: 0,"
                " autoRotationJitterPercentageMax: 101}}"
            ),
            [
                (
                    "gardenClientConnection.kubeconfigValidity.validity: Invalid value: 5m0s: "
                    "validity must be at least 10m"
                ),
                (
                    "gardenClientConnection.kubeconfigValidity.autoRotationJitterPercentageMin: Invalid value: 0: "
                    "minimum percentage must be at least 1"
                ),
                (
                    "gardenClientConnection.kubeconfigValidity.autoRotationJitterPercentageMax: Invalid value: 101: "
                    "maximum percentage must be at most 100"
                ),
            ],
        ),
        (
            f"{SEED}gardenClientConnection: {{kubeconfigValidity: {{autoRotationJitterPercentageMin: 90}}}}",
            [
                (
                    "gardenClientConnection.kubeconfigValidity.autoRotationJitterPercentageMin: Invalid value: 90: "
                    "minimum percentage must be less than maximum percentage"
                )
            ],
        ),
        (f"{SEED}featureGates: {{Nonsense: true}}", ["featureGates: Forbidden: unrecognized feature gate: Nonsense"]),
        (
            f"{SEED}resources: {{capacity: {{shoots: 1}}, reserved: {{shoots: 2, x: 1}}}}",
            [
                "resources.reserved.shoots: Invalid value: 2: reserved must be lower or equal to capacity",
                "resources.reserved.x: Invalid value: 1: reserved without capacity",
            ],
        ),
        (
            (
                f"{SEED}controllers: {{backupEntry: {{deletionGracePeriodShootPurposes: [production, other]}},"
                " shoot: {dnsEntryTTLSeconds: 3, syncPeriod: -1s}}"
            ),
            [
                (
                    'controllers.backupEntry.deletionGracePeriodShootPurposes[1]: Unsupported value: "other": supported '
                    'values: "evaluation", "testing", "development", "infrastructure", "production"'
                ),
                (
                    "controllers.backupEntry.deletionGracePeriodShootPurposes: Forbidden: must specify grace period hours "
                    "> 0 when specifying purposes"
                ),
                "controllers.shoot.syncPeriod: Invalid value: -1s: must be greater than or equal to 0",
                "controllers.shoot.dnsEntryTTLSeconds: Invalid value: 3: must be within [30,600]",
            ],
        ),
        (
            SEED.replace("10.3.0.0/16", "10.2.1.0/24").replace("type: local", "type: ''"),
            [
                "seedConfig.spec.provider.type: Required value: must provide it",
                (
                    'seedConfig.spec.networks.services: Invalid value: "10.2.1.0/24": must not overlap with '
                    '"seedConfig.spec.networks.pods" ("10.2.0.0/16")'
                ),
            ],
        ),
        (
            f"{SEED}nodeToleration: {{defaultNotReadyTolerationSeconds: -1}}",
            [
                (
                    "nodeToleration.defaultNotReadyTolerationSeconds: Invalid value: -1: "
                    "must be greater than or equal to 0"
                )
            ],
        ),
        (
            f"{SEED}sni: {{ingress: {{serviceExternalIP: 300.1.1.1}}}}",
            ['sni.ingress.serviceExternalIP: Invalid value: "300.1.1.1": external service ip is invalid'],
        ),
    ],
)
def test_all_violations_of_a_file_are_reported(document: str, errors: list[str]) -> None:
    assert found(document) == errors


@pytest.mark.parametrize(
    ("section", "reported"),
    [
        ("logging: {enabled: true}", ["logging.enabled: ignored"]),
        ("logging: {enabled: false}", []),
        (
            "controllers: {seedCare: {conditionThresholds: [{type: EveryNodeReady}, {type: ExtensionsReady}]}}",
            ["seedCare.conditionThresholds: EveryNodeReady is ignored"],
        ),
        ("controllers: {shootCare: {conditionThresholds: [{type: EveryNodeReady}]}}", []),
    ],
)
def test_what_has_no_effect_is_a_warning(section: str, reported: list[str]) -> None:
    warnings = decode(f"{SEED}{section}").warnings
    assert len(warnings) == len(reported)
    assert all(each in warning for each, warning in zip(reported, warnings, strict=True))


def test_unknown_fields_are_warnings_that_name_them() -> None:
    assert decode(f"{SEED}newer: 1").warnings == ("newer: unknown field, ignored",)
