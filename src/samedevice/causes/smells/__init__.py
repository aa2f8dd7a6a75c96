"""The catalogue of smells: what works, and costs time or ties a program to one machine. Data only, one file a smell."""
