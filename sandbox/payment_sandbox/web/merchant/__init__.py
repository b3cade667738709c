"""The merchant API: forms that read, records that show, views that do one thing each."""
