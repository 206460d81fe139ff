"""What tests share, by what it is; the tests themselves are in the folders beside it."""
