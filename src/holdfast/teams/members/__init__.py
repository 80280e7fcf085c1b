"""Members of teams: Holdfast sessions, external agents and scripted ones."""
