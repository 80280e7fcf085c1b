"""The sessions that are live in this process, and what other processes request of them."""
