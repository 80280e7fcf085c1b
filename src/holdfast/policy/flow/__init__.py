"""Static information flow: what each argument of each call in a program is made of, known before the program runs."""
