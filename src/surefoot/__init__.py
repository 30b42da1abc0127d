"""surefoot: learn online in a running process without ever falling below a floor.

    import surefoot as sf

The public names are those of the stub beside this file. Nothing is computed here, and each is
imported when it is first used.
"""

import lazy_loader

from surefoot.__about__ import __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
