"""Sequence pictures: who told whom what, as SVG and as Mermaid text."""
