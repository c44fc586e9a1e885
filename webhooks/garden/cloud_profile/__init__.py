"""CloudProfiles: what an infrastructure offers, and who uses what of it."""
