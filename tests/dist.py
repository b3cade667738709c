"""Builds what is published: all Python distributions, one file that runs with any Python, and two packages.

    make dist

The single file holds every dependency as pinned. Compiled ones are in it for each Python and platform, side
by side: the names of their files differ. The packages are those for npm and Composer. Everything is built twice,
and must be the same to the byte.
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
PROJECTS = (ROOT, *sorted(file.parent for file in ROOT.glob("sandbox/*/pyproject.toml")))
FILE = "payment-sandbox.pyz"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
LINUX = ("manylinux2014_x86_64", "manylinux_2_28_x86_64", "manylinux_2_34_x86_64")
PLATFORMS = (
    LINUX,
    ("manylinux2014_aarch64", "manylinux_2_28_aarch64", "manylinux_2_34_aarch64"),
    ("macosx_11_0_arm64",),
    ("win_amd64",),
)
LEFT_OUT = "psycopg_binary"  # large; the single file uses the libpq of the system
ONLY_LINUX = ("cryptography", "cffi")  # for --tls; the files of other platforms would have the same name
START = "payment_sandbox.__main__:main"
EPOCH = "1767225600"  # 2026-01-01: the time of all files in both, so that they are always the same


def build(folder: Path, downloads: Path) -> list[Path]:
    """Build everything in a folder; ``downloads`` keeps what is fetched for the next time."""
    built = distributions(folder)
    ours = [path for path in built if path.suffix == ".whl"]
    with TemporaryDirectory() as temporary:
        site = Path(temporary) / "site"
        site.mkdir()
        for wheel in [*wheels(downloads), *ours]:
            with ZipFile(wheel) as archive:
                archive.extractall(site)
        for file in site.rglob("*"):
            os.utime(file, (int(EPOCH), int(EPOCH)))
        single = folder / FILE
        options = ["--reproducible", "--compressed", "--no-modify", "-p", "/usr/bin/env python3"]
        run(
            sys.executable,
            "-m",
            "shiv",
            "--site-packages",
            str(site),
            "-e",
            START,
            "-o",
            str(single),
            *options,
        )
    return [*built, node_package(folder), php_package(folder), single]


def node_package(folder: Path) -> Path:
    """The package for npm, as ``npm pack`` makes it: ``npm install --save-dev ./payment-sandbox-VERSION.tgz``."""
    source = ROOT / "sandbox" / "node"
    facts = json.loads((source / "package.json").read_text())
    files = sorted({file for pattern in ("package.json", *facts["files"]) for file in source.glob(pattern)})
    target = folder / f"{facts['name']}-{facts['version']}.tgz"
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
    """The package for Composer, for a folder that is a repository of the type ``artifact``."""
    source = ROOT / "sandbox" / "php"
    facts = json.loads((source / "composer.json").read_text())
    target = folder / f"{facts['name'].replace('/', '-')}-{facts['version']}.zip"
    with ZipFile(target, "w") as archive:
        for file in sorted(path for path in source.rglob("*") if path.is_file()):
            archive.writestr(ZipInfo(str(file.relative_to(source))), file.read_bytes())
    return target


def distributions(folder: Path, projects: Sequence[Path] = PROJECTS) -> list[Path]:
    """Build the wheels and sdists of distributions in a new folder."""
    folder.mkdir(parents=True)
    for project in projects:
        run(sys.executable, "-m", "hatchling", "build", "-d", str(folder), cwd=project)
    return sorted(folder.iterdir())


def wheels(folder: Path) -> list[Path]:
    """The wheels of all dependencies: pure ones once, others for each Python and platform."""
    if not folder.exists():
        fetched = list(fetch(folder))
        kept = folder / "all"
        kept.mkdir()
        for number, wheel in enumerate(fetched):  # those of different platforms may have one name
            shutil.copy(wheel, kept / f"{number:03}-{wheel.name}")
    return sorted((folder / "all").iterdir())


def fetch(folder: Path) -> Iterator[Path]:
    """Download them."""
    host = folder / "host"
    download(host, PYTHONS[0], LINUX, "-r", str(ROOT / "requirements.lock"))
    for wheel in sorted(host.glob("*.whl")):
        if wheel.name.startswith(LEFT_OUT):
            continue
        if wheel.name.endswith("-none-any.whl"):
            yield wheel
        else:
            yield from compiled(folder, wheel)


def compiled(folder: Path, wheel: Path) -> Iterator[Path]:
    """The wheels of a package with compiled parts; the pure one if there is any."""
    name, version, *_ = wheel.name.split("-")
    wanted = f"{name}=={version}"
    pure = folder / "pure"
    try:
        download(pure, PYTHONS[0], ("any",), "--implementation", "py", "--abi", "none", wanted)
        yield from pure.glob(f"{name}-*.whl")
        return
    except subprocess.CalledProcessError:
        pass
    for number, platform in enumerate((LINUX,) if name in ONLY_LINUX else PLATFORMS):
        for python in PYTHONS:
            place = folder / f"{number}-{python}"
            download(place, python, platform, wanted)
            yield from place.glob(f"{name}-*.whl")


def check(built: Sequence[Path]) -> None:
    """Check the metadata of wheels and sdists, and the contents of wheels, as an index does."""
    wheels = [str(path) for path in built if path.suffix == ".whl"]
    sdists = [str(path) for path in built if path.name.endswith(".tar.gz")]
    run(sys.executable, "-m", "twine", "check", "--strict", *wheels, *sdists)
    run(sys.executable, "-m", "check_wheel_contents", *wheels)


def download(folder: Path, python: str, platforms: Sequence[str], *what: str) -> None:
    """Download wheels for a Python and a platform, without their dependencies."""
    tags = [part for platform in platforms for part in ("--platform", platform)]
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--python-version", python, "-d", str(folder)]
    run(sys.executable, "-m", "pip", "download", *options, *tags, *what)


def run(*command: str, cwd: Path = ROOT) -> None:
    """Run a command, and show what it says only if it fails."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "PYTHONHASHSEED": "0"}
    subprocess.run(command, cwd=cwd, check=True, capture_output=True, env=environment)


def digest(file: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def main() -> None:
    """Build twice, compare, and put the result into ``dist``."""
    target = ROOT / "dist"
    with TemporaryDirectory() as temporary:
        try:
            places = [Path(temporary) / name for name in ("once", "again")]
            once, again = (build(place, Path(temporary) / "wheels") for place in places)
            check(once)
        except subprocess.CalledProcessError as failed:
            sys.exit(f"{' '.join(failed.cmd[:5])} ... failed:\n{failed.stderr.decode()[-2000:]}")
        differing = [one.name for one, other in zip(once, again, strict=True) if digest(one) != digest(other)]
        if differing:
            sys.exit(f"built twice, these differ: {', '.join(differing)}")
        target.mkdir(exist_ok=True)
        for file in once:
            shutil.copy2(file, target)
            print(f"{digest(file)}  dist/{file.name}  {file.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
