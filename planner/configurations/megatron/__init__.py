"""What forms whose settings are Megatron-LM's share: its flags, what follows from settings, its rules, the model."""
