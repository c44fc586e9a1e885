"""Types of conditions, and what is said in them by more than one program."""

# --- of ManagedResources
RESOURCES_APPLIED = "ResourcesApplied"
RESOURCES_HEALTHY = "ResourcesHealthy"
RESOURCES_PROGRESSING = "ResourcesProgressing"

IN_PROGRESS = "Progressing"
"""A status of its own beside True, False and Unknown."""
