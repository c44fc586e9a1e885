"""The status of a Project tells when something in it was used last."""
