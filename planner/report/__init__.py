"""What the user reads: values of the domain to text and to stable JSON. Pure, but for the one writer in `terminal`."""
