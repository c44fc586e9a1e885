"""What gardenlets may do: `authorize` decides about requests, `restriction` about what they write."""
