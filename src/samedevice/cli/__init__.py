"""The command line: one file a command. Each reads its arguments, calls the library and prints; it decides nothing."""
