"""Projects with fixed keys are declared in a file; errors name the line and the column."""

from pathlib import Path
from textwrap import dedent

import pytest

from payment_sandbox.orders.refusals import Invalid
from tests.support.servers import make_server

WRONG = [
    # the file, line:column, path, words of the message
    ("name: shop", "1:1", "api_key", "required"),
    ("api_key: 'a b'", "1:1", "api_key", "visible ASCII"),
    ("api_key: k\nmod: live", "2:1", "mod", "did you mean 'mode'?"),
    ("api_key: k\nclock: sideways", "2:1", "clock", "running, frozen"),
    ("api_key: k\nscenario: none-such", "2:1", "scenario", "not a known scenario"),
    ("projects:\n  - api_key: k\n  - api_key: k", "3:5", "projects[1].api_key", "another declared"),
    ("projects:\n  - {api_key: k, scenario: none-such}", "2:18", "projects[0].scenario", "not a known"),
]


def write_file(tmp_path: Path, text: str) -> Path:
    """Write the text to a file."""
    file = tmp_path / "projects.yaml"
    file.write_text(dedent(text))
    return file


@pytest.mark.parametrize(("text", "place", "path", "words"), WRONG)
def test_a_wrong_file_is_named_by_line_and_column(
    tmp_path: Path, text: str, place: str, path: str, words: str
) -> None:
    """An error names place, path, expectation and nearest known word; no server is created."""
    file = write_file(tmp_path, text)
    with pytest.raises(Invalid) as refused:
        make_server(project_files=[file])
    (violation, *_) = [each for each in refused.value.violations if each.path == path]
    assert (violation.file, f"{violation.line}:{violation.column}") == (str(file), place)
    assert words in violation.message


MISTAKES = {
    # the files, the file and the path of each violation
    "of one project": (
        ["api_key: k\nclock: foo\nmode: x\nscenario: nope\nbogus: 1"],
        {(0, "clock"), (0, "mode"), (0, "scenario"), (0, "bogus")},
    ),
    "a key of two files": (["api_key: k", "api_key: k"], {(1, "api_key")}),
    "of a file, and a missing file": (["mod: live", None], {(0, "api_key"), (0, "mod"), (1, "")}),
}


@pytest.mark.parametrize(("texts", "places"), MISTAKES.values(), ids=MISTAKES)
def test_all_mistakes_in_all_files_are_reported_together(
    tmp_path: Path, texts: list[str | None], places: set[tuple[int, str]]
) -> None:
    """All mistakes in all files are reported together, each with its file."""
    files = [tmp_path / f"{number}.yaml" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        if text is not None:
            file.write_text(text)
    with pytest.raises(Invalid) as refused:
        make_server(project_files=files)
    named = [str(file) for file in files]
    assert {(named.index(str(each.file)), each.path) for each in refused.value.violations} == places
