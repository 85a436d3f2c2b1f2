"""Digests after their making: one whose sources have changed is rebuilt from what is current, or dropped."""
