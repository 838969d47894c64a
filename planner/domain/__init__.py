"""Frozen values that every other part speaks in; no behaviour beyond what follows from their fields."""
