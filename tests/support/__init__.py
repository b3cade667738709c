"""What several test modules share: a project to drive, a payer, a shop, and what they are held against."""
