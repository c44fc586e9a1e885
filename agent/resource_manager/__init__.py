"""What only the resource manager runs: one package a controller, and beside them what several of them need."""
