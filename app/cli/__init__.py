"""The commands of `palimpsest`, one file each; `app/__main__.py` puts them together."""
