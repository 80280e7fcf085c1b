"""The child process of a search: one request on stdin, the hits on stdout. Run as a file, so that it imports no packages."""

import json
import re
import resource
import sys

MEMORY_BYTES = 1 << 30


def main() -> None:
    """Write `[path, line, text]` for each hit, or the error in the expression."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    request = json.load(sys.stdin)
    try:
        matches = re.compile(request["query"]).search
    except (re.error, RecursionError, OverflowError) as error:
        json.dump(str(error), sys.stdout)
        return
    hits: list[list[object]] = []
    for path, text in request["texts"]:
        for number, line in enumerate(text.split("\n"), start=1):
            if len(hits) == request["limit"]:
                break
            line = line.rstrip("\r")
            if matches(line):
                hits.append([path, number, line[: request["width"]]])
    json.dump(hits, sys.stdout)


if __name__ == "__main__":
    main()
