"""The routes of the web server, by subject. Each answers with the values that the command line prints as JSON."""
