"""Pure rules that several controllers share."""
