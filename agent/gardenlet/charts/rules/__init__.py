"""What `helm` prints and where charts are: pure."""
