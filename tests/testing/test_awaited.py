"""The methods of ``payment_sandbox.aio``, which mirror those of the blocking objects."""

import asyncio
from inspect import iscoroutinefunction
from typing import assert_type

import pytest

from payment_sandbox.client.sandbox_clock import Advance
from payment_sandbox.testing.aio import AsyncClock
from payment_sandbox.testing.project_fixture import AsyncPaymentSandbox, PaymentSandbox
from payment_sandbox.web.answers import records as answers
from tests.documentation.references import python_reference
from tests.support.in_process import place


def test_types_are_those_of_the_blocking_methods(payment_sandbox: PaymentSandbox) -> None:
    """Awaited methods have the parameters and result types of the blocking methods."""
    order_id = place(payment_sandbox)

    async def run() -> None:
        aio = payment_sandbox.aio
        assert assert_type(await aio.act(order_id), answers.Order)["status"] == "completed"
        assert assert_type(await aio.webhooks(order_id, state="failed"), list[answers.Webhook]) == []
        assert not assert_type(await aio.clock.advance("PT1M"), Advance).stopped
        with pytest.raises(TypeError, match="idel"):
            await aio.wait(idel=True)  # type: ignore[call-arg]

    asyncio.run(run())


@pytest.mark.parametrize("kind", [AsyncPaymentSandbox, AsyncClock])
def test_the_reference_lists_awaited_methods(kind: type) -> None:
    """The reference lists all awaited methods with their parameters, inherited ones included."""
    section = python_reference().partition(f"### {kind.__name__}\n")[2].partition("\n### ")[0]
    awaited = [name for name, method in vars(kind).items() if iscoroutinefunction(method)]
    assert awaited
    assert [name for name in awaited if f"#### `await .{name}(" not in section] == []
    assert "self" not in section
