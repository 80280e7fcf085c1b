"""Exit codes, the same for every command. docs/reference/exit-codes.md documents them."""

OK = 0
ERROR = 1
USAGE = 2
DENIED = 3
BUDGET = 4
WAITING = 5
NO_MODEL = 6
INTERRUPTED = 130

MEANINGS: dict[int, str] = {
    OK: "success",
    ERROR: "an error occurred; stderr has the reason",
    USAGE: "the command line, a policy or the configuration is invalid",
    DENIED: "the policy or a person denied a call that was needed",
    BUDGET: "a limit was reached; raise it and resume with --continue",
    WAITING: "a call waits for approval; answer it and resume with --continue",
    NO_MODEL: "no model is configured",
    INTERRUPTED: "stopped by Ctrl-C",
}
