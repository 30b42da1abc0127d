"""The command `surefoot`: parse the arguments, call the library, print the results."""
