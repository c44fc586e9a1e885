"""Parameters of writes to an API server."""

from dataclasses import dataclass
from enum import StrEnum


class FieldValidation(StrEnum):
    """Treatment of unknown or duplicate fields by the API server."""

    WARN = "Warn"
    """Warn of them and leave them out."""
    STRICT = "Strict"
    """Refuse the object."""


@dataclass(frozen=True, slots=True)
class WriteMode:
    """Parameters of a write."""

    field_validation: FieldValidation | None = None
    """None: the API server's default."""
    dry_run: bool = False
    """Only compute the answer, with defaults and admission; store nothing."""
    field_manager: str = ""
    """Name recorded as the writer of the fields; by default the one in the user agent."""

    def parameters(self) -> dict[str, str]:
        chosen = {
            "dryRun": "All" if self.dry_run else "",
            "fieldManager": self.field_manager,
            "fieldValidation": self.field_validation or "",
        }
        return {name: value for name, value in chosen.items() if value}


CARRIED_OUT = WriteMode()
