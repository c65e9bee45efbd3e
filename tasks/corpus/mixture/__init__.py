"""How much of what goes into the training mixture."""
