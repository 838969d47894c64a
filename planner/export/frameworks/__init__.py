"""Training frameworks that plans are written for, one a file."""
