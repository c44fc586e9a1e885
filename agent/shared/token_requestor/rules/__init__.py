"""Pure rules: request, data and needs of a Secret."""
