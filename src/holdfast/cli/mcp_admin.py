"""The desk where a person looks after MCP servers: lists, differences, trust, roles and health."""

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
    """The verbs of `holdfast mcp`, at one home."""

    def __init__(self, home: Home, console: Console) -> None:
        self._home = home
        self._console = console
        self._files = McpFiles(home.root)
        self._pins = self._files.pins

    def list_servers(self, *, as_json: bool) -> int:
        """From the configuration and the pins; starts nothing."""
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
                else f"{pluralize(len(known.tools), 'tool')}, {len(known.held)} held"
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
        """What the server offers now against what was accepted."""
        async with self._running(self._files.server(name)):
            pass
        difference = self._pins.diff(name)
        self._console.write(difference)
        if not difference:
            self._console.say(f"{name}: every tool is as you accepted it")
        return exit_codes.OK

    async def trust(self, name: str, tools: list[str], *, is_sure: bool) -> int:
        """Show the difference, ask, accept."""
        await self.diff(name)
        known = self._pins.server(name)
        if known is not None and (
            strange := [tool for tool in tools if tool not in {*known.tools, *known.held}]
        ):
            raise InvalidInput(f"{name} has no tool {strange[0]!r}", hint="holdfast mcp list")
        if known is None or not known.held:
            return exit_codes.OK
        if not is_sure and not await self._confirm("accept these definitions?"):
            self._console.say("nothing was accepted")
            return exit_codes.DENIED
        self._console.say(f"accepted: {', '.join(self._pins.trust(name, tools or None))}", "good")
        return exit_codes.OK

    async def add(self, arguments: argparse.Namespace) -> int:
        """Put an entry into mcp-servers.json once the server has answered."""
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
                f"there is a server {arguments.server!r}", hint=f"holdfast mcp remove {arguments.server}"
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
        """Take an entry out, and forget what was accepted of it."""
        document = self._document()
        entries = document.get("mcpServers", document)
        if not isinstance(entries, dict) or name not in entries:
            raise InvalidInput(f"there is no server {name!r}", hint="holdfast mcp list")
        del entries[name]
        self._files.keep_servers(document)
        self._pins.forget(name)
        self._console.say(f"removed {name}", "good")
        return exit_codes.OK

    async def annotate(self, name: str, *, model: str | None, is_sure: bool) -> int:
        """Propose roles for tools that have none, and keep what the person confirms."""
        spec, annotations = self._files.server(name), self._files.annotations()
        async with self._running(spec):
            pass
        known = self._pins.server(name)
        open_ones = [
            each for each in (known.tools.values() if known else ()) if annotations.of(spec, each) is None
        ]
        proposals = [propose_roles(definition) for definition in open_ones]
        if chosen := _model_name(model):
            proposals = await self._with_model_suggestions(chosen, open_ones, proposals)
        for proposal in proposals:
            self._show_suggestion(name, proposal)
        if not proposals:
            self._console.say(f"{name}: the arguments of every tool have roles")
            return exit_codes.OK
        if not is_sure and not await self._confirm(
            "are these right? Edit tool-annotations.json for single ones."
        ):
            self._console.say("nothing was kept")
            return exit_codes.DENIED
        fresh = Annotations({name: {each.tool: ToolRoles(arguments=each.roles) for each in proposals}})
        self._files.keep_annotations(self._files.own_annotations().merged(fresh))
        self._console.say(f"kept in {self._files.annotations_file}", "good")
        return exit_codes.OK

    async def check_servers(self, name: str | None) -> int:
        """Start each server and tell what a person should know of it."""
        specs = [self._files.server(name)] if name else list(self._files.servers())
        is_well = True
        if not specs:
            self._console.say("there is no server to look at; add one with: holdfast mcp add NAME -- COMMAND")
        for spec in specs:
            try:
                async with self._running(spec) as toolset:
                    problems = health_problems(toolset, self._pins)
            except HoldfastError as error:
                problems = (f"does not start: {error}" + (f" (hint: {error.hint})" if error.hint else ""),)
            is_well = is_well and not problems
            self._console.print(f"{'ok ' if not problems else 'BAD'} {spec.name}")
            for problem in problems:
                self._console.print(f"    {problem}")
        return exit_codes.OK if is_well else exit_codes.ERROR

    async def _with_model_suggestions(
        self, name: str, definitions: list[Definition], proposals: list[RoleSuggestion]
    ) -> list[RoleSuggestion]:
        """The proposals with what a model adds; without it where the model does not answer."""
        from holdfast.models import Prompt, create_model

        model = create_model(name, weights=self._home.models)

        async def ask(question: str) -> str:
            prompt = Prompt(
                system="You annotate tools.", messages=(UserMessage(text=question),), max_tokens=2000
            )
            return (await model.ask(prompt, lambda _: None)).message.text

        try:
            with ProgressIndicator(lambda: f"asks {name}"):
                return [await ask_model(*each, ask) for each in zip(definitions, proposals, strict=True)]
        except ModelError as error:
            self._console.say(f"{name} did not help: {error}", "ask")
            return proposals
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
                f"    denied: its arguments have no roles; holdfast mcp annotate {tool.group}"
            )

    def _show_suggestion(self, server: str, proposal: RoleSuggestion) -> None:
        self._console.print(f"{server}.{proposal.tool}")
        for name, roles in proposal.roles.items():
            doubt = "   (unsure: look)" if name in proposal.unsure else ""
            self._console.print(f"  {escape_invisible(name)}: {', '.join(roles.default)}{doubt}")

    async def _confirm(self, question: str) -> bool:
        if not self._console.is_interactive:
            self._console.say("there is nobody to ask here; --yes takes it as it is", "ask")
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
        """The server, working in an empty folder."""
        annotations, keys = self._files.annotations(), key_variables(load_config(self._home).asking)
        with tempfile.TemporaryDirectory(prefix="holdfast-mcp-") as folder:
            async with McpToolset(
                spec, workspace=Path(folder), pins=self._pins, annotations=annotations, keys=keys
            ) as toolset:
                with ProgressIndicator(lambda: f"starts {spec.name}"):
                    await toolset.start()
                yield toolset


def _model_name(given: str | None) -> str | None:
    """Which model to ask; none where none is wanted or configured."""
    from holdfast.models import resolve_model

    return None if given == "none" else given or resolve_model(os.environ)
