"""One turn of an agent: ask the model, run what it wrote, show it the result."""

from holdfast.agent.code_run import CodeRun
from holdfast.agent.conversation import Conversation
from holdfast.agent.folder_instructions import FolderInstructions, InstructionFile, ReadFolder
from holdfast.agent.hidden_output import hidden_output
from holdfast.agent.model_step import ModelStep
from holdfast.agent.project_instructions import (
    ProjectInstructions,
    instruction_files_above,
    read_folder_instructions,
    read_project_instructions,
)
from holdfast.agent.prompt import ActsWith
from holdfast.agent.rebuild_state import RecordedAnswers
from holdfast.agent.session_guests import SessionGuests
from holdfast.agent.tool_replies import explain_refusal, outcome_of_error, traceback_note
from holdfast.agent.turn import Turn

__all__ = [
    "ActsWith",
    "CodeRun",
    "Conversation",
    "FolderInstructions",
    "InstructionFile",
    "ModelStep",
    "ProjectInstructions",
    "ReadFolder",
    "RecordedAnswers",
    "SessionGuests",
    "Turn",
    "explain_refusal",
    "hidden_output",
    "instruction_files_above",
    "outcome_of_error",
    "read_folder_instructions",
    "read_project_instructions",
    "traceback_note",
]
