"""No model is configured, but a server on this machine has one: offer it."""

from holdfast.cli.confirming import says_yes
from holdfast.cli.console import Console
from holdfast.core.errors import ModelMissing
from holdfast.models import local_servers


async def offered_model(missing: ModelMissing, console: Console) -> str:
    """The model of a local server, if the person says yes to it.

    Raises ModelMissing where there is none, where the person says no, and where nobody can be asked; its hint then is
    the exact option.
    """
    found = [(server.title, model) for server in await local_servers() for model in server.models]
    if not found:
        raise missing
    title, model = found[0]
    declined = ModelMissing(str(missing), hint=f"{title} on this machine has one: holdfast -m {model}")
    if not console.is_interactive:
        raise declined
    others = f" (and {len(found) - 1} more: holdfast model list)" if len(found) > 1 else ""
    console.say(f"  model   {title} on this machine has {model}{others}", "ask")
    console.say("          There is no key of a provider here. What you write would not leave this machine.")
    if not await says_yes("Use it for this session?", console):
        raise declined
    return model
