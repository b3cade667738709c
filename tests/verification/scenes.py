"""Scenes of the conversation by their names."""

from payment_sandbox_verify.conversation import all_scenes
from payment_sandbox_verify.steps import ConversationScene

SCENES = all_scenes()
SCENES_OF_A_RULE = 2
SETTINGS_SCENES = (  # the scenes in which the deviations with settings show
    *("credentials", "paths and bodies", "several problems", "unknown keys", "conditions", "order: currency"),
    *("card: one_click_type", "QR code: currency", "credit-card authorization, captured by amount", "lists"),
    *("credit-card, paid", "new wallet-qr order", "customer: locale", "changed customer"),
)


def scenes_named(*words: str) -> list[ConversationScene]:
    """Return the scenes whose name contains one of the words."""
    return [scene for scene in SCENES if any(word in scene.name for word in words)]


def scenes_called(*names: str) -> list[ConversationScene]:
    """Return the scenes of these names."""
    scenes = [scene for scene in SCENES if scene.name in names]
    assert len(scenes) == len(names), names
    return scenes


def scenes_about(rules: str) -> list[ConversationScene]:
    """Return the first scenes with steps about each of these rules."""
    names: set[str] = set()
    for rule in rules.split():
        about = [each.name for each in SCENES if any(rule in step.rules.split() for step in each.steps)]
        names.update(about[:SCENES_OF_A_RULE])
    return scenes_called(*names)
