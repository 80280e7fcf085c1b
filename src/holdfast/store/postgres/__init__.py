"""The PostgreSQL store: the journals of many machines in one database. Needs the extra `scale`."""
