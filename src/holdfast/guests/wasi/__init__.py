"""`wasi`: real CPython in WebAssembly, in a confined worker process, with one folder and nothing else.

wasmtime and componentize-py are loaded only in the worker's and the builder's processes.
"""

from holdfast.guests.wasi.component import check_installed, is_built
from holdfast.guests.wasi.engine import wasi_engine
from holdfast.guests.wasi.worker_pool import WorkerPool

__all__ = ["WorkerPool", "check_installed", "is_built", "wasi_engine"]
