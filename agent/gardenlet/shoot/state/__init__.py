"""ShootStates: the data that restores a Shoot elsewhere if its seed is lost, regularly saved in the garden."""
