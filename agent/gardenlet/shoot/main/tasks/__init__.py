"""What the tasks of the flows do, by area; none of them knows what comes before or after it."""
