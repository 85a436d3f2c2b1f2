"""The embedded Postgres: one server per data directory, shared by every process that uses it."""

from app.embedded.cluster import Cluster, running, start, stop
from app.embedded.site import EmbeddedUnavailable

__all__ = ["Cluster", "EmbeddedUnavailable", "running", "start", "stop"]
