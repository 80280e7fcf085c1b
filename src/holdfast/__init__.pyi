from holdfast import workspace as workspace
from holdfast.app import Runtime as Runtime
from holdfast.app import open as open
from holdfast.config import load_config as load_config
from holdfast.core import Limits as Limits
from holdfast.core import Outcome as Outcome
from holdfast.core import Response as Response
from holdfast.models import ScriptedModel as ScriptedModel
from holdfast.models import use as use
from holdfast.session import Session as Session
from holdfast.session import Settings as Settings

__version__: str
