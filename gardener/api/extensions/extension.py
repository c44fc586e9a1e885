"""Extension: any addition to a Shoot, a Seed or the garden that has no kind of its own."""

from gardener.api.extensions import EXTENSIONS
from gardener.api.extensions.common import definition

EXTENSION = definition(EXTENSIONS, "An addition that only its extension knows more about.", spec={})
