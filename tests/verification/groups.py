"""Which deviations are checked together, and in which scenes those with settings show."""

from payment_sandbox_verify.conversation import all_scenes
from payment_sandbox_verify.steps import ConversationScene

SETTINGS_SCENES = (  # the scenes in which the deviations with settings show
    *("credentials", "paths and bodies", "several problems", "unknown keys", "conditions", "order: currency"),
    *("card: one_click_type", "QR code: currency", "credit-card authorization, captured by amount", "lists"),
    *("credit-card, paid", "new wallet-qr"),
)


def scenes_named(*words: str) -> list[ConversationScene]:
    """Return the scenes whose name contains one of the words."""
    return [scene for scene in all_scenes() if any(word in scene.name for word in words)]


def settings_scenes() -> list[ConversationScene]:
    """Return the scenes in which deviations with settings show."""
    return scenes_named(*SETTINGS_SCENES)


GROUPS = (  # deviations that do not touch each other, and are checked on one server
    (
        *("the largest QR size is refused", "a locale is refused", "orders have another field"),
        *("a 401 has no challenge", "line details have numbers"),
    ),
    (
        *("the smallest QR size is refused", "a type of lines is refused", "transactions have another field"),
        *("times end in Z", "a part of extra is forgotten"),
    ),
    (
        *("a QR minimum below the amount is refused", "the client is forgotten"),
        *("refunds have another field", "captured attempts stay capturable"),
    ),
    (
        *("lines are forgotten", "return addresses are forgotten", "webhook addresses are forgotten"),
        *("QR amounts are cents", "cards expire after 15 minutes"),
    ),
    (
        *("descriptions are read without accents", "transfers cannot be cancelled"),
        *("orders have at most 50 lines", "errors have no violations", "is_capturable is missing"),
    ),
    (
        "QR sizes are clamped",
        "method names ignore case",
        "a series may charge less",
        "customers cannot be changed",
    ),
    (
        *("paths need their slash", "refunds are pending", "only the first event is kept"),
        *("modified never changes", "orders have no flags"),
    ),
    (
        *("countries may have three letters", "dates need no dashes", "offsets are ignored"),
        *("lists of ETags do not match", "violations lack the allowed values"),
    ),
    (
        *("pages need no lines", "inner keys are ignored silently", "a status is ignored silently"),
        *("only the last block counts", "passwords are refused", "invoices are refunded by amount"),
    ),
    ("visits to card pages change nothing", "merchant_order_id must be unique", "phone numbers are a string"),
    ("return addresses cannot be changed", "transfers begin new", "amounts may be strings"),
    ("the ETag never changes", "missing values are returned as empty"),
    (
        "descriptions are truncated early",
        "captured orders can be deleted",
        "refunds have only required fields",
    ),
    ("descriptions are truncated", "creations are 200"),
    ("cancellations return no body", "amount changes after a visit are ignored"),
    ("orders cannot be cancelled", "orders have no ETag"),
)
