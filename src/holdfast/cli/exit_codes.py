"""Exit codes, the same for every command. They are documented in docs/reference/exit-codes.md."""

OK = 0
ERROR = 1
USAGE = 2
DENIED = 3
BUDGET = 4
WAITING = 5
NO_MODEL = 6
INTERRUPTED = 130

MEANINGS: dict[int, str] = {
    OK: "it is done",
    ERROR: "it went wrong; the reason is on stderr",
    USAGE: "the command line, a policy or the configuration could not be understood",
    DENIED: "policy or a person said no to what was needed",
    BUDGET: "a limit was reached; raise it and go on with --continue",
    WAITING: "a call waits for a person; answer it and go on with --continue",
    NO_MODEL: "no model is configured",
    INTERRUPTED: "stopped by Ctrl-C",
}
