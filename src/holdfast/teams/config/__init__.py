"""The teams file `teams.yaml`: the roster, its parser and its editor."""
