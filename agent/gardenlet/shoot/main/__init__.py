"""The controller `shoot`: creates, changes and deletes the clusters of Shoots."""
