"""The embedded store: journals, index and leases in one SQLite database, with one writer thread per process."""
