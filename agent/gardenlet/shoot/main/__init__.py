"""The controller `shoot`: makes, changes and removes the clusters of Shoots."""
