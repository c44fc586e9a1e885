"""Pure: from what was found in seed and Shoot to conditions, constraints and corrections."""
