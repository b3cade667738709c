"""Builds the release files: the wheel and the sdist, one file that runs with any Python, and two packages.

    make dist

The single file holds every dependency at its pinned version. Compiled dependencies are included for each
Python and platform, side by side: the names of their files differ. The two packages are for npm and Composer.
Everything is built twice, and both builds must be identical to the byte.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from gzip import GzipFile
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile, ZipInfo

ROOT = Path(__file__).parent.parent
FILE = "payment-sandbox.pyz"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
LINUX = ("manylinux2014_x86_64", "manylinux_2_28_x86_64", "manylinux_2_34_x86_64")
PLATFORMS = (
    LINUX,
    ("manylinux2014_aarch64", "manylinux_2_28_aarch64", "manylinux_2_34_aarch64"),
    ("macosx_11_0_arm64",),
    ("win_amd64",),
)
LINUX_ONLY = ("cryptography", "cffi")  # for --tls; the files of other platforms would have the same name
LEFT_OUT = ("psycopg", "psycopg_binary")  # for --state postgresql://…, which servers use, not a laptop
ENTRY_POINT = "payment_sandbox.__main__:main"
EPOCH = "1767225600"  # 2026-01-01: the modification time of all files, so that builds are reproducible


def build(folder: Path, downloads: Path) -> list[Path]:
    """Build everything in a folder; ``downloads`` caches the downloaded wheels."""
    built = wheel_and_sdist(folder)
    own_wheels = [path for path in built if path.suffix == ".whl"]
    with TemporaryDirectory() as temporary:
        site = Path(temporary) / "site"
        site.mkdir()
        for wheel in [*wheels(downloads), *own_wheels]:
            with ZipFile(wheel) as archive:
                archive.extractall(site)
        for file in site.rglob("*"):
            os.utime(file, (int(EPOCH), int(EPOCH)))
        single = folder / FILE
        options = ["--reproducible", "--compressed", "--no-modify", "-p", "/usr/bin/env python3"]
        options += ["--site-packages", str(site), "-e", ENTRY_POINT, "-o", str(single)]
        run(sys.executable, "-m", "shiv", *options)
    return [*built, node_package(folder), php_package(folder), single]


def node_package(folder: Path) -> Path:
    """Build the package for ``npm install --save-dev payment-sandbox-VERSION.tgz``, as ``npm pack`` does."""
    source = ROOT / "sandbox" / "node"
    metadata = json.loads((source / "package.json").read_text())
    files = sorted(
        {file for pattern in ("package.json", *metadata["files"]) for file in source.glob(pattern)}
    )
    target = folder / f"{metadata['name']}-{metadata['version']}.tgz"
    with (
        GzipFile(target, "wb", mtime=int(EPOCH)) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for file in files:
            entry = tarfile.TarInfo(f"package/{file.name}")
            entry.size, entry.mtime = file.stat().st_size, int(EPOCH)
            archive.addfile(entry, BytesIO(file.read_bytes()))
    return target


def php_package(folder: Path) -> Path:
    """Build the Composer package, for a folder that serves as a repository of the type ``artifact``."""
    source = ROOT / "sandbox" / "php"
    metadata = json.loads((source / "composer.json").read_text())
    target = folder / f"{metadata['name'].replace('/', '-')}-{metadata['version']}.zip"
    with ZipFile(target, "w") as archive:
        for file in sorted(path for path in source.rglob("*") if path.is_file()):
            archive.writestr(ZipInfo(str(file.relative_to(source))), file.read_bytes())
    return target


def wheel_and_sdist(folder: Path) -> list[Path]:
    """Build the wheel and the sdist in a new folder."""
    folder.mkdir(parents=True)
    run(sys.executable, "-m", "hatchling", "build", "-d", str(folder), cwd=ROOT)
    return sorted(folder.iterdir())


def wheels(folder: Path) -> list[Path]:
    """Return the wheels of all dependencies: pure ones once, compiled ones for each Python and platform."""
    if not folder.exists():
        downloaded = list(download_wheels(folder))
        all_wheels = folder / "all"
        all_wheels.mkdir()
        for number, wheel in enumerate(downloaded):  # wheels of different platforms may share a name
            shutil.copy(wheel, all_wheels / f"{number:03}-{wheel.name}")
    return sorted((folder / "all").iterdir())


def download_wheels(folder: Path) -> Iterator[Path]:
    """Download the wheels of all dependencies."""
    host = folder / "host"
    download(host, PYTHONS[0], LINUX, "-r", str(ROOT / "requirements.lock"))
    for wheel in sorted(host.glob("*.whl")):
        if wheel.name.startswith(tuple(f"{name}-" for name in LEFT_OUT)):
            continue
        if wheel.name.endswith("-none-any.whl"):
            yield wheel
        else:
            yield from download_compiled(folder, wheel)


def download_compiled(folder: Path, wheel: Path) -> Iterator[Path]:
    """Download the wheels of a package with compiled parts; only its pure wheel if it has one."""
    name, version, *_ = wheel.name.split("-")
    requirement = f"{name}=={version}"
    pure = folder / "pure"
    try:
        download(pure, PYTHONS[0], ("any",), "--implementation", "py", "--abi", "none", requirement)
        yield from pure.glob(f"{name}-*.whl")
        return
    except subprocess.CalledProcessError:
        pass
    for number, platform in enumerate((LINUX,) if name in LINUX_ONLY else PLATFORMS):
        for python in PYTHONS:
            target = folder / f"{number}-{python}"
            download(target, python, platform, requirement)
            yield from target.glob(f"{name}-*.whl")


def check(built: Sequence[Path]) -> None:
    """Check the metadata of wheels and sdists, and the contents of wheels, as a package index does."""
    indexed = index_files(built)
    run(sys.executable, "-m", "twine", "check", "--strict", *map(str, indexed))
    run(
        sys.executable,
        "-m",
        "check_wheel_contents",
        *(str(path) for path in indexed if path.suffix == ".whl"),
    )


def index_files(built: Sequence[Path]) -> list[Path]:
    """Return the wheels and sdists: the files to upload to the Python package index."""
    return [path for path in built if path.name.endswith((".whl", ".tar.gz"))]


def download(folder: Path, python: str, platforms: Sequence[str], *requirements: str) -> None:
    """Download wheels for a Python and a platform, without their dependencies."""
    tags = [part for platform in platforms for part in ("--platform", platform)]
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--python-version", python, "-d", str(folder)]
    run(sys.executable, "-m", "pip", "download", *options, *tags, *requirements)


def run(*command: str, cwd: Path = ROOT) -> None:
    """Run a command; capture its output for the message of a failure."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "PYTHONHASHSEED": "0"}
    subprocess.run(command, cwd=cwd, check=True, capture_output=True, env=environment)


def digest(file: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def main() -> None:
    """Build twice, compare, and put the result into ``dist``."""
    target = ROOT / "dist"
    with TemporaryDirectory() as temporary:
        try:
            folders = [Path(temporary) / name for name in ("first", "second")]
            first, second = (build(folder, Path(temporary) / "wheels") for folder in folders)
            check(first)
        except subprocess.CalledProcessError as failed:
            sys.exit(f"{' '.join(failed.cmd[:5])} ... failed:\n{failed.stderr.decode()[-2000:]}")
        differing = [
            file.name for file, other in zip(first, second, strict=True) if digest(file) != digest(other)
        ]
        if differing:
            sys.exit(f"two builds differ in: {', '.join(differing)}")
        target.mkdir(exist_ok=True)
        for file in first:
            shutil.copy2(file, target)
            print(f"{digest(file)}  dist/{file.name}  {file.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
