"""The health of a memory: what review, conflicts and upkeep leave to do, and damage that nothing should make."""
