"""Random documents and requests from a small vocabulary, so that rules and calls meet often."""

import random

import msgspec

from holdfast.core import (
    ArgumentRoles,
    Call,
    CallFacts,
    CommandTarget,
    Condition,
    ConditionalRoles,
    Json,
    JsonObject,
    Location,
    NameTarget,
    PathTarget,
    Role,
    Target,
    Tool,
    UrlTarget,
    Verdict,
    call_id,
)
from holdfast.policy import LexicalPaths, PolicyDocument, Request, Rule, canonical_url, targets_of
from holdfast.policy.document import ArgumentTest, CommandTest, HostTest, NameTest, PathTest

OPERATIONS = [
    "fs.read", "fs.move", "fs.edit", "net.get", "hub.branch", "hub.share", "hub.push", "mail.send", "fs.ping",
    "memory.note", "eval", "shell.run", "time.convert",
]  # fmt: skip
PATTERNS = ["*", "fs.*", "*.read", "net.*", "hub.*", "shell.*", "time.*", *OPERATIONS]
ARGUMENT_TESTS = [
    ArgumentTest(argument="size", at_most=10),
    ArgumentTest(argument="size", at_least=6, at_most=11),
    ArgumentTest(argument="size", one_of=(10, None)),
    ArgumentTest(argument="dry", one_of=(True, "x")),
    ArgumentTest(argument="zone", one_of=("Europe/Rome", "utc")),
    ArgumentTest(argument="zone", one_of=("Europe/Rome",)),
    ArgumentTest(argument="zone", prefixes=("Europe/",)),
    ArgumentTest(argument="zone", prefixes=("eur", "U"), longest=10),
    ArgumentTest(argument="zone", patterns=("[A-Z]+",)),
    ArgumentTest(argument="zone", patterns=("(Europe|Asia)/[A-Za-z]{4,5}", "u.c")),
    ArgumentTest(argument="zone", globs=("Europe/*",)),
    ArgumentTest(argument="zone", shortest=4),
    ArgumentTest(argument="options.mode", one_of=("fast", None)),
    ArgumentTest(argument="options.steps[].name", one_of=("a", "b")),
    ArgumentTest(argument="options.steps[].name", patterns=("a|[0-9]+",)),
    ArgumentTest(argument="options.steps", longest=1),
    ArgumentTest(argument="options.steps[]", shortest=1),
]
PREFIXES: list[tuple[tuple[str, ...], ...]] = [
    (("git",),), (("git",), ("push",)), (("git",), ("push", "fetch")), (("npm", "yarn"), ("publish",)), (("make",),),
    (("./run",),), (("git",), ("push",), ("--force",)), (("git",), ("--bare",)), (("Make",),), (("git",), ("stash",)),
]  # fmt: skip
COMMANDS = [
    "git push", "git -C sub push origin", "git stash push", "/opt/git push", "/usr/bin/git log", "GIT push", "make", "./run all",
    "npm publish", "npm --tag x publish", "yarn npm publish", "git push origin --force", "git --bare fetch", "echo git push",
    "git -c a=b -v push",
]  # fmt: skip
SCRIPTS = [
    *COMMANDS,
    "make && git push",
    "make; npm publish",
    "git push $x",
    "sudo git push",
    "make `git push`",
    "for x in *; do make; done",
]
ZONES: list[Json] = [
    "Europe/Rome",
    "EUROPE/ROME",
    "UTC",
    "utc",
    "Asia/Tokyo",
    "",
    "/x",
    "../x",
    7,
    None,
    ["UTC"],
]
NAMED: list[Json] = ["a", "A", "b", "12", 3, None]
VERDICTS: list[Verdict] = ["allow", "allow", "stage", "stage", "escalate", "escalate", "deny"]
GLOBS = [
    "**",
    "**/*",
    "src/**",
    "src/*.py",
    "*.py",
    "secrets",
    ".git/**",
    "src/**/test",
    "SRC/a",
    ".",
    "?",
    "a/**/b",
    "[as]*",
    "src/[!a]",
]
INSIDE = [
    "a.py",
    "src/a",
    "src/a.py",
    "src/x/test",
    ".git/config",
    "secrets/k",
    "Secrets",
    ".",
    "a/b",
    "a/.c/b",
    "src",
]
OUTSIDE = ["/etc/passwd", "/data/x", "/data", "/database", "/"]
HOSTS = [
    "*", "example.com", "*.example.com", "localhost", "10.0.0.1", "example.com/a", "example.com:443", "::1", "group:near",
]  # fmt: skip
URLS = [
    "https://example.com/", "https://api.example.com/a/b", "https://evilexample.com/", "http://localhost/",
    "http://10.0.0.1/", "http://127.0.0.1.nip.io/", "not a url", "https://example.com/ab", "ftp://example.com/",
    "https://example.com/%61/b", "https://example.com/A", "https://example.com/a%2fb", "https://example.com:8443/a",
    "http://[::1]/", "http://example.com:443/",
]  # fmt: skip
NAMES = ["acme", "ACME", "other", "*", "a@example.com", "A@EXAMPLE.COM", "a@b@example.com", "@example.com"]
ALLOWED_NAMES = ["acme", "ACME", "other", "*", "*@example.com", "a@example.com"]
ROLES: dict[str, dict[str, tuple[Role, ...]]] = {
    "fs.read": {"path": ("read-path",)},
    "fs.move": {"source": ("read-path", "delete-path"), "destination": ("write-path",)},
    "net.get": {"url": ("fetch-url",), "size": ("none",)},
    "hub.branch": {"owner": ("github-owner",), "repo": ("github-repo",), "branch": ("branch-name",)},
    "hub.share": {"level": ("share-permission",)},
    "hub.push": {"folder": ("read-path",), "remote": ("git-remote-url",), "branch": ("branch-name",)},
    "mail.send": {
        "files": ("read-path",),
        "to": ("email-address",),
        "level": ("share-permission",),
        "body": ("email-body",),
    },
    "fs.edit": {"dry": ("none",), "path": ("read-path", "write-path"), "size": ("none",)},
    "fs.ping": {},
    "memory.note": {"text": ("none",)},
    "eval": {},
    "shell.run": {"argv": ("command",), "script": ("command",)},
    "time.convert": {"zone": ("none",), "options": ("none",)},
}
TOOLS = {
    name: Tool(name=name, roles={key: ArgumentRoles(default=roles) for key, roles in arguments.items()})
    for name, arguments in ROLES.items()
}
TOOLS["fs.edit"] = Tool(
    name="fs.edit",
    parameters={"properties": {"path": {}, "dry": {}, "size": {"default": 10}}},
    roles={
        "path": ArgumentRoles(
            default=("read-path", "write-path"),
            when=(ConditionalRoles(condition=Condition(argument="dry", equals=True), roles=("read-path",)),),
        ),
        "dry": ArgumentRoles(default=("none",)),
        "size": ArgumentRoles(default=("none",)),
    },
)
PATH_ROLES: tuple[Role, ...] = ("read-path", "write-path", "delete-path")
URL_ROLES: tuple[Role, ...] = ("fetch-url", "git-remote-url")
NAME_ROLES: tuple[Role, ...] = (
    "github-owner", "github-repo", "branch-name", "share-permission", "email-address",
)  # fmt: skip


def some(rng: random.Random, values: list[str], most: int = 3) -> tuple[str, ...]:
    return tuple(rng.sample(values, rng.randint(1, min(most, len(values)))))


def random_rule(rng: random.Random, number: int) -> Rule:
    roles: tuple[Role, ...] = ()
    paths = hosts = None
    names: tuple[NameTest, ...] = ()
    operations = some(rng, PATTERNS, 2)
    is_shell = any(one.startswith("shell") for one in operations)
    kinds = {rng.randrange(7)} | ({rng.randrange(7)} if rng.random() < 0.3 else set())
    if is_shell and rng.random() < 0.7:
        kinds = {7}
    if kinds & {0, 1}:
        chosen = tuple(rng.sample(PATH_ROLES, rng.randint(1, 3)))
        paths = PathTest(
            roles=chosen,
            globs=some(rng, GLOBS) if rng.random() < 0.7 else (),
            folders=("/data",) if rng.random() < 0.3 else (),
            inside=rng.random() < 0.2,
            outside=rng.random() < 0.2,
        )
    if 2 in kinds:
        hosts = HostTest(roles=rng.choice((URL_ROLES, URL_ROLES[:1])), patterns=some(rng, HOSTS, 2))
    if 3 in kinds:
        tested = rng.sample(NAME_ROLES, rng.randint(1, 2))
        names = tuple(NameTest(roles=(role,), names=some(rng, ALLOWED_NAMES, 2)) for role in tested)
    if 4 in kinds or rng.random() < 0.1:
        roles = tuple(rng.sample((*PATH_ROLES, *URL_ROLES, *NAME_ROLES), rng.randint(1, 2)))
    return Rule(
        name=f"r{number}",
        verdict=rng.choice(VERDICTS),
        operations=operations,
        roles=roles,
        paths=paths,
        hosts=hosts,
        names=names,
        commands=CommandTest(prefixes=tuple(rng.sample(PREFIXES, rng.randint(1, 2)))) if 7 in kinds else None,
        tiers=rng.choice([("full",), ("copy",), ("full", "copy")]) if rng.random() < 0.1 else (),
        arguments=random_argument_tests(rng, operations),
        takes_no_arguments=rng.random() < 0.05,
    )


def random_argument_tests(rng: random.Random, operations: tuple[str, ...]) -> tuple[ArgumentTest, ...]:
    chance = 0.8 if any(one.startswith("time") for one in operations) else 0.1
    if rng.random() > chance:
        return ()
    return tuple(rng.sample(ARGUMENT_TESTS, rng.choice((1, 1, 2))))


def random_rule_about_programs(rng: random.Random, number: int) -> Rule:
    """A rule about the commands of scripts, which have several of them."""
    return Rule(
        name=f"r{number}",
        verdict=rng.choice(VERDICTS),
        operations=("shell.run",),
        commands=CommandTest(prefixes=tuple(rng.sample(PREFIXES, rng.randint(1, 3))))
        if rng.random() < 0.8
        else None,
        tiers=("full",) if rng.random() < 0.2 else (),
    )


def random_rule_about_zones(rng: random.Random, number: int) -> Rule:
    """A rule about arguments that refer to nothing, some of them with several values."""
    return Rule(
        name=f"r{number}",
        verdict=rng.choice(VERDICTS),
        operations=("time.convert",),
        arguments=tuple(rng.sample(ARGUMENT_TESTS[4:], rng.randint(1, 2))),
    )


def random_rule_about_mail(rng: random.Random, number: int) -> Rule:
    """A rule that tests what a letter brings beside what it is about: its files, whom it goes to, how it is shared."""
    tested: list[Role] = ["email-address", "share-permission"]
    names = tuple(NameTest(roles=(role,), names=some(rng, ALLOWED_NAMES, 2)) for role in tested)
    return Rule(
        name=f"r{number}",
        verdict=rng.choice(VERDICTS),
        operations=("mail.send",),
        roles=rng.choice([(), ("read-path",), ("email-address",)]),
        paths=PathTest(roles=("read-path",), globs=some(rng, GLOBS)) if rng.random() < 0.5 else None,
        names=rng.choice([(), names[:1], names[1:], names]),
    )


def random_rule_about_moves(rng: random.Random, number: int) -> Rule:
    """A rule about what is read, written or deleted, often something within a folder that is moved."""
    return Rule(
        name=f"r{number}",
        verdict=rng.choice(VERDICTS),
        operations=("fs.move",),
        roles=rng.choice([(), (), ("write-path",)]),
        paths=PathTest(
            roles=tuple(rng.sample(PATH_ROLES, rng.randint(1, 3))),
            globs=some(rng, GLOBS, 2),
            folders=("/data/x",) if rng.random() < 0.3 else (),
            outside=rng.random() < 0.3,
        ),
    )


def random_document(rng: random.Random) -> PolicyDocument:
    rules = [random_rule(rng, number) for number in range(rng.randint(0, 11))]
    return PolicyDocument(
        name="random",
        allowed_operations=some(rng, PATTERNS, 6) if rng.random() < 0.2 else None,
        denied_operations=some(rng, PATTERNS[1:], 1) if rng.random() < 0.1 else (),
        trusted_groups=("memory",) if rng.random() < 0.3 else (),
        host_gates={"net": rng.choice(((), some(rng, HOSTS, 2), some(rng, HOSTS, 2)))}
        if rng.random() < 0.3
        else {},
        rules=tuple(rules),
    )


def random_location(rng: random.Random) -> Location:
    if rng.random() < 0.03:
        return Location(given="x", problem="broken")
    protected = "vault" if rng.random() < 0.03 else None
    if rng.random() < 0.7:
        inside = rng.choice(INSIDE)
        real = "/w" if inside == "." else f"/w/{inside}"
        return Location(given=inside, real=real, inside=inside, protected=protected)
    outside = rng.choice(OUTSIDE)
    return Location(given=outside, real=outside, protected=protected)


def random_request(rng: random.Random, operation: str = "") -> Request:
    operation = operation or rng.choice(OPERATIONS)
    arguments: JsonObject = {}
    targets: list[Target] = []
    if operation == "shell.run":
        return random_command(rng)
    if operation == "time.convert":
        return random_conversion(rng)
    for name, roles in ROLES[operation].items():
        if rng.random() < 0.15:
            continue
        arguments[name] = rng.choice([True, 1, "x"]) if name == "dry" else "given"
        for _ in range(rng.choice((1, 1, 1, 2))):
            location, url, value = random_location(rng), rng.choice(URLS), rng.choice(NAMES)
            for role in roles:
                if role == "write-path" and arguments.get("dry") is True:
                    continue
                if role in PATH_ROLES:
                    targets.append(PathTarget(role=role, argument=name, location=location))
                elif role in URL_ROLES:
                    targets.append(canonical_url(url, role=role, argument=name))
                elif role != "none":
                    targets.append(NameTarget(role=role, argument=name, value=value))
        if name == "size":
            arguments[name] = rng.choice([5, 10, 11])
    tool = None if rng.random() < 0.03 else TOOLS[operation]
    if rng.random() < 0.02:
        tool = Tool(name=operation)
    call = Call(id=call_id(1, 1), operation=operation, arguments=arguments)
    near: dict[str, tuple[str, ...]] = {
        target.host: ("near",) for target in targets if isinstance(target, UrlTarget) and len(target.host) % 2
    }
    return Request(call=call, tool=tool, targets=tuple(targets), facts=CallFacts(host_groups=near))


def random_command(rng: random.Random) -> Request:
    arguments: JsonObject = {}
    if rng.random() < 0.4:
        arguments["argv"] = list(rng.choice(COMMANDS).split())
    else:
        arguments["script"] = rng.choice(SCRIPTS)
    tool = TOOLS["shell.run"]
    targets = targets_of(tool, arguments, LexicalPaths())
    if rng.random() < 0.1:
        targets = tuple(
            msgspec.structs.replace(one, sets_environment=True) if isinstance(one, CommandTarget) else one
            for one in targets
        )
    call = Call(id=call_id(1, 1), operation="shell.run", arguments=arguments)
    facts = CallFacts(tier=rng.choice(("full", "full", "copy", None)))
    return Request(call=call, tool=tool, targets=targets, facts=facts)


def random_conversion(rng: random.Random) -> Request:
    steps: list[Json] = [{"name": rng.choice(NAMED)} for _ in range(rng.randrange(3))]
    options: JsonObject = {"mode": rng.choice(["fast", "FAST", "slow", 1]), "steps": steps}
    arguments: JsonObject = {"zone": rng.choice(ZONES)}
    if rng.random() < 0.7:
        arguments["options"] = options
    call = Call(id=call_id(1, 1), operation="time.convert", arguments=arguments)
    return Request(call=call, tool=TOOLS["time.convert"])
