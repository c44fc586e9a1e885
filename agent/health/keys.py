"""Names that the health rules look for in objects."""

SKIP_HEALTH_CHECK = "resources.gardener.cloud/skip-health-check"

RESOURCES_APPLIED = "ResourcesApplied"
RESOURCES_HEALTHY = "ResourcesHealthy"
RESOURCES_PROGRESSING = "ResourcesProgressing"
