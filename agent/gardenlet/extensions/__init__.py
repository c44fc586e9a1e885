"""Extensions of the own Seed: their installation, and the objects of backups and bastions that they serve."""
