"""Measured runs of one machine to few constants of it, which a cluster file then holds."""
