"""Predictions against measured runs, and constants fitted to them."""
