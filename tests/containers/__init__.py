"""Tests of the sandbox in containers, under several host names, and over https."""
