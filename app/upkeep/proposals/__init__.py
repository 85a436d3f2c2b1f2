"""What a job proposes: kept with its cost and its verdict, and, where it waits, decided by a person."""
