"""Session settings: model, policy, sandbox, limits, notifications, messengers. Frozen; `config` reads them from a file."""

from typing import Literal

import msgspec

from holdfast.agent import ActsWith
from holdfast.commands import ShellSettings
from holdfast.core import Limits, Value
from holdfast.guests import GuestLimits, Sandbox
from holdfast.models import ModelSettings

Topic = Literal["waits", "finished", "failed", "budget"]
"""What a notification is about: a call that waits for approval, a turn that ended well or badly, or four fifths of a budget spent."""


class NotifyTargetBase(Value, tag_field="kind", forbid_unknown_fields=True):
    """What every target has. A secret is written as `${VARIABLE}` or `keyring:NAME`, not as itself."""

    topics: tuple[Topic, ...] = ("waits", "finished", "failed", "budget")
    private: bool = False
    """Whether the target may see the call that waits and the answer of the agent. Otherwise it gets only names and counts."""
    after_seconds: float = 5.0
    """A call that is answered sooner is not reported, nor is a turn that was shorter."""

    @property
    def kind(self) -> str:
        """The kind of the target, as in the configuration."""
        return str(self.__struct_config__.tag)


class NotifyWebhook(NotifyTargetBase, tag="webhook"):
    """JSON, sent by POST. With a secret, it is signed with HMAC-SHA256."""

    url: str
    secret: str = ""


class NotifyNtfy(NotifyTargetBase, tag="ntfy"):
    """A topic of an ntfy server."""

    url: str
    """The server and the topic, such as https://ntfy.example.com/my-topic."""
    token: str = ""


class NotifyCommand(NotifyTargetBase, tag="command"):
    """A program of this machine. The title and the text are its last arguments; the JSON is its input."""

    command: tuple[str, ...]


class NotifyDesktop(NotifyTargetBase, tag="desktop"):
    """The notifications of this machine's desktop."""


class NotifyEmail(NotifyTargetBase, tag="email"):
    """An e-mail, sent by SMTP."""

    server: str
    """The host and the port, such as smtp.example.com:587."""
    sender: str
    recipient: str
    user: str = ""
    password: str = ""
    security: Literal["starttls", "tls", "none"] = "starttls"
    """`none` is accepted only for a server on this machine."""


class NotifyApprise(NotifyTargetBase, tag="apprise"):
    """Any service that the library Apprise knows (extra `notify`), by its URL."""

    url: str


NotifyTarget = NotifyWebhook | NotifyNtfy | NotifyCommand | NotifyDesktop | NotifyEmail | NotifyApprise


class NotifySettings(Value, forbid_unknown_fields=True):
    """How a person learns that something waits, finished or failed."""

    terminal: Literal["auto", "bell", "off"] = "auto"
    """How a chat tells you that something waits while its terminal does not have the focus: `auto` is a notification where the
    terminal shows one, else the bell."""
    command: tuple[str, ...] = ()
    """A program that a chat runs as well, such as ["notify-send", "Holdfast"]. The text is its last argument."""
    targets: dict[str, NotifyTarget] = msgspec.field(default_factory=dict)
    """Where else you are notified: one table for each, such as [notify.targets.phone] with kind = "ntfy" and url = "...". See
    docs/guides/notifications.md."""


class ChannelSettings(Value, forbid_unknown_fields=True):
    """What sessions of a channel work with. What is empty is as for the whole messenger."""

    workspace: str = ""
    policy: str = ""
    model: str = ""
    budget: str = ""
    """As for `--budget`, such as "usd=1,tokens=50k"."""


class MessengerSettings(ChannelSettings, tag_field="kind", forbid_unknown_fields=True):
    """What every messenger has. Without a workspace, each conversation has its own empty folder."""

    members: dict[str, str] = msgspec.field(default_factory=dict)
    """Who may talk and answer: the id of the service, and the name for the record. Nobody else gets a reply."""
    channels: dict[str, ChannelSettings] = msgspec.field(default_factory=dict)
    """Settings of single channels, by the id of the service."""
    messages_per_minute: int = 20
    """Of one member. More are refused."""

    @property
    def kind(self) -> str:
        """The name of the service, as in the configuration."""
        return str(self.__struct_config__.tag)


class TelegramSettings(MessengerSettings, tag="telegram"):
    """A bot of Telegram, which BotFather made. It needs no public address."""

    token: str
    """`${VARIABLE}` or `keyring:NAME`."""
    base_url: str = "https://api.telegram.org"


class SlackSettings(MessengerSettings, tag="slack"):
    """An app of Slack in socket mode (extra `slack`). It needs no public address."""

    bot_token: str
    """`${VARIABLE}` or `keyring:NAME`; begins with xoxb-."""
    app_token: str
    """`${VARIABLE}` or `keyring:NAME`; begins with xapp-."""
    base_url: str = "https://slack.com/api"


ConfiguredMessenger = TelegramSettings | SlackSettings


class Settings(Value, forbid_unknown_fields=True):
    """The settings of a session, which are the keys of config.toml. Every default is safe to keep."""

    model: str | None = None
    """`provider:name`; $HOLDFAST_MODEL overrides it. None looks for a key in the environment."""
    model_requests: ModelSettings = ModelSettings()
    """How requests are sent to a model: address, timeout, attempts, size of a reply."""
    policy: str = "auto"
    """A named policy or a file. `auto` is `project` for a folder of yours, where changes become proposals, and `scratch` for
    a folder that only the session uses, where they are made at once."""
    sandbox: Sandbox = "python"
    """Where code runs: `python` (a subset), `wasi` (CPython in WebAssembly), `lisp`, `system` (the project's own CPython in the
    command sandbox) or `auto` (python, and if it refuses the code system, or wasi where that does not run)."""
    acts_with: ActsWith = "code"
    """How the model acts: `code` writes Python, `tools` calls tools one by one."""
    instructions: str = ""
    """Instructions of your own, added to the model's system prompt."""
    titles: Literal["words", "model"] = "words"
    """What the list of sessions shows: the first words of a session, or a title that its model is asked for after the first turn of
    a chat. The request costs a few hundred tokens."""
    auto_compact: bool = False
    """Summarize older turns automatically when the conversation exceeds the model's context; else the turn ends with an error."""
    max_history_messages: int | None = None
    """Send the model at most this many messages, starting at a user message; None sends all."""
    restore_points: Literal["auto", "always", "never"] = "auto"
    """Save the workspace after each turn so that it can be rewound. The first restore point reads every file once, so
    `auto` skips a folder of more than 2 GB or 50,000 files and reports it, as it does with what a turn adds beyond 2 GB."""
    workspace_bytes: int | None = 10_000_000_000
    """Maximum size of a workspace. A guest that would exceed it gets an ordinary OSError. Raise it for a larger project."""
    workspace_files: int | None = None
    """Maximum number of files in a workspace."""
    dirs: tuple[str, ...] = ()
    """Folders outside the workspace that agents may use without asking: "~/notes:ro" for reading, "~/lib" for changes as well.
    A policy that denies a call still denies it."""
    escalation_seconds: float | None = None
    """How long a call waits for approval before silence is a denial. Without it a call waits until it is answered."""
    call_seconds: float = 60.0
    """How long a tool call may take."""
    budget: Limits = Limits()
    """Limits of a session. `usd`, `time` and `bytes` are accepted as keys too, and quantities such as "50k" or "5m"."""
    turn_budget: Limits = Limits(steps=50, calls=1000, bytes_written=2_000_000_000)
    """Limits of one turn."""
    notify: NotifySettings = NotifySettings()
    """How you learn that a call waits, or that a turn finished or failed, while you look elsewhere."""
    messengers: dict[str, ConfiguredMessenger] = msgspec.field(default_factory=dict)
    """Chat services from which you can talk with sessions: one table for each, such as [messengers.bot] with kind = "telegram".
    See docs/guides/messengers.md."""
    shell: ShellSettings = ShellSettings()
    """Programs that the agent runs in the command sandbox: whether, with which limits, and what they may see."""
    code: GuestLimits = GuestLimits()
    """Limits of one run of code in a sandbox. A run that exceeds one is stopped and its error names the limit."""
