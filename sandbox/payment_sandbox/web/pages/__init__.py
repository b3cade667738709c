"""What payers get to see; their addresses carry the project, for payers have no key."""
