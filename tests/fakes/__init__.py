"""Stand-ins for what is not ours: a merchant's shop that receives webhooks."""
