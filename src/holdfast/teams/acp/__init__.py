"""Members that are agents of the Agent Client Protocol (ACP). The library is imported when one is woken."""
