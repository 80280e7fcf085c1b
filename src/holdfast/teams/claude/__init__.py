"""The claude program as a member: its own line protocol, our gate in front of its tools."""
