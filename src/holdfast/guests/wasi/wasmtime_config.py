"""The engine's settings: compiler and worker must have the same ones, or the compiled code does not load."""

import wasmtime


def engine() -> wasmtime.Engine:
    """An engine that counts steps and runs components."""
    settings = wasmtime.Config()
    settings.consume_fuel = True
    settings.wasm_component_model = True
    return wasmtime.Engine(settings)
