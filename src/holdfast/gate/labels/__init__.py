"""Labels at the gate: what a session has read and wrote, and the level of each argument of a call."""
