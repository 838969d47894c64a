"""Foreign descriptions of models and clusters, one file each, to the planner's own."""
