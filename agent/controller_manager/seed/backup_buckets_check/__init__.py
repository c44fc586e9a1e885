"""The condition BackupBucketsReady of Seeds says how their BackupBuckets are."""
