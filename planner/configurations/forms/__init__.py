"""Kinds of launch configurations, one a package."""
