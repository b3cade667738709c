"""Walks the model and a server side by side: what to try in a state, and what must be read then.

Other packages import ``walking.walker``.
"""
