"""Tests."""

import pytest

pytest.register_assert_rewrite("tests.support")  # so that a helper's assert says as much as a test's
