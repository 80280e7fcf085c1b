"""Administration of MCP servers, behind `holdfast mcp`: list, diff, trust, annotate and check them."""

import argparse
import codecs
import os
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import get_args

import msgspec

from holdfast.cli import exit_codes
from holdfast.cli.prompts import confirm
from holdfast.cli.redaction import known_secrets
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.progress import ProgressIndicator
from holdfast.config import load_config
from holdfast.core import ArgumentRoles, Role, Tool, UserMessage, escape_invisible, pluralize
from holdfast.core.errors import HoldfastError, InvalidInput, ModelError
from holdfast.mcp import (
    Annotations,
    McpFiles,
    McpToolset,
    Pins,
    RoleSuggestion,
    ServerSpec,
    ToolDefinition,
    ToolRoles,
    health_problems,
    load_servers,
    refine_with_model,
    resembled_server,
    secrets_of,
    suggest_levels,
    suggest_roles,
)
from holdfast.models import key_variables
from holdfast.store import Home


class McpAdmin:
    """The subcommands of `holdfast mcp` for one data directory."""

    def __init__(self, home: Home, console: Console, *, pins: Pins | None = None) -> None:
        self._home = home
        self._console = console
        self._files = McpFiles(home.root, pins=pins)
        self._pins = self._files.pins

    def list_servers(self, *, as_json: bool) -> int:
        """Print the configured servers and their pinned tools. Starts no server."""
        specs, annotations = self._files.servers(), self._files.annotations()
        redact = known_secrets(self._home.root)
        if as_json:
            shown = [{"server": spec, "pins": self._pins.server(spec.name)} for spec in specs]
            self._console.json(msgspec.Raw(redact(msgspec.json.encode(shown))))
            return exit_codes.OK
        if not specs:
            self._console.say(f"no servers in {self._files.servers_file}")
            self._console.say("hint: holdfast mcp add NAME -- COMMAND")
        for spec in specs:
            known = self._pins.server(spec.name)
            state = (
                "never started"
                if known is None
                else f"{pluralize(len(known.tools), 'tool')}, {len(known.held)} to review"
                + ("" if known.is_reviewed else ", not read yet")
            )
            self._console.print(
                f"{spec.name}  {escape_invisible(redact.redact_text(spec.url or ' '.join((spec.command, *spec.args))))}"
                f"  ({state})"
            )
            if spec.sandbox is not None:
                self._console.print("  confined: see 'sandbox' in its entry")
            for note in spec.notes:
                self._console.print(f"  note: {note}")
            for definition in known.tools.values() if known else ():
                self._print_tool(annotations.apply(spec, definition))
        return exit_codes.OK

    async def diff(self, name: str) -> int:
        """Print the differences between the server's tools and the accepted ones."""
        async with self._start(self._files.server(name)):
            pass
        difference = self._pins.diff(name)
        self._console.write(difference)
        if not difference:
            self._console.say(f"{name}: all tools are as you accepted them")
        return exit_codes.OK

    async def trust(self, name: str, tools: list[str], *, is_confirmed: bool) -> int:
        """Print the differences, ask, and accept them."""
        await self.diff(name)
        known = self._pins.server(name)
        if known is not None and (
            unknown := [tool for tool in tools if tool not in {*known.tools, *known.held}]
        ):
            raise InvalidInput(f"{name} has no tool {unknown[0]!r}", hint="holdfast mcp list")
        if known is not None and not known.held and not known.is_reviewed:
            return await self._review(name, is_confirmed=is_confirmed)
        if known is None or not known.held:
            return exit_codes.OK
        if not is_confirmed and not await self._confirm("accept these definitions?"):
            self._console.say("nothing was accepted")
            return exit_codes.DENIED
        accepted = await self._pins.update(lambda: self._pins.trust(name, tools or None))
        self._console.say(f"accepted: {', '.join(accepted)}", "good")
        return exit_codes.OK

    async def _review(self, name: str, *, is_confirmed: bool) -> int:
        """Print the definitions that were accepted unread, and note that a person has read them."""
        self._console.show(self._pins.accepted_text(name))
        if not is_confirmed and not await self._confirm("have you read these definitions, and trust them?"):
            self._console.say("nothing was accepted")
            return exit_codes.DENIED
        await self._pins.update(lambda: self._pins.review(name))
        self._console.say(f"{name}: its descriptions count as read by you", "good")
        return exit_codes.OK

    async def add(self, arguments: argparse.Namespace) -> int:
        """Add an entry to mcp-servers.json once the server answers."""
        words = arguments.command
        entry: dict[str, object] = (
            {"url": arguments.url} if arguments.url else {"command": "", "args": words[1:]}
        )
        if words:
            entry["command"] = words[0]
        if arguments.variable:
            entry["variables"] = arguments.variable
            entry["env"] = {name: f"${{{name}}}" for name in arguments.variable}
        if arguments.env:
            passed = {name: f"${{{name}}}" for name in arguments.variable}
            entry["env"] = _assignments(arguments.env) | passed
        if arguments.sandbox:
            entry["sandbox"] = True
        document = self._read_document()
        entries = document.setdefault("mcpServers", {})
        if not isinstance(entries, dict) or arguments.server in entries:
            raise InvalidInput(
                f"a server {arguments.server!r} already exists",
                hint=f"holdfast mcp remove {arguments.server}",
            )
        specs = load_servers({"mcpServers": {**entries, arguments.server: entry}})
        async with self._start(specs[-1]) as toolset:
            for tool in toolset.tools():
                self._print_tool(tool)
            denied = [tool for tool in toolset.tools() if tool.roles is None]
            are_all_denied = bool(denied) and len(denied) == len(toolset.tools())
        entries[arguments.server] = entry
        self._files.save_servers(document)
        self._console.say(f"added {arguments.server} to {self._files.servers_file}", "good")
        if secrets_of(specs[-1], {}):  # none of the environment: what is left is in the file itself
            self._console.say(
                "note: the file now has a value of this entry in plain text, readable by you only. If it is a secret, remove the"
                " entry, set the value as a variable of your shell and add the entry with --variable NAME"
            )
        if are_all_denied:
            self._say_all_denied(specs[-1])
        return exit_codes.OK

    async def remove(self, name: str) -> int:
        """Remove an entry and its pins."""
        document = self._read_document()
        entries = document.get("mcpServers", document)
        if not isinstance(entries, dict) or name not in entries:
            raise InvalidInput(f"there is no server {name!r}", hint="holdfast mcp list")
        del entries[name]
        self._files.save_servers(document)
        await self._pins.update(lambda: self._pins.forget(name))
        self._console.say(f"removed {name}", "good")
        return exit_codes.OK

    async def annotate(self, name: str, *, model: str | None, is_confirmed: bool) -> int:
        """Suggest roles for tools without any, and save those that the person confirms."""
        spec, annotations = self._files.server(name), self._files.annotations()
        async with self._start(spec):
            pass
        known = self._pins.server(name)
        unannotated = [
            each for each in (known.tools.values() if known else ()) if annotations.of(spec, each) is None
        ]
        resembles = resembled_server(spec, unannotated)
        if resembles:
            self._console.say(
                f"{name} looks like the well-known server {resembles!r}; its roles are suggested"
            )
        suggestions = [suggest_roles(definition, resembles=resembles) for definition in unannotated]
        if chosen := _model_name(model):
            suggestions = await self._with_model_suggestions(chosen, unannotated, suggestions)
        for suggestion in suggestions:
            self._print_suggestion(name, suggestion)
        self._print_levels(name, known.tools.values() if known else ())
        if not suggestions:
            self._console.say(f"{name}: all arguments of all tools have roles")
            return exit_codes.OK
        if not is_confirmed and not await self._confirm(
            "save these roles? To change single ones, edit tool-annotations.json afterwards."
        ):
            self._console.say("nothing was saved")
            return exit_codes.DENIED
        confirmed = Annotations({name: {each.tool: ToolRoles(arguments=each.roles) for each in suggestions}})
        self._files.save_annotations(self._files.confirmed_annotations().merged(confirmed))
        self._console.say(f"saved in {self._files.annotations_file}", "good")
        return exit_codes.OK

    def _print_levels(self, name: str, definitions: Iterable[ToolDefinition]) -> None:
        """Print what a policy with labels could say about the results of a server's tools."""
        found = [suggest_levels(f"{name}.{each.name}", each.returns) for each in definitions]
        lines = [each.line() for each in found if each is not None]
        if lines:
            self._console.say("for `labels: fields:` of a policy, fields whose type cannot carry a sentence:")
        for line in lines:
            self._console.print(escape_invisible(f"  {line}"))

    def assign_roles(self, name: str, assignments: Sequence[str]) -> int:
        """Save the roles of single arguments, given as `TOOL.ARGUMENT=ROLE[,ROLE...]`. Other roles of the tool stay."""
        spec, annotations = self._files.server(name), self._files.annotations()
        tools: dict[str, ToolRoles] = {}
        for assignment in assignments:
            place, _, words = assignment.partition("=")
            tool, _, argument = place.rpartition(".")
            try:
                roles = msgspec.convert(words.split(","), tuple[Role, ...])
            except msgspec.ValidationError:
                roles = ()
            if not tool or not argument or not roles:
                raise InvalidInput(
                    f"{assignment!r} does not assign a role",
                    hint=f"expected TOOL.ARGUMENT=ROLE; the roles are {', '.join(get_args(Role))}",
                )
            known = tools.get(tool) or annotations.known(spec, tool) or ToolRoles(arguments={})
            arguments = known.arguments | {argument: ArgumentRoles(default=roles)}
            tools[tool] = msgspec.structs.replace(known, arguments=arguments)
        self._files.save_annotations(self._files.confirmed_annotations().merged(Annotations({name: tools})))
        self._console.say(f"saved in {self._files.annotations_file}", "good")
        return exit_codes.OK

    async def doctor(self, name: str | None) -> int:
        """Start each server and report the problems of its tools."""
        specs = [self._files.server(name)] if name else list(self._files.servers())
        is_healthy = True
        if not specs:
            self._console.say("no servers configured; add one with: holdfast mcp add NAME -- COMMAND")
        for spec in specs:
            try:
                async with self._start(spec) as toolset:
                    problems = health_problems(toolset, self._pins)
            except HoldfastError as error:
                problems = (f"does not start: {error}" + (f" (hint: {error.hint})" if error.hint else ""),)
            is_healthy = is_healthy and not problems
            self._console.print(f"{'ok ' if not problems else 'BAD'} {spec.name}")
            for problem in problems:
                self._console.print(f"    {problem}")
        return exit_codes.OK if is_healthy else exit_codes.ERROR

    async def _with_model_suggestions(
        self, name: str, definitions: list[ToolDefinition], suggestions: list[RoleSuggestion]
    ) -> list[RoleSuggestion]:
        """Refine the suggestions with a model. If the model does not answer, return them unchanged."""
        from holdfast.models import Prompt, create_model

        model = create_model(name, models_folder=self._home.models)

        async def ask(question: str) -> str:
            prompt = Prompt(
                system="You annotate tools.", messages=(UserMessage(text=question),), max_tokens=2000
            )
            return (await model.ask(prompt, lambda _: None)).message.text

        try:
            with ProgressIndicator(lambda: f"asking {name}"):
                return [
                    await refine_with_model(*each, ask) for each in zip(definitions, suggestions, strict=True)
                ]
        except ModelError as error:
            self._console.say(f"{name} did not answer: {error}", "ask")
            return suggestions
        finally:
            await model.close()

    def _print_tool(self, tool: Tool) -> None:
        lines = escape_invisible(tool.description).strip().splitlines() or [""]
        self._console.print(f"  {tool.name}  {lines[0][:100]}")
        for name, roles in (tool.roles or {}).items():
            if roles.default != ("none",):
                self._console.print(f"    {name}: {', '.join(roles.default)}")
        if tool.roles is None:
            self._console.print(
                f"    denied: its arguments have no roles (holdfast mcp annotate {tool.group})"
            )

    def _say_all_denied(self, spec: ServerSpec) -> None:
        known = self._pins.server(spec.name)
        resembles = resembled_server(spec, tuple(known.tools.values()) if known else ())
        likeness = f" It looks like the well-known server {resembles!r}." if resembles else ""
        self._console.say(
            f"every call to {spec.name} is denied until the arguments of its tools have roles: without them, no rule can"
            f" tell a path from a text.{likeness}",
            "ask",
            folds=True,
        )
        self._console.say(f"hint: holdfast mcp annotate {spec.name}   suggests roles for you to confirm")

    def _print_suggestion(self, server: str, suggestion: RoleSuggestion) -> None:
        self._console.print(f"{server}.{suggestion.tool}")
        for name, roles in suggestion.roles.items():
            doubt = "   (unsure: please check)" if name in suggestion.unsure else ""
            self._console.print(f"  {escape_invisible(name)}: {', '.join(roles.default)}{doubt}")

    async def _confirm(self, question: str) -> bool:
        if not self._console.is_interactive:
            self._console.say("not confirmed: there is no terminal to ask on; --yes confirms", "ask")
            return False
        return await confirm(question, self._console)

    def _read_document(self) -> dict[str, object]:
        if not self._files.servers_file.exists():
            return {}
        load_servers(self._files.servers_file)
        text = self._files.servers_file.read_bytes().removeprefix(codecs.BOM_UTF8)
        return msgspec.json.decode(text, type=dict[str, object])

    @asynccontextmanager
    async def _start(self, spec: ServerSpec) -> AsyncIterator[McpToolset]:
        """Start a server in an empty folder."""
        annotations, keys = self._files.annotations(), key_variables(load_config(self._home).model_requests)
        with tempfile.TemporaryDirectory(prefix="holdfast-mcp-") as folder:
            async with McpToolset(
                spec, workspace=Path(folder), pins=self._pins, annotations=annotations, keys=keys
            ) as toolset:
                with ProgressIndicator(lambda: f"starting {spec.name}"):
                    await toolset.start()
                yield toolset


def _assignments(given: Sequence[str]) -> dict[str, str]:
    """The variables of `--env NAME=VALUE`. Raises InvalidInput."""
    variables: dict[str, str] = {}
    for assignment in given:
        name, equals, value = assignment.partition("=")
        if not equals or not name:
            raise InvalidInput(
                f"--env {name!r} has no value",
                hint="--env NAME=VALUE; --variable NAME passes a variable of your environment on",
            )
        variables[name] = value
    return variables


def _model_name(given: str | None) -> str | None:
    """The model to ask; None if the person wants none or none is configured."""
    from holdfast.models import resolve_model

    return None if given == "none" else given or resolve_model(os.environ)
