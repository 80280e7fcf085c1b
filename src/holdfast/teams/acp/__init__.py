"""Any agent that speaks the Agent Client Protocol, as a member. The library loads when one is woken."""
