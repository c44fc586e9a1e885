"""Hibernates and wakes Shoots by the schedules that users give them."""
