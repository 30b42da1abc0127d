"""Files of Python in no package: tests of another folder, tools, what a fuzzer runs."""

import importlib.util


def loaded(path):
    """Return this file as a module."""
    spec = importlib.util.spec_from_file_location(f"file_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
