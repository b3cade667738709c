"""The files in this package, readable even while a test has replaced ``open`` and the file system."""

from importlib.util import find_spec

PACKAGE = __name__.partition(".")[0]


def read_packaged(path: str) -> bytes:
    """Read a file of the package, such as ``fidelity/rules.tsv``.

    Python's own loader reads it, as it reads modules, so pyfakefs and similar libraries have no effect.

    Raises:
        OSError: there is no such file.
    """
    spec = find_spec(PACKAGE)
    if spec is None or spec.loader is None or not spec.submodule_search_locations:
        raise FileNotFoundError(path)
    folder = next(iter(spec.submodule_search_locations))
    data: bytes = spec.loader.get_data(f"{folder}/{path}")  # type: ignore[attr-defined]
    return data
