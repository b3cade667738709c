"""Writes the generated parts of the documentation: ``make docs``."""

from tests.documentation.parts import generated_files


def main() -> None:
    """Rewrite the files whose generated text has changed."""
    for file, text in generated_files():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
            print(f"updated {file.name}")


if __name__ == "__main__":
    main()
