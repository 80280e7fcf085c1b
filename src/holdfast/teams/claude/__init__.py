"""Members that are claude processes: the program's line protocol, with our gate before its tools."""
