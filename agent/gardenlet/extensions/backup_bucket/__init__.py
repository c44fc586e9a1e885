"""BackupBuckets of the own Seed, mirrored as extension objects."""
