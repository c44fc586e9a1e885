"""Rules for gardenlets: `authorize` decides about requests, `restriction` about the objects they write."""
