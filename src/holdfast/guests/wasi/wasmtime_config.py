"""The settings of wasmtime. Builder and workers must use the same, or the compiled code does not load."""

import wasmtime


def engine() -> wasmtime.Engine:
    """A wasmtime engine that counts steps and runs components."""
    settings = wasmtime.Config()
    settings.consume_fuel = True
    settings.wasm_component_model = True
    return wasmtime.Engine(settings)
