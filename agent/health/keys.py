"""Names that the health rules look for in objects."""

IGNORE = "resources.gardener.cloud/ignore"
SKIP_HEALTH_CHECK = "resources.gardener.cloud/skip-health-check"
ORIGIN = "resources.gardener.cloud/origin"
FINALIZER = "resources.gardener.cloud/gardener-resource-manager"

RESOURCES_APPLIED = "ResourcesApplied"
RESOURCES_HEALTHY = "ResourcesHealthy"
RESOURCES_PROGRESSING = "ResourcesProgressing"
