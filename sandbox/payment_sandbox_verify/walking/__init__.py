"""Walks the model and a server side by side: makes calls, and compares the answers and later reads.

Other packages may import ``walking.walker``.
"""
