"""What starts the ranks of a plan on its nodes, one a file."""
