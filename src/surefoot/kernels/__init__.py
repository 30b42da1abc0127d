"""Compiled kernels: arrays in, arrays out. They load on first use, because importing numba takes
longer than the rest.

`kernels.run_episodes(...)` works directly: the module behind a name of the stub beside this file is
imported when the name is first read.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
