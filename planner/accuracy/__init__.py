"""Measured runs against predictions: how far off, how well ranked, how often wrong about what fits."""
