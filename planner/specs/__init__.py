"""Specifications: files to domain values and back, every problem told with its place."""
