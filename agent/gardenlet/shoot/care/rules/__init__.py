"""Pure rules: from observations in seed and Shoot to conditions, constraints and corrections."""
