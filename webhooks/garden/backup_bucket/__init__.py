"""BackupBuckets: where etcds are backed up."""
