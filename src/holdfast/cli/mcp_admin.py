"""Administration of MCP servers: list, diff, trust, add, remove, annotate and check."""

import argparse
import codecs
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from holdfast.cli import exit_codes
from holdfast.cli.prompts import confirm
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.progress import ProgressIndicator
from holdfast.config import load_config
from holdfast.core import Tool, UserMessage, escape_invisible, pluralize
from holdfast.core.errors import HoldfastError, InvalidInput, ModelError
from holdfast.mcp import (
    Annotations,
    Definition,
    McpFiles,
    McpToolset,
    RoleSuggestion,
    ServerSpec,
    ToolRoles,
    ask_model,
    health_problems,
    load_servers,
    propose_roles,
)
from holdfast.models import key_variables
from holdfast.store import Home


class McpAdmin:
    """The subcommands of `holdfast mcp`, for one data directory."""

    def __init__(self, home: Home, console: Console) -> None:
        self._home = home
        self._console = console
        self._files = McpFiles(home.root)
        self._pins = self._files.pins

    def list_servers(self, *, as_json: bool) -> int:
        """List the configured servers with their accepted tools. Starts nothing."""
        specs, annotations = self._files.servers(), self._files.annotations()
        if as_json:
            self._console.json([{"server": spec, "pins": self._pins.server(spec.name)} for spec in specs])
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
            )
            self._console.print(
                f"{spec.name}  {escape_invisible(spec.url or ' '.join((spec.command, *spec.args)))}  ({state})"
            )
            if spec.sandbox is not None:
                self._console.print("  confined: see 'sandbox' in its entry")
            for note in spec.notes:
                self._console.print(f"  note: {note}")
            for definition in known.tools.values() if known else ():
                self._show_tool(annotations.apply(spec, definition))
        return exit_codes.OK

    async def diff(self, name: str) -> int:
        """Print how the server's tools differ from the accepted definitions."""
        async with self._running(self._files.server(name)):
            pass
        difference = self._pins.diff(name)
        self._console.write(difference)
        if not difference:
            self._console.say(f"{name}: every tool matches the accepted definition")
        return exit_codes.OK

    async def trust(self, name: str, tools: list[str], *, is_confirmed: bool) -> int:
        """Show the differences, ask, and accept them."""
        await self.diff(name)
        known = self._pins.server(name)
        if known is not None and (
            unknown := [tool for tool in tools if tool not in {*known.tools, *known.held}]
        ):
            raise InvalidInput(f"{name} has no tool {unknown[0]!r}", hint="holdfast mcp list")
        if known is None or not known.held:
            return exit_codes.OK
        if not is_confirmed and not await self._confirm("Accept these definitions?"):
            self._console.say("nothing was accepted")
            return exit_codes.DENIED
        self._console.say(f"accepted: {', '.join(self._pins.trust(name, tools or None))}", "good")
        return exit_codes.OK

    async def add(self, arguments: argparse.Namespace) -> int:
        """Add a server to mcp-servers.json once it has started and listed its tools."""
        words = arguments.command
        entry: dict[str, object] = (
            {"url": arguments.url} if arguments.url else {"command": "", "args": words[1:]}
        )
        if words:
            entry["command"] = words[0]
        if arguments.variable:
            entry["variables"] = arguments.variable
            entry["env"] = {name: f"${{{name}}}" for name in arguments.variable}
        if arguments.sandbox:
            entry["sandbox"] = True
        document = self._document()
        entries = document.setdefault("mcpServers", {})
        if not isinstance(entries, dict) or arguments.server in entries:
            raise InvalidInput(
                f"there is already a server {arguments.server!r}",
                hint=f"holdfast mcp remove {arguments.server}",
            )
        specs = load_servers({"mcpServers": {**entries, arguments.server: entry}})
        async with self._running(specs[-1]) as toolset:
            for tool in toolset.tools():
                self._show_tool(tool)
        entries[arguments.server] = entry
        self._files.keep_servers(document)
        self._console.say(f"added {arguments.server} to {self._files.servers_file}", "good")
        return exit_codes.OK

    def remove(self, name: str) -> int:
        """Remove a server and its accepted definitions."""
        document = self._document()
        entries = document.get("mcpServers", document)
        if not isinstance(entries, dict) or name not in entries:
            raise InvalidInput(f"there is no server {name!r}", hint="holdfast mcp list")
        del entries[name]
        self._files.keep_servers(document)
        self._pins.forget(name)
        self._console.say(f"removed {name}", "good")
        return exit_codes.OK

    async def annotate(self, name: str, *, model: str | None, is_confirmed: bool) -> int:
        """Suggest argument roles for tools that have none, and save what the user confirms."""
        spec, annotations = self._files.server(name), self._files.annotations()
        async with self._running(spec):
            pass
        known = self._pins.server(name)
        unannotated = [
            each for each in (known.tools.values() if known else ()) if annotations.of(spec, each) is None
        ]
        suggestions = [propose_roles(definition) for definition in unannotated]
        if chosen := _model_name(model):
            suggestions = await self._with_model_suggestions(chosen, unannotated, suggestions)
        for suggestion in suggestions:
            self._show_suggestion(name, suggestion)
        if not suggestions:
            self._console.say(f"{name}: every tool is annotated")
            return exit_codes.OK
        if not is_confirmed and not await self._confirm(
            "Save these roles? Single ones can be changed in tool-annotations.json."
        ):
            self._console.say("nothing was saved")
            return exit_codes.DENIED
        fresh = Annotations({name: {each.tool: ToolRoles(arguments=each.roles) for each in suggestions}})
        self._files.keep_annotations(self._files.own_annotations().merged(fresh))
        self._console.say(f"saved in {self._files.annotations_file}", "good")
        return exit_codes.OK

    async def check_servers(self, name: str | None) -> int:
        """Start each server and report its problems."""
        specs = [self._files.server(name)] if name else list(self._files.servers())
        is_healthy = True
        if not specs:
            self._console.say("no servers are configured; add one with: holdfast mcp add NAME -- COMMAND")
        for spec in specs:
            try:
                async with self._running(spec) as toolset:
                    problems = health_problems(toolset, self._pins)
            except HoldfastError as error:
                problems = (f"does not start: {error}" + (f" (hint: {error.hint})" if error.hint else ""),)
            is_healthy = is_healthy and not problems
            self._console.print(f"{'ok ' if not problems else 'BAD'} {spec.name}")
            for problem in problems:
                self._console.print(f"    {problem}")
        return exit_codes.OK if is_healthy else exit_codes.ERROR

    async def _with_model_suggestions(
        self, name: str, definitions: list[Definition], suggestions: list[RoleSuggestion]
    ) -> list[RoleSuggestion]:
        """The suggestions refined by a model, or unchanged if the model does not answer."""
        from holdfast.models import Prompt, create_model

        model = create_model(name, weights=self._home.models)

        async def ask(question: str) -> str:
            prompt = Prompt(
                system="You annotate tools.", messages=(UserMessage(text=question),), max_tokens=2000
            )
            return (await model.ask(prompt, lambda _: None)).message.text

        try:
            with ProgressIndicator(lambda: f"asking {name}"):
                return [await ask_model(*each, ask) for each in zip(definitions, suggestions, strict=True)]
        except ModelError as error:
            self._console.say(f"{name} was not used: {error}", "ask")
            return suggestions
        finally:
            await model.close()

    def _show_tool(self, tool: Tool) -> None:
        lines = escape_invisible(tool.description).strip().splitlines() or [""]
        self._console.print(f"  {tool.name}  {lines[0][:100]}")
        for name, roles in (tool.roles or {}).items():
            if roles.default != ("none",):
                self._console.print(f"    {name}: {', '.join(roles.default)}")
        if tool.roles is None:
            self._console.print(
                f"    denied, because its arguments have no roles; add them with: holdfast mcp annotate {tool.group}"
            )

    def _show_suggestion(self, server: str, suggestion: RoleSuggestion) -> None:
        self._console.print(f"{server}.{suggestion.tool}")
        for name, roles in suggestion.roles.items():
            doubt = "   (unsure: please check)" if name in suggestion.unsure else ""
            self._console.print(f"  {escape_invisible(name)}: {', '.join(roles.default)}{doubt}")

    async def _confirm(self, question: str) -> bool:
        if not self._console.is_interactive:
            self._console.say("no terminal is attached to ask at; --yes accepts without asking", "ask")
            return False
        return await confirm(question, self._console)

    def _document(self) -> dict[str, object]:
        if not self._files.servers_file.exists():
            return {}
        load_servers(self._files.servers_file)
        text = self._files.servers_file.read_bytes().removeprefix(codecs.BOM_UTF8)
        return msgspec.json.decode(text, type=dict[str, object])

    @asynccontextmanager
    async def _running(self, spec: ServerSpec) -> AsyncIterator[McpToolset]:
        """The running server, with an empty folder as its workspace."""
        annotations, keys = self._files.annotations(), key_variables(load_config(self._home).asking)
        with tempfile.TemporaryDirectory(prefix="holdfast-mcp-") as folder:
            async with McpToolset(
                spec, workspace=Path(folder), pins=self._pins, annotations=annotations, keys=keys
            ) as toolset:
                with ProgressIndicator(lambda: f"starting {spec.name}"):
                    await toolset.start()
                yield toolset


def _model_name(given: str | None) -> str | None:
    """The model to ask; None if none is wanted or configured."""
    from holdfast.models import resolve_model

    return None if given == "none" else given or resolve_model(os.environ)
