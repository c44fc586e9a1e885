"""ShootStates: what a Shoot takes along to another Seed."""
