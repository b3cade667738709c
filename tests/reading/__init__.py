"""What a reader of the code has to follow: how many calls one request makes, and through how many files."""
