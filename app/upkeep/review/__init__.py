"""Review: retirements are tested again, and those that do not stand are listed, or taken back."""
