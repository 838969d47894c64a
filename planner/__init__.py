"""Plan the distributed training of large models on clusters of like or unlike accelerators."""

__version__ = "0.1.0"

__all__ = ["__version__"]
