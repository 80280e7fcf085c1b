"""The `wasi` engine: real CPython in WebAssembly, in a confined worker process, with access to one folder and nothing else.

Only the processes of workers and of the builder load wasmtime and componentize-py.
"""

from holdfast.guests.wasi.component import check_installed, is_built
from holdfast.guests.wasi.engine import WasiEngine, wasi_engine
from holdfast.guests.wasi.worker_pool import WorkerPool

__all__ = ["WasiEngine", "WorkerPool", "check_installed", "is_built", "wasi_engine"]
