"""What every package may use: array types, validation of inputs, files, progress, SQL quoting."""
