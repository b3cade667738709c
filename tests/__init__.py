"""Tests."""

import pytest

pytest.register_assert_rewrite("tests.support")  # so that a failed assert in a helper shows its values, too
