"""How an API server is asked to write an object."""

from dataclasses import dataclass
from enum import StrEnum


class FieldValidation(StrEnum):
    """What the API server does about fields that it does not know, or that occur twice."""

    WARN = "Warn"
    """It warns of them and leaves them out."""
    STRICT = "Strict"
    """It refuses the object."""


@dataclass(frozen=True, slots=True)
class WriteMode:
    """How an object is written."""

    field_validation: FieldValidation | None = None
    """None: as the API server does by itself."""
    dry_run: bool = False
    """Only the answer is made, with defaults and admission; nothing is stored."""
    field_manager: str = ""
    """Who is recorded as having set the fields; by default whom the user agent names."""

    def parameters(self) -> dict[str, str]:
        chosen = {
            "dryRun": "All" if self.dry_run else "",
            "fieldManager": self.field_manager,
            "fieldValidation": self.field_validation or "",
        }
        return {name: value for name, value in chosen.items() if value}


CARRIED_OUT = WriteMode()
