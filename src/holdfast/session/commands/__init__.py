"""The programs of a session: its command sandbox, the files hidden from it, and its network."""
