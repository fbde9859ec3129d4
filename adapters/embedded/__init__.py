"""The embedded engine: no server, one process. SQLite, memory and a directory."""
