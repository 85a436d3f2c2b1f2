"""Measurements that take too long for the tests, or that depend on the machine."""

import logging

# A package that we measure turns every library's logging on when it is imported.
logging.getLogger("httpx").setLevel(logging.WARNING)
